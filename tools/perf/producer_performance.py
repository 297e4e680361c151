"""kafka-producer-perf-test: how fast either producer sends (kafka.tools.ProducerPerformance)."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kafka08.metrics.meters import Meter
from kafka08.producer.batch import log_error
from kafka08.producer.config import ASYNC, DEFAULT_ENCODER, ProducerConfig
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.producer import Producer
from kafka08.settings.settings import COMPRESSION_CODECS
from tools.brokers import broker_list
from tools.options import Arguments, OptionParser
from tools.perf.csv_metrics import CSV_OPTIONS, csv_metrics
from tools.perf.perf_options import (
    MEGABYTE,
    PERF_OPTIONS,
    PerfOptions,
    decimal,
    perf_options,
    rate,
    run_threads,
)

logger = logging.getLogger("kafka.tools.ProducerPerformance$")

CLIENT_ID = "producer-performance"
SEND_BUFFER_BYTES = 64 * 1024
CSV_PERIOD_S = 1
ID_DIGITS = 10
HEADER = "start.time, end.time, compression, message.size, batch.size, total.data.sent.in.MB, "
HEADER += "MB.sec, total.data.sent.in.nMsg, nMsg.sec"


class OldSender:
    """The Scala producer; keys choose partitions and are not sent."""

    def __init__(self, args: Arguments, options: PerfOptions) -> None:
        settings = {
            **args.properties("producer.config"),
            "metadata.broker.list": args.value("broker-list"),
            "compression.codec": str(options.codec),
            "send.buffer.bytes": str(SEND_BUFFER_BYTES),
            "client.id": CLIENT_ID,
            "request.required.acks": str(args.value("request-num-acks")),
            "request.timeout.ms": str(args.value("request-timeout-ms")),
            "message.send.max.retries": str(args.value("producer-num-retries")),
            "retry.backoff.ms": str(args.value("producer-retry-backoff-ms")),
            "serializer.class": DEFAULT_ENCODER,
            "key.serializer.class": "kafka.serializer.NullEncoder",
            "partitioner.class": "kafka.producer.ByteArrayPartitioner",
        }
        if not args.has("sync"):
            settings["producer.type"] = ASYNC
            settings["batch.num.messages"] = str(options.batch_size)
            settings["queue.enqueue.timeout.ms"] = "-1"
        self._producer = Producer(ProducerConfig.from_properties(settings))

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        self._producer.send(KeyedMessage(topic, value, key))

    def metrics(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        self._producer.close()


class NewSender:
    """KafkaProducer; with ``--sync``, which the original ignores here, one record at a time."""

    def __init__(self, args: Arguments, options: PerfOptions) -> None:
        names = {number: name for name, number in COMPRESSION_CODECS.items()}
        self._sync = args.has("sync")
        self._producer = KafkaProducer(
            KafkaProducerConfig.known(args.properties("producer.config")),
            bootstrap_servers=args.value("broker-list"),
            send_buffer_bytes=SEND_BUFFER_BYTES,
            client_id=CLIENT_ID,
            acks=args.value("request-num-acks"),
            timeout_ms=args.value("request-timeout-ms"),
            retries=args.value("producer-num-retries"),
            retry_backoff_ms=args.value("producer-retry-backoff-ms"),
            compression_type=names.get(options.codec, str(options.codec)),
        )

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        if self._sync:
            self._producer.send(topic, value, key).result()
        else:
            self._producer.send(topic, value, key, callback=log_error)

    def metrics(self) -> dict[str, float]:
        return self._producer.metrics()

    def close(self) -> None:
        self._producer.close()


class Payloads:
    """Values by number: zeros, or text that names topic, thread and message."""

    def __init__(self, args: Arguments, options: PerfOptions, thread: int, first: int) -> None:
        self._size = options.message_size
        self._varies = args.has("vary-message-size")
        self._tagged = args.has("initial-message-id")
        self._first = (args.value("initial-message-id") or 0) + first
        self._thread = thread
        self._zeros = bytes(self._size)

    def __call__(self, topic: str, number: int) -> bytes:
        if not self._varies and not self._tagged:
            return self._zeros
        size = random.randint(1, self._size) if self._varies else self._size
        if not self._tagged:
            return bytes(size)
        tag = f"Topic:{topic}:ThreadID:{self._thread}:"
        tag += f"MessageID:{self._first + number:0{ID_DIGITS}d}:"
        return tag.ljust(size, "x").encode()


@dataclass
class Sending:
    """The messages that one thread sends: ``count`` to each topic."""

    sender: OldSender | NewSender
    topics: list[str]
    count: int
    payload: Callable[[str, int], bytes]
    gap_s: float
    messages: Meter = field(default_factory=Meter)
    bytes: Meter = field(default_factory=Meter)

    def run(self) -> None:
        for number in range(self.count):
            # The bytes of java.math.BigInteger.
            key = number.to_bytes(number.bit_length() // 8 + 1, "big")
            for topic in self.topics:
                value = self.payload(topic, number)
                try:
                    self.sender.send(topic, key, value)
                except Exception:
                    logger.exception("Error when sending message %r", value)
                    break
                self.messages.mark()
                self.bytes.mark(len(value))
                if self.gap_s > 0:
                    time.sleep(self.gap_s)
        try:
            self.sender.close()
        except Exception:
            logger.exception("Error when closing producer")


PARSER = OptionParser(
    None,
    PERF_OPTIONS,
    CSV_OPTIONS,
    """
--broker-list <hostname:port,..,hostname:port>  REQUIRED: The brokers to ask for metadata.
--topics <topic1,topic2..>  REQUIRED: The topics to write to.
--request-timeout-ms <Integer>  How long acknowledgements may take. (default: 3000)
--producer-num-retries <Integer>  How often what failed is sent again. (default: 3)
--producer-retry-backoff-ms <Integer>  The pause before it is sent again. (default: 100)
--request-num-acks <Integer>  Acknowledgements to wait for: 0, 1, or -1 for the whole isr.
    (default: -1)
--vary-message-size  Draw each message's size, up to --message-size.
--sync  Wait for each message's acknowledgement.
--threads <Integer: number of threads>  How many threads send. (default: 1)
--initial-message-id <Integer: initial message id>  Send text with numbers from this one on:
    'Topic:t:ThreadID:0:MessageID:0000000001:xxx...'
--message-send-gap-ms <Integer: message send time gap>  The pause after each message. (default: 0)
--new-producer  Send with the new producer.
""",
    later="""
--producer.config <config file>  A file of producer properties. Options count more.
""",
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv, "topics", "broker-list", "messages")
    broker_list(PARSER, args.value("broker-list"))
    options = perf_options(PARSER, args)
    topics = args.value("topics").split(",")
    threads = args.value("threads")
    share = options.messages // threads
    make = NewSender if args.has("new-producer") else OldSender
    gap_s = args.value("message-send-gap-ms") / 1000
    if not options.hide_header:
        print(HEADER, flush=True)
    started = time.time()
    sendings = [
        Sending(make(args, options), topics, share, Payloads(args, options, n, share * n), gap_s)
        for n in range(threads)
    ]
    total = share * threads * len(topics)
    meters = {
        "MessagesPerSec": _sum([sending.messages for sending in sendings]),
        "BytesPerSec": _sum([sending.bytes for sending in sendings]),
    }
    gauges = sendings[0].sender.metrics if sendings else dict
    with csv_metrics(args, CSV_PERIOD_S, meters, gauges):
        _, end = run_threads(
            [sending.run for sending in sendings],
            lambda: sum(sending.messages.count for sending in sendings),
            total,
            ",".join(topics),
        )
    print(_summary(sendings, options, started, end), flush=True)
    return 0


def _sum(parts: list[Meter]) -> Callable[[], Meter]:
    """Gives the meter of all threads."""
    total = Meter()

    def read() -> Meter:
        total.count = sum(part.count for part in parts)
        return total

    return read


def _summary(sendings: list[Sending], options: PerfOptions, begin: float, end: float) -> str:
    megabytes = sum(sending.bytes.count for sending in sendings) / MEGABYTE
    messages = sum(sending.messages.count for sending in sendings)
    columns = [
        options.show_time(begin),
        options.show_time(end),
        str(options.codec),
        str(options.message_size),
        str(options.batch_size),
        decimal(megabytes, 2),
        decimal(rate(megabytes, end - begin)),
        str(messages),
        decimal(rate(messages, end - begin)),
    ]
    return ", ".join(columns)
