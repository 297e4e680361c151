"""All libraries write and read each other's messages, with every form a message may have.

``test_clients`` does this for the command-line tools. Here it is our modules, kafka-python,
librdkafka and the original's Java producer and consumer, each with each, on both brokers: nulls,
empty keys and values, all bytes, other scripts, values of almost the largest size, in each codec.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence

import pytest

from integration import original
from integration.clients import (
    TIMEOUT_S,
    Confluent,
    HighLevel,
    KafkaPython,
    Reader,
    Record,
    Writer,
    any_records,
)
from integration.harness import Broker, Tools
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.standalone import StandaloneConsumer
from kafka08.producer.config import ProducerConfig
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.producer import Producer

CODECS = ("none", "gzip", "snappy")
WRITERS = ("ours", "ours-old", "kafka-python", "librdkafka", "original-java")
READERS = ("ours-group", "ours-alone", "kafka-python", "librdkafka", "original-high-level")
LARGE = 990_000


def records() -> list[Record]:
    rng = random.Random(8)
    texts = ("größe", "日本語", "\U0001f40d", "\u202eright to left", "a\u0000b", "line\nbreak")
    unicode = [Record(text.encode(), text.encode()) for text in texts]
    large = [
        Record(b"incompressible", rng.randbytes(LARGE)),
        Record(b"compressible", b"0123456789" * (LARGE // 10)),
        Record(rng.randbytes(50_000), b"a large key"),
    ]
    return [*any_records(), *unicode, *large, Record(b"last", b"one")]


class Ours:
    """KafkaProducer."""

    name = "ours"
    only_text = False

    def write(self, broker: Broker, topic: str, records: Sequence[Record], codec: str) -> None:
        settings = {"compression_type": codec, "linger_ms": 20, "batch_size": 4096}
        with KafkaProducer(bootstrap_servers=broker.address, **settings) as producer:
            sent = [producer.send(topic, record.value, record.key) for record in records]
            producer.flush(TIMEOUT_S)
            assert [future.result(0).offset for future in sent] == list(range(len(records)))


class OursOld:
    """The Scala producer's counterpart."""

    name = "ours-old"
    only_text = False

    def write(self, broker: Broker, topic: str, records: Sequence[Record], codec: str) -> None:
        config = ProducerConfig.from_properties(
            {
                "metadata.broker.list": broker.address,
                "request.required.acks": "1",
                "compression.codec": codec,
                "partitioner.class": "kafka.producer.ByteArrayPartitioner",
            }
        )
        with Producer(config) as producer:
            batch: list[KeyedMessage] = []
            for record in records:
                # Compressed, a batch is one message, and has the limit of one.
                if batch and len(record.value or b"") + len(record.key or b"") > 10_000:
                    producer.send(*batch)
                    batch = []
                batch.append(KeyedMessage(topic, record.value, record.key))
                if len(batch) == 50 or len(record.value or b"") > 10_000:
                    producer.send(*batch)
                    batch = []
            producer.send(*batch)


class OriginalJava:
    """The Java producer of 0.8.2.2, through ReplayLogProducer: from a topic of ours."""

    name = "original-java"
    only_text = False

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    def write(self, broker: Broker, topic: str, records: Sequence[Record], codec: str) -> None:
        source = f"source-of-{topic}"
        broker.create_topic(source)
        Ours().write(broker, source, records, "none")
        args = ["--broker-list", broker.address, "--zookeeper", broker.zookeeper]
        args += ["--inputtopic", source, "--outputtopic", topic, "--messages", str(len(records))]
        for setting in (f"compression.type={codec}", "linger.ms=20", "acks=1"):
            args += ["--property", setting]
        done = self.tools.run("kafka.tools.ReplayLogProducer", *args)
        assert done.code == 0, done.err
        assert "ERROR" not in done.err, done.err


class OursGroup:
    """A member of a group."""

    name = "ours-group"

    def check(self, broker: Broker, topic: str, records: Sequence[Record]) -> None:
        config = ConsumerConfig(
            group_id=f"group-{uuid.uuid4().hex[:8]}",
            zookeeper_connect=broker.zookeeper,
            auto_offset_reset="smallest",
            consumer_timeout_ms=TIMEOUT_S * 1000,
        )
        with ConsumerConnector(config) as connector:
            [stream] = connector.create_message_streams({topic: 1})[topic]
            _compare(stream, records)


class OursAlone:
    """Without a group."""

    name = "ours-alone"

    def check(self, broker: Broker, topic: str, records: Sequence[Record]) -> None:
        config = ConsumerConfig(
            group_id="unused",
            zookeeper_connect="",
            auto_offset_reset="smallest",
            consumer_timeout_ms=TIMEOUT_S * 1000,
        )
        with StandaloneConsumer([("127.0.0.1", broker.port)], config) as consumer:
            _compare(consumer.stream(topic), records)


def _compare(stream: object, records: Sequence[Record]) -> None:
    for offset, record in enumerate(records):
        message = next(stream)  # type: ignore[call-overload]
        assert message.offset == offset
        assert (message.key, message.value) == record, f"at offset {offset}"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools("original", tmp_path_factory.mktemp("original"))


def writer(name: str, tools: Tools) -> Writer:
    made: dict[str, Writer] = {
        "ours": Ours(),
        "ours-old": OursOld(),
        "kafka-python": KafkaPython(),
        "librdkafka": Confluent(),
        "original-java": OriginalJava(tools),
    }
    return made[name]


def reader(name: str, tools: Tools) -> Reader:
    made: dict[str, Reader] = {
        "ours-group": OursGroup(),
        "ours-alone": OursAlone(),
        "kafka-python": KafkaPython(),
        "librdkafka": Confluent(),
        "original-high-level": HighLevel(tools),
    }
    return made[name]


def _table() -> list[object]:
    """Every writer with every codec; the quick round has each writer and each codec."""
    rows = []
    for number, name in enumerate(WRITERS):
        for place, codec in enumerate(CODECS):
            marks = [] if (number + place) % len(CODECS) == 0 else [pytest.mark.slow]
            if name.startswith("original"):
                marks.append(pytest.mark.original)
            rows.append(pytest.param(name, codec, marks=marks))
    return rows


@pytest.mark.parametrize(("who", "how"), _table())
def test_all_read_what_one_wrote(broker: Broker, tools: Tools, who: str, how: str) -> None:
    topic = f"cross-{who}-{how}-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic)
    written = records()
    writer(who, tools).write(broker, topic, written, how)
    failed = []
    for name in READERS:
        if name.startswith("original") and not original.available():
            continue
        try:
            reader(name, tools).check(broker, topic, written)
        except AssertionError as error:
            failed.append(f"{name}: {str(error)[:1000]}")
    assert not failed, "\n".join(failed)


def test_the_table_is_complete() -> None:
    """Every writer and codec is in the quick round, so that none is ever without a test."""
    rows = [row for row in _table() if pytest.mark.slow not in row.marks]  # type: ignore[attr-defined]
    assert {row.values[0] for row in rows} == set(WRITERS)  # type: ignore[attr-defined]
    assert {row.values[1] for row in rows} == set(CODECS)  # type: ignore[attr-defined]
