import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;

/** Records of 0.11 and later: with times and headers. */
class Records {
    static ProducerRecord<String, String> make(String topic, long time, String key, String value) {
        ProducerRecord<String, String> made = new ProducerRecord<>(topic, 0, time, key, value);
        made.headers().add("key", key.getBytes(StandardCharsets.UTF_8)).add("empty", new byte[0]);
        return made;
    }

    static String time(ConsumerRecord<String, String> record) {
        return "" + record.timestamp();
    }

    static String headers(ConsumerRecord<String, String> record) {
        List<String> shown = new ArrayList<>();
        for (Header header : record.headers()) {
            shown.add(header.key() + "=" + new String(header.value(), StandardCharsets.UTF_8));
        }
        return String.join(",", shown);
    }
}
