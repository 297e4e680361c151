"""A data directory and a ZooKeeper that Kafka 3.9.1 in ZooKeeper mode has left, taken over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from integration import modern
from integration.harness import KINDS, Broker, Process, Tools, ZooKeeper
from integration.later import programs

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PER_CODEC = 40
HEADERS = [("h", b"1"), ("h", None)]
OTHERS = (f"java-{programs.JAVA[-1]}", "franz-go", "sarama")
TOPIC, GROUP = "taken", "readers"
# A topic whose first records were deleted, and the first that is left.
SHORT, KEPT_FROM = "short", 4


def fill(address: str) -> list[tuple[int, bytes]]:
    """(offset, value) of everything in the topic, data of an aborted transaction included."""
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
    values = []
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": address, "compression.type": codec})
        for number in range(PER_CODEC):
            values.append(b"%s-%d" % (codec.encode(), number))
            producer.produce(TOPIC, values[-1], b"k", 0, timestamp=1000 + number, headers=HEADERS)
        assert producer.flush(30) == 0
    found = list(enumerate(values))
    offset = len(values)
    producer = Producer({"bootstrap.servers": address, "transactional.id": "t"})
    producer.init_transactions(30)
    for value, end in ((b"committed", True), (b"aborted", False), (b"last", True)):
        producer.begin_transaction()
        producer.produce(TOPIC, value, b"k", 0)
        producer.flush(30)
        (producer.commit_transaction if end else producer.abort_transaction)(30)
        found.append((offset, value))
        offset += 2  # the marker takes one
    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 7)], asynchronous=False)
    consumer.close()
    return found


def shorten(address: str) -> None:
    from confluent_kafka import Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(SHORT, 1, 1)])[SHORT].result(30)
    producer = Producer({"bootstrap.servers": address})
    for _ in range(10):
        producer.produce(SHORT, b"x", b"k", 0)
    assert producer.flush(30) == 0
    (future,) = admin.delete_records([TopicPartition(SHORT, 0, KEPT_FROM)]).values()
    assert future.result(30).low_watermark == KEPT_FROM


def read(address: str, count: int) -> list[tuple[int, bytes, int, list[tuple[str, bytes]]]]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "others",
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        found.append(
            (message.offset(), message.value(), message.timestamp()[1], message.headers() or [])
        )
    consumer.close()
    return found


@pytest.mark.original
def test_ours_takes_over_from_3_9(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    if modern.missing():
        pytest.skip(modern.missing())
    chroot = f"{zookeeper.connect}/taken-over"
    theirs = modern.ModernBroker(tmp_path / "theirs", chroot)
    launch(theirs)
    theirs.start()
    written = fill(theirs.address)
    shorten(theirs.address)
    assert theirs.stop() == 143
    props = {
        "api.versions.enable": "true",
        "offsets.topic.num.partitions": 1,
        "log.retention.hours": 1_000_000,  # the messages have times of long ago
    }
    ours = Broker("ours", tmp_path / "ours", chroot, log_dir=theirs.log_dir, props=props)
    launch(ours)
    for again in (False, True):
        ours.start()
        ours.wait_for_leader(TOPIC)
        ours.wait_for_leader("__consumer_offsets")
        ours.wait_for_leader(SHORT)
        with ours.wire() as wire:
            assert wire.offset(SHORT, 0, -2) == KEPT_FROM
        found = read(ours.address, len(written))
        assert [message[:2] for message in found] == written
        assert [message[2] for message in found[:PER_CODEC]] == list(range(1000, 1000 + PER_CODEC))
        assert all(message[3] == HEADERS for message in found[: len(CODECS) * PER_CODEC])
        assert committed(ours.address) == 7
        for kind in KINDS:
            tools = Tools(kind, tmp_path / f"{kind}-{again}")
            assert shell(tools, ours.address) == written
            # From each marker on, too.
            for marker in (each + 1 for each, _ in written[-3:] if not again):
                following = [message for message in written if message[0] > marker]
                assert shell(tools, ours.address, "--offset", str(marker)) == following
        for client in OTHERS if not again else ():
            if not programs.missing(client):
                lines = programs.run(client, "read", ours.address, TOPIC, len(written))
                cells = [line.split("\t") for line in lines]
                assert [(int(line[1]), line[4].encode()) for line in cells] == written
                assert {line[5] for line in cells[:-3]} == {"h=1,h=null"}
        if again:
            assert ours.stop() == 143
        else:
            ours.kill()
    assert " ERROR " not in ours.log


def shell(tools: Tools, address: str, *more: str) -> list[tuple[int, bytes]]:
    """The same as a consumer of 0.8 prints it."""
    args = ["--broker-list", address, "--topic", TOPIC, "--partition", "0", "--print-offsets"]
    done = tools.run("kafka.tools.SimpleConsumerShell", *args, "--no-wait-at-logend", *more)
    assert done.code == 0, done.err
    lines = done.raw.splitlines()
    following = [line for line in lines if line.startswith(b"next offset = ")]
    values = [lines[lines.index(line) + 1] for line in following]
    return [
        (int(line.split()[-1]) - 1, value) for line, value in zip(following, values, strict=True)
    ]


def committed(address: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP})
    [found] = consumer.committed([TopicPartition(TOPIC, 0)], timeout=30)
    consumer.close()
    return int(found.offset)
