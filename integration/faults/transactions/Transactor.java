// A transactional producer of Java's client, and a member of a group if one is named; transactional.py
// tells it what to do, a line at a time, and describes the answers.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnsupportedVersionException;

public class Transactor {
    static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static final Properties config = new Properties();
    static String group;
    static String topic;
    static KafkaProducer<byte[], byte[]> producer;
    static KafkaConsumer<byte[], byte[]> consumer;

    // NAME=VALUE ...: settings of the producer, "group" and "topic" those of the member.
    public static void main(String[] args) throws Exception {
        String codec = "org.apache.kafka.common.serialization.ByteArray";
        config.put("key.serializer", codec + "Serializer");
        config.put("value.serializer", codec + "Serializer");
        config.put("key.deserializer", codec + "Deserializer");
        config.put("value.deserializer", codec + "Deserializer");
        for (String each : args) {
            String[] words = each.split("=", 2);
            config.put(words[0], words[1]);
        }
        group = (String) config.remove("group");
        topic = (String) config.remove("topic");
        if (config.getProperty("action", "").equals("whole")) {
            whole();
            return;
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println(answer(line.split(" ")));
        }
        Runtime.getRuntime().halt(0);
    }

    static String answer(String[] words) {
        try {
            return ("ok " + act(words)).trim();
        } catch (ProducerFencedException | InvalidProducerEpochException | AuthorizationException
                | OutOfOrderSequenceException | UnsupportedVersionException | TimeoutException
                | IllegalStateException error) {
            return "fatal " + error;
        } catch (KafkaException error) {
            return "abort " + error;
        }
    }

    static String act(String[] words) {
        switch (words[0]) {
            case "open" -> open();
            case "begin" -> producer.beginTransaction();
            case "send" -> producer.send(new ProducerRecord<>(
                words[1], Integer.parseInt(words[2]), null, HexFormat.of().parseHex(words[3])));
            case "flush" -> producer.flush();
            case "offsets" -> producer.sendOffsetsToTransaction(positions(), consumer.groupMetadata());
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "rewind" -> rewind();
            case "poll" -> {
                return polled();
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    // What a former producer and member of the same names have left is theirs no more.
    static void open() {
        if (producer != null) {
            producer.close(Duration.ZERO);
        }
        producer = new KafkaProducer<>(config);
        producer.initTransactions();
        if (group != null) {
            if (consumer != null) {
                consumer.close(Duration.ZERO);
            }
            consumer = new KafkaConsumer<>(reading(group));
            consumer.subscribe(List.of(topic));
        }
    }

    static Properties reading(String group) {
        Properties found = new Properties();
        found.putAll(config);
        found.put("group.id", group);
        found.put("isolation.level", "read_committed");
        found.put("enable.auto.commit", "false");
        found.put("auto.offset.reset", "earliest");
        found.put("session.timeout.ms", "6000");
        found.put("heartbeat.interval.ms", "1000");
        found.put("max.poll.records", "20");
        found.put("default.api.timeout.ms", "10000");
        found.put("partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.RangeAssignor");
        return found;
    }

    static Map<TopicPartition, OffsetAndMetadata> positions() {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        for (TopicPartition each : consumer.assignment()) {
            found.put(each, new OffsetAndMetadata(consumer.position(each)));
        }
        return found;
    }

    static void rewind() {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition each : consumer.assignment()) {
            OffsetAndMetadata found = committed.get(each);
            if (found == null) {
                consumer.seekToBeginning(List.of(each));
            } else {
                consumer.seek(each, found.offset());
            }
        }
    }

    static String shown(ConsumerRecord<byte[], byte[]> record) {
        String value = HexFormat.of().formatHex(record.value());
        return record.partition() + ":" + record.offset() + ":" + value;
    }

    static String polled() {
        StringBuilder found = new StringBuilder();
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(300))) {
            found.append(shown(record)).append(' ');
        }
        return found.toString();
    }

    // Prints all committed records of the topic, up to the last stable offsets.
    static void whole() {
        try (KafkaConsumer<byte[], byte[]> reader = new KafkaConsumer<>(reading("nobody"))) {
            List<TopicPartition> all = reader.partitionsFor(topic).stream()
                .map(each -> new TopicPartition(topic, each.partition()))
                .collect(Collectors.toList());
            reader.assign(all);
            reader.seekToBeginning(all);
            Map<TopicPartition, Long> ends = reader.endOffsets(all);
            while (!all.stream().allMatch(each -> reader.position(each) >= ends.get(each))) {
                for (ConsumerRecord<byte[], byte[]> record : reader.poll(Duration.ofMillis(300))) {
                    out.println(shown(record));
                }
            }
        }
    }
}
