"""kafka-mirror-maker: copies topics from one cluster to another (kafka.tools.MirrorMaker).

Offsets are committed when the target has acknowledged what they cover, so that a mirror that is
killed repeats messages and loses none. ``--new.consumer``, ``--abort.on.send.failure`` and
``--offset.commit.interval.ms`` are of later releases; ``--modern.producer`` and ``--new.consumer``
reach clusters of later releases; ``--metrics.port`` is of this project. Here the parts are put
together; what they do is ``pipeline``'s and ``modern``'s.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka08.client.security import ClientSecurity
from kafka08.common import java_bytes_hash, scala_abs
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.filters import Blacklist, TopicFilter, Whitelist
from kafka08.errors import ConfigError
from kafka08.message.compression import NAMES
from kafka08.metrics.clients import ClientCollector
from kafka08.producer.config import ProducerConfig
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.partitioners import StickyRandom
from kafka08.producer.serializers import partitioner_named
from kafka08.settings import properties as java_properties
from kafka08.settings.settings import INT_MAX
from tools.mirror import ends
from tools.mirror.channel import DataChannel
from tools.mirror.modern import SETTLE_S, ModernReader, ModernTarget, confluent_kafka
from tools.mirror.page import serve
from tools.mirror.pipeline import Copier, Done, SourceMessage, SourceReader, Target, Window
from tools.options import Arguments, OptionParser
from tools.shutdown import at_end, hold

logger = logging.getLogger("kafka.tools.MirrorMaker$")

FAILED = 255
_METRICS = "metrics.port"
OLD_PARTITIONER = "kafka.producer.ByteArrayPartitioner"
COMMIT_INTERVAL_MS = 60000
# Nothing is given up on unless the settings say so.
PATIENT = {
    "acks": "-1",
    "retries": str(INT_MAX),
    "delivery.timeout.ms": str(INT_MAX),
    "metadata.fetch.timeout.ms": str(INT_MAX),
}
# The old producer's settings, and the new one's that mean the same.
RENAMED = {
    "metadata.broker.list": "bootstrap.servers",
    "request.required.acks": "acks",
    "request.timeout.ms": "timeout.ms",
    "message.send.max.retries": "retries",
    "retry.backoff.ms": "retry.backoff.ms",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "queue.buffering.max.ms": "linger.ms",
    "compressed.topics": "compressed.topics",
    "send.buffer.bytes": "send.buffer.bytes",
    "client.id": "client.id",
}


@dataclass
class Lost:
    """Says once that messages lose what the target does not take."""

    _is_told: bool = False

    def tell(self, message: SourceMessage) -> None:
        if not self._is_told:
            self._is_told = True
            logger.warning(
                "Messages lose their timestamps and headers, as the first of %s does: %s is false "
                "in the producer's file, or the target does not serve the requests of later "
                "releases",
                *(message.topic, ends.SETTING),
            )


class OurTarget:
    """A KafkaProducer, from the settings of either producer.

    It keeps timestamps and headers if its settings have api.versions.request. The first message
    that has some and loses them is logged.
    """

    def __init__(self, producer: KafkaProducer, lost: Lost | None = None) -> None:
        self._producer = producer
        self._lost = lost or Lost()
        self._timed = producer.config.api_versions_request

    def send(self, message: SourceMessage, key: bytes | None, done: Done) -> None:
        timestamp = message.timestamp if message.timestamp >= 0 else None
        if not self._timed and (timestamp is not None or message.headers):
            self._lost.tell(message)
        self._producer.send(
            message.topic,
            message.value,
            key,
            callback=lambda _metadata, error: done(error),
            timestamp=timestamp if self._timed else None,
            headers=message.headers if self._timed else None,
        )

    def close(self, timeout: float) -> None:
        self._producer.close(timeout)


class Targets:
    """The producers; equal keys go through the same one, the others in turn."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets = targets
        self._turn = itertools.cycle(targets)

    def choose(self, key: bytes | None) -> Target:
        if len(self._targets) == 1:
            return self._targets[0]
        if key is None:
            return next(self._turn)
        return self._targets[scala_abs(java_bytes_hash(key)) % len(self._targets)]

    def close(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        for target in self._targets:
            target.close(max(0.0, deadline - time.monotonic()))


class Mirror:
    """Everything that runs; ``failed`` and ``close`` may come from any thread. ``channel``: if
    its figures are read."""

    def __init__(self, targets: Targets, channel: DataChannel | None = None) -> None:
        self.ended = threading.Event()
        self._channel = channel
        self.failure: BaseException | None = None
        self._targets = targets
        self._windows: list[Window] = []
        self._copiers: list[Copier] = []
        self._sources: list[ConsumerConnector | ModernReader] = []

    def failed(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self.ended.set()

    def window(self, limit: int, skip_failed: bool) -> Window:
        window = Window(limit, self.failed, skip_failed=skip_failed, channel=self._channel)
        self._windows.append(window)
        return window

    def add_source(self, source: ConsumerConnector | ModernReader) -> None:
        """Closing it commits."""
        self._sources.append(source)

    def add_readers(self, readers: Sequence[SourceReader], window: Window) -> None:
        for reader in readers:
            number = len(self._copiers)
            if self._channel is not None:
                self._channel.add_stream()
            self._copiers.append(Copier(number, reader, window, self._targets.choose, self.failed))

    def run(self) -> int:
        """Until something fails; the exit status."""
        for copier in self._copiers:
            copier.start()
        while not self.ended.wait(1.0):
            pass
        logger.critical("Stopping the whole mirror maker: %s", self.failure)
        return FAILED

    def close(self) -> None:
        """Wait (with a limit) for sends in flight, commit, then leave the groups."""
        for window in self._windows:
            window.stop()
        deadline = time.monotonic() + SETTLE_S
        for window in self._windows:
            window.settle(max(0.01, deadline - time.monotonic()))
        for source in self._sources:
            try:
                source.close()
            except Exception:
                logger.critical("error during shutdown", exc_info=True)
        self._targets.close(max(0.0, deadline - time.monotonic()))
        logger.info("Kafka mirror maker shutdown successfully")


PARSER = OptionParser(
    "Continuously copy data between two Kafka clusters.",
    """
--consumer.config <config file>  A file of consumer properties: the cluster to copy from. May be
    given for several.
--producer.config <config file>  A file of producer properties: the cluster to copy to.
--new.producer  The producer's file is for the new producer.
--num.producers <Integer: Number of producers>  How many producers. (default: 1)
--num.streams <Integer: Number of threads>  How many threads consume, for each consumer.config.
    (default: 1)
--queue.size <Integer: Queue size in terms of number of messages>  How many messages of a producer
    may be under way. (default: 10000)
--whitelist <Java regex (String)>  The topics to mirror.
--blacklist <Java regex (String)>  The topics not to mirror.
--help  Print this.
""",
    later="""
--new.consumer  The consumer's files are for clusters of 0.10 and later (needs confluent-kafka).
--modern.producer  The producer's file is for a cluster of 0.10 or later (needs confluent-kafka).
--abort.on.send.failure <true or false>  false: log a message that cannot be sent and go on, instead
    of stopping. (default: true)
--offset.commit.interval.ms <Integer: ms>  How often offsets are committed; auto.commit.interval.ms
    of the file without it.
--metrics.port <Integer: port>  Serve the metrics of consumers, producers and the data channel to
    Prometheus, at this port of 127.0.0.1.
""",
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv, "consumer.config", "producer.config")
    if args.has("whitelist") == args.has("blacklist"):
        print("Exactly one of whitelist or blacklist is required.")
        return 1
    topics: TopicFilter = (
        Whitelist(args.value("whitelist"))
        if args.has("whitelist")
        else Blacklist(args.value("blacklist"))
    )
    channel = DataChannel() if args.has(_METRICS) else None
    clients = ClientCollector() if channel is None else ClientCollector(channel)
    into, sources = _ends(args)
    ends.settle(into, sources, time.sleep)
    mirror = Mirror(_targets(args, into.settings, clients), channel)
    with at_end(mirror.close):
        if args.has(_METRICS):
            serve(args.value(_METRICS), clients, _METRICS)
        for source in sources:
            if args.has("new.consumer"):
                _add_modern_source(mirror, args, source.settings, topics)
            else:
                clients.add(_add_source(mirror, args, source.settings, topics))
        return mirror.run()


def _ends(args: Arguments) -> tuple[ends.End, list[ends.End]]:
    """The target, and the sources. Raises KafkaError before any is asked, if it cannot be used."""
    if args.value("num.producers") < 1:
        raise ConfigError(
            f"num.producers has value {args.value('num.producers')} which is not at least 1."
        )
    is_modern, is_new = args.has("modern.producer"), args.has("new.consumer")
    if is_modern or is_new:
        confluent_kafka()
    path = args.value("producer.config")
    into = ends.target(path, java_properties.load(path), is_later=is_modern)
    if not is_modern:
        read = new_settings if args.has("new.producer") else old_settings
        KafkaProducerConfig.of(read(into.settings))
    sources = [
        ends.source(path, java_properties.load(path), is_later=is_new)
        for path in args.values("consumer.config")
    ]
    for source in () if is_new else sources:
        ConsumerConfig.from_properties(source.settings)
    return into, sources


# --- the target


def _targets(args: Arguments, given: Mapping[str, str], clients: ClientCollector) -> Targets:
    count = args.value("num.producers")
    made: list[Target] = []
    lost = Lost()
    for number in range(count):
        settings = {**given, "client.id": f"{given.get('client.id', '')}-{number}"}
        if args.has("modern.producer"):
            made.append(ModernTarget(settings))
            continue
        if args.has("new.producer"):
            producer = KafkaProducer(new_settings(settings))
        else:  # records go to the partitions the old producer sends them to
            producer = KafkaProducer(
                old_settings(settings),
                partitioner=partitioner_named(given.get("partitioner.class", OLD_PARTITIONER)),
                unkeyed=StickyRandom,
            )
        clients.add(producer)
        made.append(OurTarget(producer, lost))
    return Targets(made)


def new_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Settings for KafkaProducer: those of the file, else long timeouts and many retries."""
    return PATIENT | KafkaProducerConfig.known(given)


def old_settings(given: Mapping[str, str]) -> dict[str, str]:
    """The same for the old producer's settings. Raises ConfigError as it does."""
    config = ProducerConfig.from_properties(given)
    renamed = {new: given[old] for old, new in RENAMED.items() if old in given}
    kept = {*ClientSecurity.keys(), ends.SETTING}
    renamed |= {key: given[key] for key in kept & given.keys()}
    renamed["compression.type"] = NAMES[config.compression_codec]
    if config.topic_metadata_refresh_interval_ms <= 0:
        renamed.pop("metadata.max.age.ms", None)
    return {**PATIENT, **renamed}


# --- the sources


def _window(mirror: Mirror, args: Arguments) -> Window:
    """As many messages may be under way at once as the original's queues hold."""
    limit = args.value("queue.size") * args.value("num.producers")
    if limit < 1:
        raise ConfigError(f"queue.size has value {args.value('queue.size')}: not at least 1.")
    return mirror.window(limit, str(args.value("abort.on.send.failure")).lower() == "false")


def _add_source(
    mirror: Mirror, args: Arguments, given: dict[str, str], topics: TopicFilter
) -> ConsumerConnector:
    if args.has("offset.commit.interval.ms"):
        given["auto.commit.interval.ms"] = str(args.value("offset.commit.interval.ms"))
    # Without commits a mirror that restarts would start over.
    config = ConsumerConfig.from_properties({**given, "auto.commit.enable": "true"})
    window = _window(mirror, args)

    def settle() -> None:
        # At the end ``Mirror.close`` has waited.
        window.settle(0.0 if window.stopping else None)

    connector = ConsumerConnector(config, before_release=settle)
    mirror.add_source(connector)
    try:
        streams = connector.create_message_streams_by_filter(topics, args.value("num.streams"))
    except BaseException:
        hold()
        logger.critical("Unable to create stream - shutting down mirror maker.")
        raise
    mirror.add_readers(streams, window)
    return connector


def _add_modern_source(
    mirror: Mirror, args: Arguments, given: dict[str, str], topics: TopicFilter
) -> None:
    interval = given.pop("auto.commit.interval.ms", str(COMMIT_INTERVAL_MS))
    if args.has("offset.commit.interval.ms"):
        interval = args.value("offset.commit.interval.ms")
    for _ in range(args.value("num.streams")):
        window = _window(mirror, args)
        reader = ModernReader(given, topics, window, commit_interval_ms=int(interval))
        mirror.add_source(reader)
        mirror.add_readers([reader], window)
