"""TestEndToEndLatency: from send to receipt, one message at a time.

Mirrors kafka.tools.TestEndToEndLatency; ends with an error instead of waiting without end
when a message does not come back.
"""

from __future__ import annotations

import sys
import time

from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.settings import properties
from kafka08.settings.settings import INT
from tools.perf.perf_options import percentiles
from tools.shutdown import at_end

USAGE = (
    "USAGE: java kafka.tools.TestEndToEndLatency$ broker_list zookeeper_connect topic num_messages "
    "consumer_fetch_max_wait producer_acks [properties_file]"
)
SETTLE_S = 5.0
MESSAGE = b"hello there beautiful"
SHOWN_EVERY = 1000
PATIENCE_MS = 60000


def main(argv: list[str]) -> int:
    if len(argv) not in (6, 7):
        print(USAGE, file=sys.stderr)
        return 1
    brokers, zookeeper, topic, *numbers = argv[:6]
    messages, wait_ms, acks = map(INT.parse, numbers)
    given = properties.load(argv[6]) if len(argv) == 7 else {}
    required = {"group.id": topic, "zookeeper.connect": zookeeper}
    config = ConsumerConfig.from_properties({**given, **required}).replace(
        auto_commit_enable=False,
        auto_offset_reset="largest",
        fetch_wait_max_ms=wait_ms,
        socket_timeout_ms=1201000,
        consumer_timeout_ms=PATIENCE_MS,
    )
    connector = ConsumerConnector(config)
    with at_end(connector.close):
        [stream] = connector.create_message_streams({topic: 1})[topic]
        with KafkaProducer(
            KafkaProducerConfig.known(given), bootstrap_servers=brokers, linger_ms=0, acks=acks
        ) as producer:
            # The consumer must have found the end of the log before the first message is sent.
            time.sleep(SETTLE_S)
            latencies = []
            for number in range(messages):
                begin = time.perf_counter()
                producer.send(topic, MESSAGE)
                next(stream)
                latencies.append((time.perf_counter() - begin) * 1000)
                if number % SHOWN_EVERY == 0:
                    print(f"{number}\t{latencies[-1]}", flush=True)
        connector.commit_offsets()
    print(summary(latencies), flush=True)
    return 0


def summary(latencies_ms: list[float]) -> str:
    """The average, and percentiles cut to whole milliseconds."""
    if not latencies_ms:
        return "Avg latency: NaN ms\n"
    average = sum(latencies_ms) / len(latencies_ms)
    shown = percentiles(map(int, latencies_ms), 0.5, 0.99, 0.999)
    listed = "Percentiles: 50th = {}, 99th = {}, 99.9th = {}".format(*shown)
    return f"Avg latency: {average:.4f} ms\n\n{listed}"
