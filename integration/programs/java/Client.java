// Java's client of 0.9 to 2.8 at work; java_clients.py describes the actions and what they print.
// Has only what the client of 0.9 has: Records knows what came later.

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

public class Client {
    static final long TIME = 1_600_000_000_000L;
    static final long POLL_MS = 100;
    static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        String[] rest = Arrays.copyOfRange(args, 2, args.length);
        switch (args[0]) {
            case "write" -> write(args[1], rest);
            case "read" -> read(args[1], rest);
            case "member" -> member(args[1], rest);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    static Properties config(String address, String... pairs) {
        Properties found = new Properties();
        found.put("bootstrap.servers", address);
        for (int at = 0; at < pairs.length; at += 2) {
            found.put(pairs[at], pairs[at + 1]);
        }
        return found;
    }

    static KafkaConsumer<String, String> consumer(String address, String... pairs) {
        Properties config = config(address, pairs);
        String codec = "org.apache.kafka.common.serialization.StringDeserializer";
        config.put("key.deserializer", codec);
        config.put("value.deserializer", codec);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(config);
    }

    static void write(String address, String[] args) throws Exception {
        for (String codec : args[2].split(",")) {
            String serializer = "org.apache.kafka.common.serialization.StringSerializer";
            Properties config = config(address, "key.serializer", serializer,
                "value.serializer", serializer, "compression.type", codec, "acks", "all",
                "linger.ms", "50", "retries", "3");
            if (args[4].equals("true")) {
                config.put("enable.idempotence", "true");
            }
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (int n = 0; n < Integer.parseInt(args[3]); n++) {
                    sent.add(producer.send(Records.make(
                        args[0], TIME + n, "key " + n, args[1] + " " + codec + " " + n)));
                }
                for (Future<RecordMetadata> each : sent) {
                    out.println(each.get().offset());
                }
            }
        }
    }

    static void read(String address, String[] args) {
        try (KafkaConsumer<String, String> consumer = consumer(address, "group.id", "unused")) {
            TopicPartition partition = new TopicPartition(args[0], 0);
            consumer.assign(Collections.singletonList(partition));
            consumer.seek(partition, 0);
            int left = Integer.parseInt(args[1]);
            while (left > 0) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL_MS)) {
                    out.println(String.join("\t", "" + record.offset(), Records.time(record),
                        "" + record.key(), record.value(), Records.headers(record)));
                    left--;
                }
            }
        }
    }

    /** Returns when standard input ends, which System.in.available() does not tell. */
    static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {
            }
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    static void member(String address, String[] args) throws Exception {
        try (KafkaConsumer<String, String> consumer = consumer(address, "group.id", args[0],
                "session.timeout.ms", "6000", "heartbeat.interval.ms", "1000")) {
            consumer.subscribe(Collections.singletonList(args[1]), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                    TreeSet<Integer> numbers = new TreeSet<>();
                    assigned.forEach(each -> numbers.add(each.partition()));
                    out.println("assigned " + numbers.stream()
                        .map(each -> "" + each).collect(Collectors.joining(",")));
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                    out.println("revoked " + revoked.size());
                }
            });
            Thread waiting = new Thread(Client::awaitEnd);
            waiting.setDaemon(true);
            waiting.start();
            while (waiting.isAlive()) {
                boolean any = false;
                for (ConsumerRecord<String, String> record : consumer.poll(POLL_MS)) {
                    out.println("message " + record.partition() + " " + record.offset());
                    any = true;
                }
                if (any) {
                    consumer.commitSync();
                }
            }
        }
        out.println("closed");
    }
}
