// An application of Kafka Streams; streams.py describes what it makes of its topics.

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;

public class Application {
    static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static final Serde<String> TEXT = Serdes.String();

    public static void main(String[] args) {
        String name = args[1];
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, name);
        config.put(StreamsConfig.STATE_DIR_CONFIG, args[2]);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        config.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        config.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        config.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
        config.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 1000);
        KafkaStreams streams = new KafkaStreams(topology(name).build(), config);
        streams.setGlobalStateRestoreListener(new StateRestoreListener() {
            @Override
            public void onRestoreStart(TopicPartition from, String store, long start, long end) {
            }

            @Override
            public void onBatchRestored(TopicPartition from, String store, long end, long count) {
            }

            @Override
            public void onRestoreEnd(TopicPartition from, String store, long count) {
                out.println("restored " + store + " " + from.partition() + " " + count);
            }
        });
        streams.setStateListener((now, before) -> out.println("state " + now));
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    static StreamsBuilder topology(String name) {
        StreamsBuilder builder = new StreamsBuilder();
        // "CUSTOMER NUMBER", keyed by what is not the customer: goes through a repartition topic
        KStream<String, String> orders = builder.stream(name + "-orders", Consumed.with(TEXT, TEXT));
        KStream<String, String> byCustomer = orders.map((key, value) -> {
            String[] words = value.split(" ");
            return KeyValue.pair(words[0], words[1]);
        });
        byCustomer.groupByKey(Grouped.with("by-customer", TEXT, TEXT))
            .aggregate(() -> "", (customer, number, numbers) -> with(numbers, number),
                Materialized.as("numbers"))
            .toStream().to(name + "-numbers", Produced.with(TEXT, TEXT));
        orders.groupByKey(Grouped.with("by-key", TEXT, TEXT))
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), Duration.ofDays(1)))
            .aggregate(() -> "", (key, value, numbers) -> with(numbers, value.split(" ")[1]),
                Materialized.as("windows"))
            .toStream((window, value) -> window.key() + "@" + window.window().start())
            .to(name + "-windows", Produced.with(TEXT, TEXT));
        KStream<String, String> payments =
            builder.stream(name + "-payments", Consumed.with(TEXT, TEXT));
        orders.join(payments, (order, payment) -> order + " " + payment,
                JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(5), Duration.ofDays(1)),
                StreamJoined.with(TEXT, TEXT, TEXT).withName("paid").withStoreName("paid"))
            .to(name + "-paid", Produced.with(TEXT, TEXT));
        return builder;
    }

    /** A set of numbers, as text: to add one twice changes nothing. */
    static String with(String numbers, String number) {
        TreeSet<Integer> found = new TreeSet<>();
        if (!numbers.isEmpty()) {
            Arrays.stream(numbers.split(",")).map(Integer::valueOf).forEach(found::add);
        }
        found.add(Integer.valueOf(number));
        return found.stream().map(String::valueOf).collect(Collectors.joining(","));
    }
}
