import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Records of 0.10: with times, without headers. */
class Records {
    static ProducerRecord<String, String> make(String topic, long time, String key, String value) {
        return new ProducerRecord<>(topic, 0, time, key, value);
    }

    static String time(ConsumerRecord<String, String> record) {
        return "" + record.timestamp();
    }

    static String headers(ConsumerRecord<String, String> record) {
        return "";
    }
}
