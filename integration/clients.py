"""Writers and readers around every client the tests know, one shape for all.

A writer puts records into partition 0 of a topic with one codec; a reader asserts that exactly
these records are there at offsets 0, 1, 2, ... Knows nothing of pytest.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from integration.harness import Broker, Tools, properties, zookeeper_text

CODECS = ("none", "gzip", "snappy", "lz4")
WRITERS = ("kafka-python", "librdkafka", "kcat", "ours-console", "ours-console-new")
WRITERS += ("original-console", "original-console-new")
READERS = ("kafka-python", "librdkafka", "kcat", "ours-high-level", "ours-shell")
READERS += ("original-high-level", "original-shell")
TIMEOUT_S = 60
KAFKA_08 = {"api.version.request": False, "broker.version.fallback": "0.8.2.2"}


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None


class Writer(Protocol):
    name: str
    only_text: bool

    def write(self, broker: Broker, topic: str, records: Sequence[Record], codec: str) -> None: ...


class Reader(Protocol):
    name: str

    def check(self, broker: Broker, topic: str, records: Sequence[Record]) -> None: ...


def text_records() -> list[Record]:
    """Several batches for everyone, with lines that compress and a long one."""
    found = [Record(b"key-%d" % (i % 7), b"message %d of a set" % i) for i in range(400)]
    return [*found, Record(b"long", b"x" * 30000), Record("schlüssel".encode(), "größe".encode())]


def any_records() -> list[Record]:
    """Null and empty keys and values among ordinary ones, and all bytes."""
    odd = [
        Record(None, b"no key"),
        Record(b"", b"empty key"),
        Record(b"tombstone", None),
        Record(b"empty value", b""),
        Record(None, b""),
        Record(bytes(range(256)), bytes(range(255, -1, -1))),
    ]
    return odd + text_records() + odd


class KafkaPython:
    """kafka-python told to speak 0.8.2, as users of old clusters run it."""

    name = "kafka-python"
    only_text = False

    def write(self, broker: Broker, topic: str, records: Sequence[Record], codec: str) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=broker.address,
            api_version=(0, 8, 2),
            compression_type=None if codec == "none" else codec,
            linger_ms=20,
            batch_size=4096,
            max_in_flight_requests_per_connection=1,
        )
        sent = [producer.send(topic, r.value, r.key, partition=0) for r in records]
        producer.flush(TIMEOUT_S)
        offsets = [future.get(TIMEOUT_S).offset for future in sent]
        producer.close()
        assert offsets == list(range(len(records)))

    def check(self, broker: Broker, topic: str, records: Sequence[Record]) -> None:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(
            bootstrap_servers=broker.address,
            api_version=(0, 8, 2),
            group_id=None,
            enable_auto_commit=False,
        )
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: len(records)}
        consumer.seek(partition, 0)
        found: list[tuple[int, bytes | None, bytes | None]] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(found) < len(records) and time.monotonic() < deadline:
            for batch in consumer.poll(500).values():
                found += [(m.offset, m.key, m.value) for m in batch]
        consumer.close()
        _same(found, records)


class Confluent:
    """librdkafka through confluent-kafka, pinned to the 0.8.2.2 protocol."""

    name = "librdkafka"
    only_text = False

    def write(self, broker: Broker, topic: str, records: Sequence[Record], codec: str) -> None:
        from confluent_kafka import Producer

        offsets: list[int] = []
        errors: list[object] = []

        def delivered(error: object, message: object) -> None:
            if error is None:
                offsets.append(message.offset())  # type: ignore[attr-defined]
            else:
                errors.append(error)

        config = {**KAFKA_08, "bootstrap.servers": broker.address, "compression.codec": codec}
        config |= {"linger.ms": 20, "batch.num.messages": 100, "acks": 1}
        config["max.in.flight.requests.per.connection"] = 1
        producer = Producer({**config, "log_level": 3})
        for record in records:
            producer.produce(topic, record.value, record.key, partition=0, on_delivery=delivered)
        assert producer.flush(TIMEOUT_S) == 0
        assert not errors
        assert sorted(offsets) == list(range(len(records)))

    def check(self, broker: Broker, topic: str, records: Sequence[Record]) -> None:
        from confluent_kafka import Consumer, TopicPartition

        config = {**KAFKA_08, "bootstrap.servers": broker.address, "group.id": "unused"}
        config |= {"enable.auto.commit": False, "log_level": 3}
        consumer = Consumer({**config, "enable.auto.offset.store": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[tuple[int, bytes | None, bytes | None]] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(found) < len(records) and time.monotonic() < deadline:
            for message in consumer.consume(500, 1):
                assert message.error() is None, message.error()
                found.append((message.offset(), message.key(), message.value()))
        consumer.close()
        _same(found, records)


class Kcat:
    """kcat as packaged by Debian; older releases are called kafkacat."""

    name = "kcat"
    only_text = True

    @staticmethod
    def program() -> str | None:
        return shutil.which("kcat") or shutil.which("kafkacat")

    def _run(self, broker: Broker, *args: str, stdin: bytes = b"") -> bytes:
        program = self.program()
        assert program is not None
        command = [program, "-b", broker.address]
        for key, value in KAFKA_08.items():
            command += ["-X", f"{key}={str(value).lower()}"]
        done = subprocess.run(
            [*command, *args], input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def write(self, broker: Broker, topic: str, records: Sequence[Record], codec: str) -> None:
        lines = b"".join(b"%s\t%s\n" % (r.key, r.value) for r in records)
        args = ["-P", "-t", topic, "-p", "0", "-K", "\t", "-z", codec, "-X", "linger.ms=20"]
        args += ["-X", "max.in.flight.requests.per.connection=1"]
        self._run(broker, *args, stdin=lines)

    def check(self, broker: Broker, topic: str, records: Sequence[Record]) -> None:
        args = ["-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q"]
        data = self._run(broker, *args, "-f", "%o,%K,%S,%k%s")
        found: list[tuple[int, bytes | None, bytes | None]] = []
        while data:
            offset, key_size, value_size, data = data.split(b",", 3)
            key, data = _take(data, int(key_size))
            value, data = _take(data, int(value_size))
            found.append((int(offset), key, value))
        _same(found, records)


class Console:
    """kafka-console-producer: the Scala producer, or the Java one with --new-producer."""

    only_text = True

    def __init__(self, tools: Tools, new: bool = False) -> None:
        self.tools = tools
        self.new = new
        self.name = f"{tools.kind} console" + (" new producer" if new else "")

    def write(self, broker: Broker, topic: str, records: Sequence[Record], codec: str) -> None:
        lines = "".join(f"{_text(r.key)}\t{_text(r.value)}\n" for r in records)
        args = ["--broker-list", broker.address, "--topic", topic, "--compression-codec", codec]
        args += ["--property", "parse.key=true", "--batch-size", "60", "--timeout", "200"]
        args += ["--request-required-acks", "1", *(["--new-producer"] if self.new else [])]
        done = self.tools.run("kafka.tools.ConsoleProducer", *args, stdin=lines)
        assert done.code == 0, done.err
        assert "ERROR" not in done.err, done.err
        assert done.raw == b""


class HighLevel:
    """kafka-console-consumer: the high-level consumer with a group in ZooKeeper."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.name = f"{tools.kind} high-level consumer"

    def check(self, broker: Broker, topic: str, records: Sequence[Record]) -> None:
        group = f"group-{topic}-{self.tools.kind}"
        config = self.tools.directory / f"{group}.properties"
        config.write_text(properties({"group.id": group, "zookeeper.connect": broker.zookeeper}))
        args = ["--zookeeper", broker.zookeeper, "--topic", topic, "--from-beginning"]
        args += ["--consumer.config", str(config), "--max-messages", str(len(records))]
        args += ["--property", "print.key=true"]
        done = self.tools.run("kafka.tools.ConsoleConsumer", *args)
        assert done.code == 0, done.err
        expected = [b"%s\t%s\n" % (_shown(r.key), _shown(r.value)) for r in records]
        _same_bytes(done.raw, expected)
        assert f"Consumed {len(records)} messages" in done.err
        node = f"/consumers/{group}/offsets/{topic}/0"
        committed = zookeeper_text(broker.zookeeper, node)
        assert committed == str(len(records)), f"{committed} of {len(records)} committed"


class Shell:
    """kafka-simple-consumer-shell, which prints offsets."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.name = f"{tools.kind} simple consumer shell"

    def check(self, broker: Broker, topic: str, records: Sequence[Record]) -> None:
        args = ["--broker-list", broker.address, "--topic", topic, "--no-wait-at-logend"]
        args += ["--partition", "0", "--print-offsets", "--property", "print.key=true"]
        done = self.tools.run("kafka.tools.SimpleConsumerShell", *args)
        assert done.code == 0, done.err
        expected = [
            b"next offset = %d\n%s\t%s\n" % (i + 1, _shown(r.key), _shown(r.value))
            for i, r in enumerate(records)
        ]
        end = f"Terminating. Reached the end of partition ({topic}, 0) at offset {len(records)}\n"
        _same_bytes(done.raw, [*expected, end.encode()])


def _take(data: bytes, size: int) -> tuple[bytes | None, bytes]:
    return (None, data) if size < 0 else (data[:size], data[size:])


def _text(data: bytes | None) -> str:
    assert data is not None
    return data.decode()


def _shown(data: bytes | None) -> bytes:
    return b"null" if data is None else data


def _same(
    found: Sequence[tuple[int, bytes | None, bytes | None]], records: Sequence[Record]
) -> None:
    """Contents and offsets, with the first difference in the error instead of all the data."""
    expected = [(offset, r.key, r.value) for offset, r in enumerate(records)]
    for got, want in zip(found, expected, strict=False):
        assert got == want
    assert len(found) == len(expected)


def _same_bytes(found: bytes, expected: list[bytes]) -> None:
    at = 0
    for number, want in enumerate(expected):
        assert found[at : at + len(want)] == want, f"at record {number}"
        at += len(want)
    assert found[at:] == b""


def config_file(directory: Path, name: str, values: dict[str, object]) -> Path:
    path = directory / name
    path.write_text(properties(values))
    return path
