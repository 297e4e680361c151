"""Real clients of the 0.8 years and later against both brokers: who writes what, who reads it."""

from __future__ import annotations

import json
import re
import struct
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from integration import clients, original
from integration.clients import (
    CODECS,
    KAFKA_08,
    READERS,
    WRITERS,
    Confluent,
    Console,
    HighLevel,
    KafkaPython,
    Kcat,
    Reader,
    Record,
    Shell,
    Writer,
    any_records,
    text_records,
)
from integration.harness import Broker, Tools, ZooKeeper, zookeeper_text
from integration.wire import Wire, entry, frame, string


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def all_tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tools]:
    return {kind: Tools(kind, tmp_path_factory.mktemp(kind)) for kind in ("ours", "original")}


def client(name: str, all_tools: dict[str, Tools]) -> object:
    """The writer or reader of that name; skips when its program is not here."""
    if name == "kcat" and Kcat.program() is None:
        pytest.skip("no kcat on PATH")
    if name.startswith("original") and not original.available():
        pytest.skip(original.missing())
    if name == "kafka-python":
        return KafkaPython()
    if name == "librdkafka":
        return Confluent()
    if name == "kcat":
        return Kcat()
    kind, _, what = name.partition("-")
    if what.startswith("console"):
        return Console(all_tools[kind], new=what.endswith("new"))
    return HighLevel(all_tools[kind]) if what == "high-level" else Shell(all_tools[kind])


@pytest.fixture(params=CODECS, scope="session")
def codec(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=WRITERS, scope="session")
def written(
    request: pytest.FixtureRequest, broker: Broker, codec: str, all_tools: dict[str, Tools]
) -> tuple[str, Sequence[Record]]:
    """A topic holding one writer's records in one codec, written once for all readers."""
    writer: Writer = client(request.param, all_tools)  # type: ignore[assignment]
    topic = unique(f"{request.param}-{codec}")
    records = text_records() if writer.only_text else any_records()
    broker.create_topic(topic)
    writer.write(broker, topic, records, codec)
    return topic, records


@pytest.mark.parametrize("reader", READERS)
def test_everyone_reads_what_anyone_wrote(
    broker: Broker,
    written: tuple[str, Sequence[Record]],
    reader: str,
    all_tools: dict[str, Tools],
) -> None:
    topic, records = written
    which: Reader = client(reader, all_tools)  # type: ignore[assignment]
    which.check(broker, topic, records)


def version_found(broker: Broker) -> tuple[int, ...]:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(bootstrap_servers=broker.address)
    try:
        found: tuple[int, ...] = consumer.config["api_version"]
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize("enable", ["false", "true"])
def test_kafka_python_finds_the_version_by_itself(
    zookeeper: ZooKeeper, tmp_path: Path, enable: str
) -> None:
    chroot = f"{zookeeper.connect}/{unique('version')}"
    broker = Broker("ours", tmp_path, chroot, props={"api.versions.enable": enable})
    try:
        found = version_found(broker.start())
        assert found > (1, 0) if enable == "true" else found == (0, 8, 2)
    finally:
        broker.kill()


def test_kafka_python_commits_and_resumes(broker: Broker) -> None:
    from kafka import KafkaConsumer, TopicPartition

    topic, group = unique("commits"), unique("group")
    broker.create_topic(topic)
    KafkaPython().write(broker, topic, text_records(), "none")
    settings = {"bootstrap_servers": broker.address, "api_version": (0, 8, 2)}
    partition = TopicPartition(topic, 0)
    for start in (0, 10):
        consumer = KafkaConsumer(
            **settings, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
        )
        consumer.assign([partition])
        first = next(consumer)
        assert first.offset == start
        consumer.seek(partition, start + 10)
        consumer.commit()
        assert consumer.committed(partition) == start + 10
        consumer.close(autocommit=False)


@pytest.mark.parametrize("kind", ["ours"], indirect=True)
def test_librdkafka_has_room_for_short_names(broker: Broker) -> None:
    """The original's answers are too small for it; see kafka08/server/apis/metadata.py."""
    from confluent_kafka import KafkaException, Producer

    failed = []
    for name in (None, "s1", "s2"):
        producer = Producer({**KAFKA_08, "bootstrap.servers": broker.address})
        try:
            producer.list_topics(name, 5) if name else producer.list_topics(timeout=5)
        except KafkaException as error:
            failed.append((name, error))
    assert failed == []


def test_auto_created_topic_takes_the_first_message(broker: Broker) -> None:
    topic = unique("auto")
    KafkaPython().write(broker, topic, text_records()[:5], "none")
    KafkaPython().check(broker, topic, text_records()[:5])


def test_topic_lifecycle_by_command(broker: Broker, tools: Tools) -> None:
    topic = unique("lifecycle")
    zk = ["--zookeeper", broker.zookeeper]
    run = tools.run
    made = run(
        "kafka.admin.TopicCommand",
        *[*zk, "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1"],
    )
    assert made.out == f'Created topic "{topic}".\n', made.err
    broker.wait_for_leader(topic, 2)
    assert topic in run("kafka.admin.TopicCommand", *zk, "--list").lines
    described = run("kafka.admin.TopicCommand", *zk, "--describe", "--topic", topic)
    assert described.lines == [
        f"Topic:{topic}\tPartitionCount:2\tReplicationFactor:1\tConfigs:",
        f"\tTopic: {topic}\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0",
        f"\tTopic: {topic}\tPartition: 1\tLeader: 0\tReplicas: 0\tIsr: 0",
    ]
    grown = run("kafka.admin.TopicCommand", *zk, "--alter", "--topic", topic, "--partitions", "3")
    assert "Adding partitions succeeded!" in grown.lines
    broker.wait_for_leader(topic, 3)


def test_get_offset_shell(broker: Broker, tools: Tools) -> None:
    topic = unique("offsets")
    broker.create_topic(topic, 2)
    with broker.wire() as wire:
        wire.produce(topic, 1, b"".join(entry(None, b"x") for _ in range(42)))
    args = ["--broker-list", broker.address, "--topic", topic, "--time"]
    latest = tools.run("kafka.tools.GetOffsetShell", *args, "-1")
    assert sorted(latest.lines) == [f"{topic}:0:0", f"{topic}:1:42"], latest.err
    earliest = tools.run("kafka.tools.GetOffsetShell", *args, "-2")
    assert sorted(earliest.lines) == [f"{topic}:0:0", f"{topic}:1:0"], earliest.err


def test_offset_checker_shows_the_lag(broker: Broker, tools: Tools, tmp_path: Path) -> None:
    topic, group = unique("lag"), unique("group")
    broker.create_topic(topic)
    with broker.wire() as wire:
        wire.produce(topic, 0, b"".join(entry(None, b"x") for _ in range(7)))
    config = clients.config_file(
        tmp_path, "consumer.properties", {"group.id": group, "auto.commit.interval.ms": 100}
    )
    consume = ["--zookeeper", broker.zookeeper, "--topic", topic, "--from-beginning"]
    consume += ["--consumer.config", str(config), "--max-messages", "5"]
    done = tools.run("kafka.tools.ConsoleConsumer", *consume)
    assert done.code == 0, done.err
    check = ["--zookeeper", broker.zookeeper, "--group", group, "--topic", topic]
    shown = tools.run("kafka.tools.ConsumerOffsetChecker", *check)
    assert len(shown.lines) == 2, (shown.out, shown.err)
    assert shown.lines[1].split() == [group, topic, "0", "5", "7", "2", "none"]


def test_java_producer_performance(broker: Broker, tools: Tools) -> None:
    topic = unique("perf")
    broker.create_topic(topic, 2)
    args = [topic, "2000", "100", "-1", f"bootstrap.servers={broker.address}", "acks=1"]
    done = tools.run("org.apache.kafka.clients.tools.ProducerPerformance", *args)
    assert done.code == 0, done.err
    assert re.match(r"2000 records sent, [0-9.]+ records/sec", done.lines[-1])
    with broker.wire() as wire:
        assert wire.offset(topic, 0) + wire.offset(topic, 1) == 2000
        values = [e.value for p in (0, 1) for e in wire.read_all(topic, p)]
    assert all(value is not None and len(value) == 100 for value in values)


def test_perf_tools(broker: Broker, tools: Tools) -> None:
    topic = unique("perf-tools")
    broker.create_topic(topic)
    produce = ["--broker-list", broker.address, "--topics", topic, "--messages", "1000"]
    sent = tools.run("kafka.tools.ProducerPerformance", *produce, "--request-num-acks", "1")
    assert sent.code == 0, sent.err
    assert sent.lines[-1].split(", ")[7] == "1000"
    consume = ["--zookeeper", broker.zookeeper, "--topic", topic, "--messages", "1000"]
    read = tools.run("kafka.tools.ConsumerPerformance", *consume, "--threads", "1")
    assert read.code == 0, read.err
    assert read.lines[-1].split(", ")[5] == "1000"


def test_a_live_high_level_group_owns_its_partitions(broker: Broker, tools: Tools) -> None:
    """A consumer shows in ZooKeeper while it runs, gets new messages, and leaves nothing."""
    topic = unique("live")
    broker.create_topic(topic)
    consume = ["--zookeeper", broker.zookeeper, "--topic", topic, "--from-beginning"]
    consumer = tools.background("kafka.tools.ConsoleConsumer", *consume)
    try:
        KafkaPython().write(broker, topic, [Record(None, b"the message")], "none")
        consumer.wait_for("the message")
    finally:
        code = consumer.stop()
    assert code == 143
    assert "Consumed 1 messages" in consumer.log


@pytest.mark.parametrize("payload", [b"", b"\xff\xff\xff\xff", struct.pack(">hhi", 18, 0, 1)])
def test_nonsense_closes_the_connection_and_nothing_else(broker: Broker, payload: bytes) -> None:
    with broker.wire(5) as wire, broker.wire() as other:
        wire.socket.sendall(struct.pack(">i", len(payload)) + payload)
        with pytest.raises(ConnectionError):
            wire.receive()
        assert other.coordinator_error("x") in (0, 15)


def test_metadata_of_nothing_lists_topics_and_brokers(broker: Broker) -> None:
    topic = unique("known")
    broker.create_topic(topic)
    with broker.wire() as wire:
        reply = wire.call(frame(3, struct.pack(">i", 0)))
    assert struct.unpack_from(">i", reply) == (1,)
    assert topic.encode() in reply


def test_registration_in_zookeeper(broker: Broker) -> None:
    text = zookeeper_text(broker.zookeeper, "/brokers/ids/0")
    assert text is not None
    node = json.loads(text)
    assert set(node) - {"formats"} == {"jmx_port", "timestamp", "host", "version", "port"}
    assert (node["host"], node["port"]) == ("127.0.0.1", broker.port)
    assert (node["jmx_port"], node["version"]) == (-1, 1)
    assert abs(int(node["timestamp"]) / 1000 - time.time()) < 3600


def test_offsets_in_both_storages(broker: Broker) -> None:
    topic, group = unique("storages"), unique("group")
    broker.create_topic(topic)
    with broker.wire() as wire:
        _await_coordinator(wire, group)
        assert wire.commit(group, topic, 0, 5) == 0
        assert wire.committed(group, topic, 0) == (5, 0)
        body = string(group) + struct.pack(">i", 1) + string(topic)
        body += struct.pack(">iiq", 1, 0, 6) + string("")
        assert wire.call(frame(8, body))[-2:] == b"\0\0"
        assert wire.committed(group, topic, 0) == (5, 0)
    node = f"/consumers/{group}/offsets/{topic}/0"
    assert zookeeper_text(broker.zookeeper, node) == "6"


def _await_coordinator(wire: Wire, group: str) -> None:
    deadline = time.monotonic() + 30
    while wire.coordinator_error(group) or wire.committed(group, "none", 0)[1] in (14, 16):
        assert time.monotonic() < deadline
        time.sleep(0.1)
