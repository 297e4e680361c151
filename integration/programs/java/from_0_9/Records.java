import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Records of 0.9: without times and headers. */
class Records {
    static ProducerRecord<String, String> make(String topic, long time, String key, String value) {
        return new ProducerRecord<>(topic, 0, key, value);
    }

    static String time(ConsumerRecord<String, String> record) {
        return "-1";
    }

    static String headers(ConsumerRecord<String, String> record) {
        return "";
    }
}
