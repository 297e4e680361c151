import java.util.Collections;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;

/** ADDRESS TOPIC TIME ...: the first offset of partition 0, the next, and those of times. */
public class Times {
    public static void main(String[] args) {
        try (KafkaConsumer<String, String> consumer = Client.consumer(args[0], "group.id", "unused")) {
            TopicPartition partition = new TopicPartition(args[1], 0);
            var one = Collections.singletonList(partition);
            Client.out.println(consumer.beginningOffsets(one).get(partition));
            Client.out.println(consumer.endOffsets(one).get(partition));
            for (int at = 2; at < args.length; at++) {
                OffsetAndTimestamp found = consumer.offsetsForTimes(
                    Collections.singletonMap(partition, Long.parseLong(args[at]))).get(partition);
                Client.out.println(found == null ? "none" : found.offset() + " " + found.timestamp());
            }
        }
    }
}
