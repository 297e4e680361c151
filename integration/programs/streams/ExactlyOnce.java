// Sums and counts of an application of Kafka Streams; exactly_once.py describes them.

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

public class ExactlyOnce {
    static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static final Serde<String> TEXT = Serdes.String();

    public static void main(String[] args) {
        String name = args[1];
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, name);
        config.put(StreamsConfig.STATE_DIR_CONFIG, args[2]);
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        config.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, args[3]);
        config.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        config.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
        config.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 1000);
        config.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 10000);
        KafkaStreams streams = new KafkaStreams(topology(name).build(), config);
        streams.setStateListener((now, before) -> out.println("state " + now));
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    static StreamsBuilder topology(String name) {
        StreamsBuilder builder = new StreamsBuilder();
        KGroupedStream<String, String> byCustomer =
            builder.stream(name + "-orders", Consumed.with(TEXT, TEXT))
                .map((key, value) -> {
                    String[] words = value.split(" ");
                    return KeyValue.pair(words[0], words[1]);
                })
                .groupByKey(Grouped.with("by-customer", TEXT, TEXT));
        byCustomer
            .aggregate(() -> "0 0", (customer, number, so_far) -> {
                String[] words = so_far.split(" ");
                long count = Long.parseLong(words[0]) + 1;
                long sum = Long.parseLong(words[1]) + Long.parseLong(number);
                return count + " " + sum;
            }, Materialized.as("sums"))
            .toStream().to(name + "-sums", Produced.with(TEXT, TEXT));
        return builder;
    }
}
