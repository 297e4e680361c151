// Java's client at work; programs.py describes the actions and what they print.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

public class LaterClient {
    static final long TIME = 1_600_000_000_000L;
    static final Duration POLL = Duration.ofMillis(100);
    static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static String address;

    public static void main(String[] args) throws Exception {
        address = args[1];
        String[] rest = Arrays.copyOfRange(args, 2, args.length);
        switch (args[0]) {
            case "write" -> write(rest);
            case "read" -> read(rest, "read_uncommitted");
            case "committed" -> read(rest, "read_committed");
            case "times" -> times(rest);
            case "member" -> member(rest);
            case "admin" -> admin(rest[0]);
            case "send" -> send(rest);
            case "transactions" -> transactions(rest);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    static Properties common(String kind) {
        Properties found = new Properties();
        String codec = "org.apache.kafka.common.serialization.ByteArray";
        found.put("bootstrap.servers", address);
        if (kind.equals("producer")) {
            found.put("key.serializer", codec + "Serializer");
            found.put("value.serializer", codec + "Serializer");
        } else {
            found.put("key.deserializer", codec + "Deserializer");
            found.put("value.deserializer", codec + "Deserializer");
            found.put("auto.offset.reset", "earliest");
            found.put("enable.auto.commit", "false");
        }
        return found;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] data) {
        return data == null ? "null" : new String(data, StandardCharsets.UTF_8);
    }

    static void write(String[] args) throws Exception {
        for (String codec : args[1].split(",")) {
            Properties config = common("producer");
            config.put("compression.type", codec);
            config.put("acks", "all");
            config.put("linger.ms", "50");
            config.put("enable.idempotence", args[3]);
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config)) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (int n = 0; n < Integer.parseInt(args[2]); n++) {
                    List<Header> headers = List.of(
                        new RecordHeader("codec", bytes(codec)), new RecordHeader("empty", bytes("")));
                    sent.add(producer.send(new ProducerRecord<>(
                        args[0], 0, TIME + n, bytes("key " + n), bytes(codec + " " + n), headers)));
                }
                for (Future<RecordMetadata> each : sent) {
                    out.println(each.get().offset());
                }
            }
        }
    }

    // Each callback says which record it is for: they may come in any order after an error.
    static void send(String[] args) throws Exception {
        Properties config = common("producer");
        config.put("compression.type", args[2]);
        config.put("enable.idempotence", "true");
        config.put("acks", "all");
        config.put("linger.ms", "2");
        config.put("request.timeout.ms", args[3]);
        config.put("delivery.timeout.ms", "" + Integer.MAX_VALUE);
        config.put("max.block.ms", "" + Long.MAX_VALUE);
        config.put("reconnect.backoff.max.ms", "500");
        config.put("retry.backoff.max.ms", "500");
        settings(config, args, 4);
        int partition = Integer.parseInt(args[1]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config)) {
            long count = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                long sequence = count++;
                String[] words = line.split(" ");
                byte[] value = HexFormat.of().parseHex(words[0]);
                ProducerRecord<byte[], byte[]> record =
                    new ProducerRecord<>(args[0], partition, null, value);
                if (words.length > 1) {
                    record.headers().add("header", HexFormat.of().parseHex(words[1]));
                }
                producer.send(record, (stored, error) ->
                    out.println(sequence + (error == null ? " " + stored.offset() : " -1 " + error)));
            }
        }
    }

    static void settings(Properties config, String[] args, int first) {
        for (int at = first; at < args.length; at++) {
            String[] words = args[at].split("=", 2);
            config.put(words[0], words[1]);
        }
    }

    static String shown(ConsumerRecord<byte[], byte[]> record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(header.key() + "=" + text(header.value()));
        }
        return String.join("\t", record.topic(), "" + record.offset(), "" + record.timestamp(),
            text(record.key()), text(record.value()), String.join(",", headers));
    }

    static void read(String[] args, String isolation) {
        Properties config = common("consumer");
        config.put("isolation.level", isolation);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config)) {
            for (int at = 0; at < args.length; at += 2) {
                TopicPartition partition = new TopicPartition(args[at], 0);
                consumer.assign(List.of(partition));
                consumer.seekToBeginning(List.of(partition));
                int left = Integer.parseInt(args[at + 1]);
                while (left > 0) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                        out.println(shown(record));
                        left--;
                    }
                }
            }
        }
    }

    static void times(String[] args) {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(common("consumer"))) {
            TopicPartition partition = new TopicPartition(args[0], 0);
            out.println(consumer.beginningOffsets(List.of(partition)).get(partition));
            out.println(consumer.endOffsets(List.of(partition)).get(partition));
            for (int at = 1; at < args.length; at++) {
                Map<TopicPartition, Long> asked = Map.of(partition, Long.parseLong(args[at]));
                OffsetAndTimestamp found = consumer.offsetsForTimes(asked).get(partition);
                out.println(found == null ? -1 : found.offset());
            }
        }
    }

    /** Returns when standard input ends, which System.in.available() does not tell. */
    static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static void member(String[] args) throws Exception {
        Properties config = common("consumer");
        config.put("group.id", args[0]);
        config.put("session.timeout.ms", "6000");
        config.put("heartbeat.interval.ms", "1000");
        settings(config, args, 2);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config)) {
            consumer.subscribe(List.of(args[1]), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                    out.println("assigned " + consumer.assignment().stream()
                        .map(each -> "" + each.partition()).sorted().collect(Collectors.joining(",")));
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                    out.println("revoked " + revoked.size());
                }
            });
            Thread waiting = new Thread(LaterClient::awaitEnd);
            waiting.setDaemon(true);
            waiting.start();
            while (waiting.isAlive()) {
                boolean any = false;
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
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

    static void admin(String topic) throws Exception {
        try (Admin admin = Admin.create(common("admin"))) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1))).all().get();
            out.println("listed " + admin.listTopics().names().get().contains(topic));
            AlterConfigOp set = new AlterConfigOp(
                new ConfigEntry("retention.ms", "123456"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get();
            out.println("retention " + admin.describeConfigs(List.of(resource)).all().get()
                .get(resource).get("retention.ms").value());
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
            out.println("partitions " + admin.describeTopics(List.of(topic)).allTopicNames().get()
                .get(topic).partitions().size());
            admin.describeCluster().clusterId().get();
            admin.deleteTopics(List.of(topic)).all().get();
            out.println("listed " + admin.listTopics().names().get().contains(topic));
        }
    }

    static void transactions(String[] args) throws Exception {
        Properties config = common("producer");
        config.put("transactional.id", args[0]);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config)) {
            producer.initTransactions();
            for (int n = 0; n < Integer.parseInt(args[3]); n++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(args[1], 0, null, bytes(args[0] + " " + n))).get();
                producer.sendOffsetsToTransaction(
                    Map.of(new TopicPartition(args[1], 0), new OffsetAndMetadata(n + 1)),
                    new ConsumerGroupMetadata(args[2]));
                if (n % 3 == 2) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        out.println("done");
    }
}
