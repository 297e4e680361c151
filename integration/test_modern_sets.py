"""Sets of all message formats in one topic, and who reads and writes them at their limits."""

from __future__ import annotations

import gzip
import random
import struct
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import original
from integration.clients import config_file
from integration.harness import KINDS, Broker, Process, Tools, ZooKeeper
from integration.later import frames, programs
from integration.later.frames import Record
from integration.later.programs import JAVA
from integration.proxy import Proxy
from integration.wire import Wire, entry, wait_until
from kafka08.protocol.schemas import FetchRequest

NEWEST_JAVA = f"java-{JAVA[-1]}"
WAIT_S = 60


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def produce(wire: Wire, topic: str, data: bytes, version: int) -> int:
    """Format 1 needs version 2, format 2 version 3 or later."""
    reply = wire.call(frames.produce_frame(topic, data, version=version))
    error, offset = frames.produced(reply, topic)
    assert error == 0
    return offset


def by_librdkafka(broker: Broker, topic: str, count: int) -> list[tuple[int, bytes | None]]:
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": broker.address, "group.id": "unused"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[int, bytes | None]] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(500, 1):
            assert message.error() is None, message.error()
            found.append((message.offset(), message.value()))
    consumer.close()
    return found


@pytest.mark.scenario("modern-10")
def test_10_a_thousand_sets_of_three_formats(modern_broker: Broker) -> None:
    topic = unique("alternating")
    modern_broker.create_topic(topic)
    values = [b"%d" % number for number in range(1000)]
    with modern_broker.wire() as wire:
        for number, value in enumerate(values):
            if number % 3 == 0:
                assert wire.produce(topic, 0, entry(None, value)) == number
            elif number % 3 == 1:
                assert produce(wire, topic, frames.timed_entry(None, value), 2) == number
            else:
                assert produce(wire, topic, frames.plain(value), 7) == number
    assert by_librdkafka(modern_broker, topic, 1000) == list(enumerate(values))


@pytest.mark.scenario("modern-11")
def test_11_the_largest_batch(modern_broker: Broker) -> None:
    """librdkafka sends a message of just max.message.bytes, and then one with a byte more."""
    from confluent_kafka import KafkaError, Producer

    measured, limited = unique("measured"), unique("limited")
    told: list[object] = []
    settings = {"bootstrap.servers": modern_broker.address, "retries": 0}
    producer = Producer({**settings, "error_cb": told.append})

    def send(topic: str, size: int) -> int | None:
        errors: list[KafkaError | None] = []
        producer.produce(
            topic, b"v" * size, partition=0, on_delivery=lambda error, _: errors.append(error)
        )
        assert not producer.flush(WAIT_S)
        return errors[0] and errors[0].code()

    modern_broker.create_topic(measured)
    assert send(measured, 1000) is None
    [segment] = (modern_broker.log_dir / f"{measured}-0").glob("*.log")
    modern_broker.create_topic(limited, config={"max.message.bytes": segment.stat().st_size})
    assert send(limited, 1000) is None
    assert send(limited, 1001) == KafkaError.MSG_SIZE_TOO_LARGE
    assert send(limited, 1000) is None
    assert not told, "the connection stays"


def random_records(count: int) -> list[Record]:
    """Of 100 bytes that hardly compress."""
    made = random.Random(1)
    return [Record(None, b"%d " % n + made.randbytes(50).hex().encode()) for n in range(count)]


def shown(tools: Tools, broker: Broker, topic: str, *args: str) -> list[tuple[int, bytes]]:
    """(offset, value) as the simple consumer shell prints them."""
    command = ["--broker-list", broker.address, "--topic", topic, "--partition", "0"]
    command += ["--print-offsets", "--no-wait-at-logend", *args]
    done = tools.run("kafka.tools.SimpleConsumerShell", *command)
    assert done.code == 0, done.err
    lines = done.raw.splitlines()
    at = [number for number, line in enumerate(lines) if line.startswith(b"next offset = ")]
    return [(int(lines[number].split()[-1]) - 1, lines[number + 1]) for number in at]


@pytest.mark.scenario("modern-16")
def test_16_an_offset_inside_a_batch(modern_broker: Broker, tools: Tools, our_tools: Tools) -> None:
    topic, records = unique("inside"), random_records(500)
    modern_broker.create_topic(topic)
    data = frames.batch(gzip.compress(frames.encode_records(records)), 500, codec=1)
    with modern_broker.wire() as wire:
        produce(wire, topic, data, 7)
    group = unique("group")
    where = ["--zookeeper", modern_broker.zookeeper]
    scope = ["--group", group, "--topic", topic, "--to-offset", "123", "--execute"]
    done = our_tools.run("kafka.admin.ConsumerGroupCommand", *where, "--reset-offsets", *scope)
    assert done.code == 0 and done.out.split()[-1] == "123", done.out
    settings = {"group.id": group, "zookeeper.connect": modern_broker.zookeeper}
    config = config_file(tools.directory, f"{group}.properties", settings)
    args = [*where, "--topic", topic, "--consumer.config", str(config), "--max-messages", "377"]
    done = tools.run("kafka.tools.ConsoleConsumer", *args)
    assert done.raw.splitlines() == [record.value for record in records[123:]]


@pytest.mark.scenario("modern-17")
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_17_a_fetch_smaller_than_the_batch(modern_broker: Broker, tools: Tools, codec: str) -> None:
    """Kafka 3.9.1 answers with nothing, again and again."""
    topic, records = unique("smaller"), random_records(200)
    modern_broker.create_topic(topic)
    data = frames.encode_records(records)
    if codec == "gzip":
        data = gzip.compress(data)
    with modern_broker.wire() as wire:
        for _ in range(2):
            produce(wire, topic, frames.batch(data, 200, codec=int(codec == "gzip")), 7)
    found = shown(tools, modern_broker, topic, "--fetchsize", "300")
    assert found == [(n, records[n % 200].value) for n in range(400)]


COMMITTED = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 0)
OF_A_TRANSACTION, CONTROL = 0x10, 0x20


def marker(offset: int) -> bytes:
    """The end of a transaction, as it is stored."""
    data = frames.encode_records([Record(*COMMITTED)])
    made = frames.batch(data, 1, codec=OF_A_TRANSACTION | CONTROL, producer=(1, 0, -1))
    return struct.pack(">qii", offset, len(made) - 12, 0) + made[16:]


@pytest.mark.scenario("modern-19")
def test_19_a_marker_is_last(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None], tools: Tools
) -> None:
    """The poll of a consumer of 0.8 behind all messages waits, and ends with the next message.
    Kafka 3.9.1 answers at once, again and again."""
    proxy = Proxy()
    chroot = f"{zookeeper.connect}/{unique('marked')}"
    props = {"advertised.port": proxy.port}
    broker = Broker("ours", tmp_path / "broker", chroot, props=props)
    launch(broker)
    broker.start()
    proxy.target = broker.port
    topic = "marked"
    broker.create_topic(topic)
    with broker.wire() as wire:
        assert produce(wire, topic, frames.plain(b"first"), 7) == 0
    broker.kill()
    [segment] = (broker.log_dir / f"{topic}-0").glob("*.log")
    with segment.open("ab") as file:
        file.write(marker(1))
    broker.start()
    broker.wait_for_leader(topic)

    asked: list[int] = []

    def look(request: object) -> None:
        if isinstance(request, FetchRequest):
            asked.extend(each.offset for part in request.topics for each in part.partitions)

    proxy.intercept = look
    settings: dict[str, object] = {
        "group.id": "reader",
        "zookeeper.connect": chroot,
        "fetch.wait.max.ms": 120_000,
        "socket.timeout.ms": 150_000,
    }
    config = config_file(tools.directory, f"{tools.kind}-marked.properties", settings)
    args = ["--zookeeper", chroot, "--topic", topic, "--from-beginning"]
    consumer = tools.background(
        "kafka.tools.ConsoleConsumer", *args, "--consumer.config", str(config)
    )
    launch(consumer)
    wait_until("the first message", WAIT_S, lambda: "first" in consumer.log.splitlines())
    wait_until("a poll behind it", WAIT_S, lambda: asked[-1:] == [1])
    with pytest.raises(TimeoutError):
        wait_until("another poll", 3, lambda: asked.count(1) > 1)
    with broker.wire() as wire:
        assert wire.offset(topic, 0) == 2
        assert produce(wire, topic, frames.plain(b"second"), 7) == 2
    wait_until("the second message", WAIT_S, lambda: "second" in consumer.log.splitlines())
    assert asked.count(1) == 1
    assert consumer.alive
    proxy.close()


@pytest.mark.scenario("modern-22")
def test_22_the_broker_s_time_in_format_1(modern_broker: Broker) -> None:
    """sarama told to speak 0.10.0 fetches with version 2."""
    if reason := programs.missing("sarama"):
        pytest.skip(reason)
    topic = unique("stamped")
    modern_broker.create_topic(topic, config={"message.timestamp.type": "LogAppendTime"})
    begin = int(time.time() * 1000)
    with modern_broker.wire() as wire:
        for codec in (0, 1):
            data = frames.encode_records(random_records(3))
            data = gzip.compress(data) if codec else data
            produce(wire, topic, frames.batch(data, 3, codec=codec), 7)
    end = int(time.time() * 1000)
    lines = programs.run("sarama", "read", modern_broker.address, topic, 6, VERSION="0.10.0.0")
    cells = [line.split("\t") for line in lines]
    assert [int(line[1]) for line in cells] == list(range(6))
    assert all(begin <= int(line[2]) <= end for line in cells), (begin, lines, end)


CLEANED = {
    "api.versions.enable": "true",
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": 200,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.cleaner.dedupe.buffer.size": 8 << 20,
    "log.cleaner.delete.retention.ms": 1000,
}
KEYS = 20


@pytest.mark.scenario("modern-57")
def test_57_compaction_of_mixed_formats(
    zookeeper: ZooKeeper, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Keys 0 and 1 end with a tombstone; the last value of all others stays."""
    chroot = f"{zookeeper.connect}/{unique('cleaned')}"
    broker = Broker("ours", tmp_path / "broker", chroot, props=CLEANED).start()
    topic = "mixed"
    broker.create_topic(topic, config={"cleanup.policy": "compact", "segment.bytes": 4000})
    with broker.wire() as wire:

        def send(key: bytes, value: bytes | None, form: int) -> None:
            if form == 0:
                wire.produce(topic, 0, entry(key, value))
            elif form == 1:
                produce(wire, topic, frames.timed_entry(key, value), 2)
            else:
                data = frames.encode_records([Record(key, value)])
                data = gzip.compress(data) if form == 3 else data
                now = int(time.time() * 1000)  # by which the tombstones become old
                produce(wire, topic, frames.batch(data, 1, codec=int(form == 3), time=now), 7)

        last: dict[str, str] = {}
        for turn in range(12):
            for number in range(KEYS):
                last[f"key{number}"] = f"value{turn}-{number}"
                send(b"key%d" % number, b"value%d-%d" % (turn, number), (turn + number) % 4)
        for number, form in ((0, 0), (1, 2)):
            send(b"key%d" % number, None, form)
            del last[f"key{number}"]
        # Of another segment's size: a segment that is merged with a newer one is as old as that.
        for number in range(10):
            send(b"fill%d" % number, b"x" * 1000, 2)

        def is_clean() -> bool:
            time.sleep(0.5)
            send(b"fill", b"x" * 1000, 2)  # rolls segments, which can be cleaned then
            found = [each for each in wire.read_all(topic, 0) if each.key not in filling]
            return len(found) == len(last)

        filling = {b"fill", *(b"fill%d" % number for number in range(10))}
        wait_until("a clean log", 60, is_clean)
        seen: list[list[object]] = [[]]

        def is_settled() -> bool:
            time.sleep(2)
            seen.append(list(wire.read_all(topic, 0)))
            return seen[-1] == seen[-2]

        wait_until("nothing left to clean", 60, is_settled)
        stored = wire.read_all(topic, 0)
    values = {str(each.key, "ascii"): each.value for each in stored if each.key not in filling}
    assert values == {key: value.encode() for key, value in last.items()}
    expected = [(each.offset, each.value) for each in stored]
    assert by_librdkafka(broker, topic, len(expected)) == expected
    if not programs.missing(NEWEST_JAVA):
        lines = programs.run(NEWEST_JAVA, "read", broker.address, topic, len(expected))
        cells = [line.split("\t") for line in lines]
        assert [(int(line[1]), line[4].encode()) for line in cells] == expected
    for kind in KINDS if original.available() else KINDS[:1]:
        tools = Tools(kind, tmp_path_factory.mktemp(kind))
        assert shown(tools, broker, topic) == expected
    broker.kill()
    assert " ERROR " not in broker.log
