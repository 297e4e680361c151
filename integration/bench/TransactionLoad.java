// Java's producers, each with a transactional id of its own and a thread: transactions of so many
// records of 100 bytes, one after the other. Called with ADDRESS TOPIC PARTITIONS PRODUCERS RECORDS LINGER_MS;
// warms up, prints "ready", goes on from a line in standard input to the next one, and prints the
// transactions and the seconds between the two.

import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

public class TransactionLoad {
    static final AtomicLong done = new AtomicLong();
    static volatile boolean ending;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int partitions = Integer.parseInt(args[2]);
        int producers = Integer.parseInt(args[3]);
        int records = Integer.parseInt(args[4]);
        CountDownLatch warm = new CountDownLatch(producers);
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < producers; number++) {
            Properties config = new Properties();
            String serializer = "org.apache.kafka.common.serialization.ByteArraySerializer";
            config.put("bootstrap.servers", args[0]);
            config.put("key.serializer", serializer);
            config.put("value.serializer", serializer);
            config.put("transactional.id", topic + "-" + number);
            config.put("linger.ms", args[5]);
            config.put("buffer.memory", producers > 1 ? "2097152" : "33554432");
            int first = number;
            threads.add(new Thread(() -> run(config, topic, partitions, first, records, warm)));
        }
        threads.forEach(Thread::start);
        warm.await();
        System.out.println("ready");
        System.in.read();
        long begin = System.nanoTime();
        long before = done.get();
        System.in.read();
        long transactions = done.get() - before;
        double seconds = (System.nanoTime() - begin) / 1e9;
        System.out.println(transactions + " " + seconds);
        ending = true;
        for (Thread each : threads) {
            each.join();
        }
    }

    static void run(
            Properties config, String topic, int partitions, int first, int records,
            CountDownLatch warm) {
        byte[] value = new byte[100];
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config)) {
            producer.initTransactions();
            long warmed = System.nanoTime() + 2_000_000_000L;
            long sent = first;
            while (!ending) {
                producer.beginTransaction();
                for (int n = 0; n < records; n++) {
                    int partition = (int) (sent++ % partitions);
                    producer.send(new ProducerRecord<>(topic, partition, null, value));
                }
                producer.commitTransaction();
                done.incrementAndGet();
                if (System.nanoTime() > warmed) {
                    warmed = Long.MAX_VALUE;
                    warm.countDown();
                }
            }
        }
    }
}
