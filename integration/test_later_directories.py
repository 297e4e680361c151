"""A data directory and a ZooKeeper that Kafka 3.9.1 in ZooKeeper mode has left, taken over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from integration import modern
from integration.harness import KINDS, Broker, Process, Tools, ZooKeeper
from integration.later import programs
from integration.later.programs import CLIENTS, CODECS
from integration.wire import Entry, entry, gzip_set

PER_CODEC = 40
WAIT_S = 120
HEADERS = [("h", b"1"), ("h", None), ("e", b"")]
OTHERS = tuple(name for name in CLIENTS if name not in ("confluent-kafka", "java-3.9.1"))
TOPIC, GROUP = "taken", "readers"
# For clients that do not know all codecs.
FEW, FEW_CODECS = "few-codecs", CLIENTS["kafkajs"].codecs
# A topic whose first records were deleted, and the first that is left.
SHORT, KEPT_FROM = "short", 4


def fill(address: str, topic: str, codecs: tuple[str, ...]) -> list[tuple[int, bytes]]:
    """(offset, value) of everything in the topic, data of an aborted transaction included."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(WAIT_S)
    values = []
    for codec in codecs:
        producer = Producer({"bootstrap.servers": address, "compression.type": codec})
        for number in range(PER_CODEC):
            values.append(b"%s-%d" % (codec.encode(), number))
            producer.produce(topic, values[-1], b"k", 0, timestamp=1000 + number, headers=HEADERS)
        assert producer.flush(WAIT_S) == 0
    found = list(enumerate(values))
    offset = len(values)
    producer = Producer({"bootstrap.servers": address, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    for value, end in ((b"committed", True), (b"aborted", False), (b"last", True)):
        producer.begin_transaction()
        producer.produce(topic, value, b"k", 0)
        producer.flush(WAIT_S)
        (producer.commit_transaction if end else producer.abort_transaction)(WAIT_S)
        found.append((offset, value))
        offset += 2  # the marker takes one
    return found


def commit(address: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 7)], asynchronous=False)
    consumer.close()


def shorten(address: str) -> None:
    from confluent_kafka import Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(SHORT, 1, 1)])[SHORT].result(WAIT_S)
    producer = Producer({"bootstrap.servers": address})
    for _ in range(10):
        producer.produce(SHORT, b"x", b"k", 0)
    assert producer.flush(WAIT_S) == 0
    (future,) = admin.delete_records([TopicPartition(SHORT, 0, KEPT_FROM)]).values()
    assert future.result(WAIT_S).low_watermark == KEPT_FROM


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


@pytest.mark.scenario("modern-8", "modern-18", "modern-56")
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
    written = fill(theirs.address, TOPIC, CODECS)
    with_few = fill(theirs.address, FEW, FEW_CODECS)
    commit(theirs.address)
    shorten(theirs.address)
    assert theirs.stop() == 143
    props = {
        "api.versions.enable": "true",
        "offsets.topic.num.partitions": 1,
    }
    ours = Broker("ours", tmp_path / "ours", chroot, log_dir=theirs.log_dir, props=props)
    launch(ours)
    for again in (False, True):
        ours.start()
        for topic in (TOPIC, FEW):
            ours.wait_for_leader(topic)
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
                knows_all = CLIENTS[client].codecs == CODECS
                topic, expected = (TOPIC, written) if knows_all else (FEW, with_few)
                lines = programs.run(client, "read", ours.address, topic, len(expected))
                cells = [line.split("\t") for line in lines]
                assert [(int(line[1]), line[4].encode()) for line in cells] == expected, client
                times = [int(line[2]) for line in cells[:PER_CODEC]]
                assert times == list(range(1000, 1000 + PER_CODEC)), client
                assert {line[5] for line in cells[:-3]} == {"h=1,h=null,e="}, client
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


@pytest.mark.scenario("modern-28")
@pytest.mark.slow
@pytest.mark.original
def test_an_original_keeps_the_files_of_3_9(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Time indexes and others beside segments of format 0, the newest of them as a kill leaves it:
    as long as it may become."""
    if modern.missing():
        pytest.skip(modern.missing())
    chroot = f"{zookeeper.connect}/kept"
    props = {
        "log.segment.bytes": 10_000,
        "log.index.interval.bytes": 500,
        "log.compressed.sets": "normalised",
    }
    theirs = modern.ModernBroker(tmp_path / "theirs", chroot)
    ours, original = (
        Broker(kind, tmp_path / kind, chroot, log_dir=theirs.log_dir, props=props)
        for kind in ("ours", "original")
    )
    for each in (theirs, ours, original):
        launch(each)

    def more(broker: Broker, value: bytes) -> list[Entry]:
        """Write to it, so that segments roll, and read everything."""
        broker.wait_for_leader(TOPIC)
        with broker.wire() as wire:
            for number in range(100):
                records: list[tuple[bytes | None, bytes | None]] = [
                    (b"k", b"%s-%d-%d" % (value, number, n)) for n in range(20)
                ]
                wire.produce(TOPIC, 0, gzip_set(records))
                wire.produce(TOPIC, 0, b"".join(entry(*each) for each in records[:3]))
            return wire.read_all(TOPIC, 0)

    def others() -> dict[str, bytes]:
        directory = theirs.log_dir / f"{TOPIC}-0"
        return {
            path.name: path.read_bytes()
            for path in directory.iterdir()
            if path.suffix not in (".log", ".index")
        }

    ours.start()
    ours.create_topic(TOPIC)
    found = more(ours, b"ours")
    assert ours.stop() == 143
    theirs.start()
    theirs.kill()
    left = others()
    sizes = [len(data) for name, data in left.items() if name.endswith(".timeindex")]
    assert len(sizes) > 3 and min(sizes) == 0 and max(sizes) > 1 << 20
    for _ in range(2):  # after a clean end, too
        original.start()
        again = more(original, b"original")
        assert again[: len(found)] == found
        assert others() == left
        found = again
        assert original.stop() == 143
    original.start()
    original.wait_for_leader(TOPIC)
    original.kill()
    original.start()
    original.wait_for_leader(TOPIC)
    with original.wire() as wire:
        assert wire.read_all(TOPIC, 0) == found
    assert original.stop() == 143
    assert others() == left
    ours.start()
    assert more(ours, b"again")[: len(found)] == found
    assert " ERROR " not in ours.log
