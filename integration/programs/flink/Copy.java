// A job of Flink that copies a topic into another one, exactly once; flink.py describes it.

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

public class Copy {
    static final int TASKS = 2;

    public static void main(String[] args) throws Exception {
        String address = args[0];
        String name = args[1];
        Path checkpoints = Path.of(args[2]);
        Configuration config = new Configuration();
        config.setString("execution.checkpointing.dir", address(checkpoints));
        config.setString("execution.checkpointing.interval", args[3] + " ms");
        config.setString(
            "execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        config.setString("execution.checkpointing.storage", "filesystem");
        config.setString("restart-strategy.type", "fixed-delay");
        config.setString("restart-strategy.fixed-delay.attempts", "1000");
        config.setString("restart-strategy.fixed-delay.delay", "500 ms");
        config.setString("taskmanager.memory.managed.size", "16m");
        config.setString("taskmanager.memory.network.min", "16m");
        config.setString("taskmanager.memory.network.max", "16m");
        latest(checkpoints).ifPresent(
            path -> config.setString("execution.state-recovery.path", address(path)));

        KafkaSource<String> source = KafkaSource.<String>builder()
            .setBootstrapServers(address)
            .setTopics(name + "-in")
            .setGroupId(name)
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
            .setBootstrapServers(address)
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix(name)
            .setProperty("transaction.timeout.ms", "600000")
            .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                .setTopic(name + "-out")
                .setValueSerializationSchema(new SimpleStringSchema())
                .build())
            .build();
        StreamExecutionEnvironment environment =
            StreamExecutionEnvironment.createLocalEnvironment(TASKS, config);
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "in")
            .map(value -> {
                Thread.sleep(1);
                return value;
            })
            .returns(String.class)
            .sinkTo(sink);
        environment.execute(name);
    }

    /** The last checkpoint that is complete, of any run: each goes on with the next number. */
    static Optional<Path> latest(Path directory) throws IOException {
        if (!Files.exists(directory)) {
            return Optional.empty();
        }
        try (Stream<Path> all = Files.walk(directory, 3)) {
            return all.filter(path -> path.endsWith("_metadata"))
                .map(Path::getParent)
                .max(Comparator.comparingLong(Copy::number))
                .map(Path::toAbsolutePath);
        }
    }

    /** As Flink reads it: a space is a space, not %20. */
    static String address(Path path) {
        return "file://" + path.toAbsolutePath();
    }

    static long number(Path checkpoint) {
        return Long.parseLong(checkpoint.getFileName().toString().substring("chk-".length()));
    }
}
