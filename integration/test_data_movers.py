"""Mirrors and replays between real clusters, killed while they work."""

from __future__ import annotations

import os
import signal
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration import modern
from integration.clients import KAFKA_08, Record, any_records, config_file
from integration.harness import Broker, Process, Tools, ZooKeeper, free_port, zookeeper_text
from integration.modern import ModernBroker
from integration.scrape import scrape
from integration.wire import entry, wait_until
from kafka08.producer.kafka_producer import KafkaProducer

MIRROR = "kafka.tools.MirrorMaker"
PARTITIONS = 3
WAIT_S = 90


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def values(broker: Broker, topic: str, partitions: int = PARTITIONS) -> list[list[tuple]]:
    """(key, value) of each partition in the order of offsets."""
    with broker.wire() as wire:
        return [[(e.key, e.value) for e in wire.read_all(topic, p)] for p in range(partitions)]


@pytest.fixture(scope="module")
def clusters(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Broker, Broker]]:
    """Source and target, with a controller and a chroot of their own each."""
    made = []
    for name in ("source", "target"):
        props = {"num.partitions": PARTITIONS, "offsets.topic.num.partitions": 3}
        chroot = f"{zookeeper.connect}/{unique(name)}"
        made.append(Broker("ours", tmp_path_factory.mktemp(name), chroot, props=props).start())
    yield made[0], made[1]
    for broker in made:
        broker.kill()


class Mirror:
    """kafka-mirror-maker between two brokers, started as often as wanted."""

    def __init__(
        self,
        tools: Tools,
        directory: Path,
        source: Broker,
        target: Broker,
        *args: str,
        producer: dict[str, object] | None = None,
        consumer: dict[str, object] | None = None,
    ) -> None:
        self.group = unique("mirror")
        reading = {
            "group.id": self.group,
            "zookeeper.connect": source.zookeeper,
            "auto.offset.reset": "smallest",
            "auto.commit.interval.ms": 200,
            "zookeeper.session.timeout.ms": 1500,
            "rebalance.backoff.ms": 500,
            "rebalance.max.retries": 10,
        }
        writing = producer or {"metadata.broker.list": target.address}
        self.args = ["--consumer.config"]
        self.args += [str(config_file(directory, "consumer.properties", consumer or reading))]
        self.args += ["--producer.config"]
        self.args += [str(config_file(directory, "producer.properties", writing)), *args]
        self._tools = tools

    def offsets(self, topic: str) -> str:
        """Where the group keeps its offsets."""
        return f"/consumers/{self.group}/offsets/{topic}"

    def start(self) -> Process:
        return self._tools.background(MIRROR, *self.args)


def load(broker: Broker, topic: str, count: int, keys: int = 50, start: int = 0) -> None:
    """``count`` records; the value of a key's records rises."""
    with KafkaProducer(bootstrap_servers=broker.address, acks="all", retries=10) as producer:
        futures = [
            producer.send(topic, b"%08d" % n, b"key-%d" % (n % keys))
            for n in range(start, start + count)
        ]
        for future in futures:
            future.result(WAIT_S)


def check_all(broker: Broker, topic: str, count: int) -> int:
    """As ``check`` does for what a broker of 0.8 holds."""
    return check(values(broker, topic), count)


def check(found: list[list[tuple]], count: int) -> int:
    """Every number is there, and within a key each comes first after the ones before it.

    The number of repeated records.
    """
    by_key: dict[bytes, list[bytes]] = defaultdict(list)
    partition_of: dict[bytes, int] = {}
    for number, partition in enumerate(found):
        for key, value in partition:
            by_key[key].append(value)
            assert partition_of.setdefault(key, number) == number
    everything = {value for of_key in by_key.values() for value in of_key}
    assert everything == {b"%08d" % n for n in range(count)}
    for key, of_key in by_key.items():
        first_seen = list(dict.fromkeys(of_key))
        assert first_seen == sorted(first_seen), key
        assert of_key[-1] == first_seen[-1], f"{key!r} ends with an old value"
    return sum(map(len, found)) - count


def total(broker: Broker, topic: str) -> int:
    with broker.wire() as wire:
        return sum(wire.offset(topic, p) for p in range(PARTITIONS))


@pytest.mark.parametrize(
    "args",
    [[], pytest.param(["--new.producer", "--num.producers", "2"], marks=pytest.mark.slow)],
)
def test_kill_9_loses_nothing(
    clusters: tuple[Broker, Broker],
    tmp_path: Path,
    launch: Callable[[Process], None],
    args: list[str],
) -> None:
    source, target = clusters
    topic, count = unique("killed"), 60_000
    for broker in clusters:
        broker.create_topic(topic, PARTITIONS)
    writing: dict[str, object] = {"metadata.broker.list": target.address}
    if args:
        writing = {"bootstrap.servers": target.address, "batch.size": 2000}
    filters = ["--whitelist", topic, "--num.streams", "2", *args]
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, *filters, producer=writing)
    for round_number in range(4):
        process = mirror.start()
        launch(process)
        load(source, topic, count // 4, start=round_number * (count // 4))
        wait_until(
            "some of it",
            WAIT_S,
            lambda: total(target, topic) > total(source, topic) - count // 4 + 2000,
        )
        if round_number < 3:
            process.kill()
    wait_until("the end", WAIT_S, lambda: sum(committed(source, mirror.group, topic)) == count)
    code = process.stop()
    assert code == 143, process.log
    check_all(target, topic, count)


def test_a_polite_end_repeats_nothing(
    clusters: tuple[Broker, Broker], tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    source, target = clusters
    topic, count = unique("stopped"), 40_000
    for broker in clusters:
        broker.create_topic(topic, PARTITIONS)
    load(source, topic, count)
    filters = ["--whitelist", topic, "--queue.size", "500"]
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, *filters)
    for _ in range(3):
        process = mirror.start()
        launch(process)
        before = total(target, topic)
        wait_until("some more", WAIT_S, lambda: total(target, topic) > before + 1000)  # noqa: B023
        assert process.stop() == 143, process.log
        assert sum(committed(source, mirror.group, topic)) == total(target, topic)
    process = mirror.start()
    launch(process)
    wait_until("the end", WAIT_S, lambda: sum(committed(source, mirror.group, topic)) == count)
    process.stop()
    assert check_all(target, topic, count) == 0


@pytest.mark.scenario("ops-19")
def test_the_metrics_of_a_mirror(
    clusters: tuple[Broker, Broker], tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """While the target is stopped the channel is full and streams wait; then producers do."""
    source, target = clusters
    topic, few, count, port = unique("watched"), 10, 2_000, free_port()
    for broker in clusters:
        broker.create_topic(topic, PARTITIONS)
    filters = ["--whitelist", topic, "--queue.size", "100", "--metrics.port", str(port)]
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, *filters)
    process = mirror.start()
    launch(process)
    channel = "kafka_tools_datachannel_mirrormaker_datachannel_"

    def shown() -> dict[str, float]:
        """By name; those that are not by topic, broker or quantile."""
        return {
            name: value
            for (name, labels), value in scrape(port).items()
            if dict(labels).keys() <= {"clientId", "client_id"}
        }

    wait_until("no messages", WAIT_S, lambda: shown().get(f"{channel}waitontake_percent") == 1)
    load(source, topic, few)
    wait_until("a few", WAIT_S, lambda: shown().get(f"{channel}size_count") == 2 * few)
    os.kill(target.pid, signal.SIGSTOP)
    try:
        load(source, topic, count - few, start=few)
        wait_until("full", WAIT_S, lambda: shown()[f"{channel}waitonput_percent"] > 0.05)
        assert shown()[f"{channel}size_count"] == 2 * few + 100
    finally:
        os.kill(target.pid, signal.SIGCONT)
    wait_until("the end", WAIT_S, lambda: shown()[f"{channel}size_count"] == 2 * count)
    before = shown()
    put_waits = before[f"{channel}waitonput_percent"]
    wait_until("less", WAIT_S, lambda: shown()[f"{channel}waitonput_percent"] < put_waits / 2)
    after = shown()
    assert after[f"{channel}waitontake_percent"] > before[f"{channel}waitontake_percent"]
    assert after["kafka_consumer_consumertopicmetrics_messages_total"] == count
    assert after["kafka_producer_producer_metrics_connection_count"] >= 1
    assert process.stop() == 143, process.log
    check_all(target, topic, count)


@pytest.mark.slow
def test_members_come_and_go(
    clusters: tuple[Broker, Broker], tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Partitions change hands under load; what was under way arrives before they do."""
    source, target = clusters
    topic, count = unique("members"), 60_000
    for broker in clusters:
        broker.create_topic(topic, PARTITIONS)
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, "--whitelist", topic)
    first = mirror.start()
    launch(first)
    load(source, topic, count // 2)
    second = mirror.start()
    launch(second)
    load(source, topic, count // 4, start=count // 2)
    wait_until("owners", WAIT_S, lambda: len(set(owners(source, mirror.group, topic))) == 2)
    load(source, topic, count // 4, start=count // 4 * 3)
    assert first.stop() == 143, first.log
    wait_until("the end", WAIT_S, lambda: sum(committed(source, mirror.group, topic)) == count)
    assert second.stop() == 143
    assert check_all(target, topic, count) == 0


def owners(broker: Broker, group: str, topic: str) -> list[str]:
    path = f"/consumers/{group}/owners/{topic}"
    found = [zookeeper_text(broker.zookeeper, f"{path}/{p}") for p in range(PARTITIONS)]
    return [owner.rpartition("-")[0] for owner in found if owner]


def test_the_target_is_away(
    zookeeper: ZooKeeper,
    clusters: tuple[Broker, Broker],
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    source, _ = clusters
    topic, count = unique("away"), 30_000
    chroot = f"{zookeeper.connect}/{unique('away')}"
    target = Broker("ours", tmp_path / "target", chroot, props={"num.partitions": PARTITIONS})
    launch(target)
    target.start()
    target.create_topic(topic, PARTITIONS)
    source.create_topic(topic, PARTITIONS)
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, "--whitelist", topic)
    process = mirror.start()
    launch(process)
    load(source, topic, count // 2)
    wait_until("some of it", WAIT_S, lambda: total(target, topic) > 100)
    target.kill()
    load(source, topic, count // 2, start=count // 2)
    assert sum(committed(source, mirror.group, topic)) < count
    target.start()
    wait_until("the end", WAIT_S, lambda: sum(committed(source, mirror.group, topic)) == count)
    assert process.stop() == 143, process.log
    check_all(target, topic, count)


@pytest.mark.slow
def test_a_polite_end_while_the_target_hangs(
    zookeeper: ZooKeeper,
    clusters: tuple[Broker, Broker],
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    """It has an end, and what did not arrive is not committed."""
    source, _ = clusters
    topic, count = unique("hangs"), 10_000
    chroot = f"{zookeeper.connect}/{unique('hangs')}"
    target = Broker("ours", tmp_path / "target", chroot, props={"num.partitions": PARTITIONS})
    launch(target)
    target.start()
    for broker in (source, target):
        broker.create_topic(topic, PARTITIONS)
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, "--whitelist", topic)
    process = mirror.start()
    launch(process)
    load(source, topic, 100)
    wait_until("the start", WAIT_S, lambda: sum(committed(source, mirror.group, topic)) == 100)
    target.pause()
    load(source, topic, count - 100, start=100)
    assert process.stop() == 143, process.log
    assert sum(committed(source, mirror.group, topic)) < count
    target.resume()
    process = mirror.start()
    launch(process)
    wait_until("the end", WAIT_S, lambda: sum(committed(source, mirror.group, topic)) == count)
    assert process.stop() == 143, process.log
    check_all(target, topic, count)


def test_a_message_that_cannot_be_sent_ends_the_mirror(
    clusters: tuple[Broker, Broker], tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    source, target = clusters
    topic = unique("large")
    source.create_topic(topic)
    target.create_topic(topic, config={"max.message.bytes": 1000})
    with source.wire() as wire:
        wire.produce(topic, 0, entry(b"k", b"first") + entry(b"k", b"x" * 5000) + entry(b"k", b"l"))
    # A batch fails as a whole.
    writing = {"bootstrap.servers": target.address, "batch.size": 1}
    filters = ["--whitelist", topic, "--new.producer"]
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, *filters, producer=writing)

    def stored() -> str | None:
        return zookeeper_text(source.zookeeper, f"{mirror.offsets(topic)}/0")

    process = mirror.start()
    launch(process)
    assert process.exit_code() == 255, process.log
    assert (stored() or "0") in ("0", "1")
    mirror.args += ["--abort.on.send.failure", "false"]
    process = mirror.start()
    launch(process)
    wait_until("the end", WAIT_S, lambda: stored() == "3")
    assert process.stop() == 143
    [found] = values(target, topic, 1)
    assert list(dict.fromkeys(value for _, value in found)) == [b"first", b"l"]


@pytest.mark.slow
@pytest.mark.original
def test_between_brokers_of_the_original(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    pair = []
    for name in ("source", "target"):
        chroot = f"{zookeeper.connect}/{unique(name)}"
        broker = Broker("original", tmp_path / name, chroot, props={"num.partitions": PARTITIONS})
        launch(broker)
        pair.append(broker.start())
    source, target = pair
    topic, count = "mirrored", 20_000
    for broker in pair:
        broker.create_topic(topic, PARTITIONS)
    load(source, topic, count)
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, "--whitelist", topic)
    process = mirror.start()
    launch(process)
    wait_until("the end", WAIT_S, lambda: sum(committed(source, mirror.group, topic)) == count)
    assert process.stop() == 143, process.log
    assert check_all(target, topic, count) == 0


@pytest.mark.slow
@pytest.mark.original
def test_a_group_of_both_mirrors(
    clusters: tuple[Broker, Broker], tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """The original's takes its share of the partitions; ours goes on when it leaves."""
    source, target = clusters
    topic, count = unique("both"), 20_000
    for broker in clusters:
        broker.create_topic(topic, PARTITIONS)
    writing = {"metadata.broker.list": target.address, "request.required.acks": "1"}
    mirror = Mirror(
        Tools("ours", tmp_path), tmp_path, source, target, "--whitelist", topic, producer=writing
    )
    ours = mirror.start()
    launch(ours)
    wait_until("an owner", WAIT_S, lambda: len(owners(source, mirror.group, topic)) == PARTITIONS)
    theirs = Tools("original", tmp_path).background(MIRROR, *mirror.args)
    launch(theirs)
    wait_until("owners", WAIT_S, lambda: len(set(owners(source, mirror.group, topic))) == 2)
    load(source, topic, count // 2)
    wait_until("a half", WAIT_S, lambda: total(target, topic) == count // 2)
    theirs.stop()
    wait_until("one owner", WAIT_S, lambda: len(set(owners(source, mirror.group, topic))) == 1)
    load(source, topic, count // 2, start=count // 2)
    wait_until("the end", WAIT_S, lambda: sum(committed(source, mirror.group, topic)) == count)
    assert ours.stop() == 143, ours.log
    check_all(target, topic, count)


# --- clusters of later releases


def test_librdkafka_to_a_broker_of_0_8(
    clusters: tuple[Broker, Broker], tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    source, target = clusters
    topic, count = unique("librdkafka"), 10_000
    for broker in clusters:
        broker.create_topic(topic, PARTITIONS)
    load(source, topic, count)
    old = {key: str(value).lower() for key, value in KAFKA_08.items()}
    writing = {**old, "bootstrap.servers": target.address, "enable.idempotence": "false"}
    writing["max.in.flight.requests.per.connection"] = "1"
    filters = ["--whitelist", topic, "--modern.producer"]
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, *filters, producer=writing)
    process = mirror.start()
    launch(process)
    wait_until("the end", WAIT_S, lambda: sum(committed(source, mirror.group, topic)) == count)
    assert process.stop() == 143, process.log
    assert check_all(target, topic, count) == 0


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModernBroker]:
    if modern.missing():
        pytest.skip(modern.missing())
    broker = ModernBroker(tmp_path_factory.mktemp("modern")).start()
    yield broker
    broker.kill()


def later_values(broker: ModernBroker, topic: str) -> list[list[tuple]]:
    """The messages in the cluster of a later release, by partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": unique("reader")})
    try:
        places = [TopicPartition(topic, p, 0) for p in range(PARTITIONS)]
        left = sum(consumer.get_watermark_offsets(place)[1] for place in places)
        consumer.assign(places)
        found: list[list[tuple]] = [[] for _ in places]
        while left:
            for message in consumer.consume(1000, 1):
                assert message.error() is None
                found[message.partition()].append((message.key(), message.value()))
                left -= 1
        return found
    finally:
        consumer.close()


@pytest.mark.slow
def test_out_to_a_later_release(
    clusters: tuple[Broker, Broker],
    later: ModernBroker,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    source, target = clusters
    topic, count = unique("out"), 30_000
    source.create_topic(topic, PARTITIONS)
    load(source, topic, count)
    writing = {"bootstrap.servers": later.address, "queue.buffering.max.messages": 2000}
    filters = ["--whitelist", topic, "--modern.producer"]
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, *filters, producer=writing)
    process = mirror.start()
    launch(process)
    wait_until("some", WAIT_S, lambda: sum(committed(source, mirror.group, topic)) > 0)
    process.kill()
    process = mirror.start()
    launch(process)
    wait_until("the end", WAIT_S, lambda: sum(committed(source, mirror.group, topic)) == count)
    assert process.stop() == 143, process.log
    check(later_values(later, topic), count)


@pytest.mark.slow
def test_odd_records_go_out_as_they_are(
    clusters: tuple[Broker, Broker],
    later: ModernBroker,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    source, target = clusters
    topic = unique("odd")
    source.create_topic(topic)
    records = [record for record in any_records() if record.key is not None]
    with KafkaProducer(bootstrap_servers=source.address, compression_type="gzip") as producer:
        for record in records:
            producer.send(topic, record.value, record.key)
    writing = {"bootstrap.servers": later.address}
    filters = ["--whitelist", topic, "--modern.producer"]
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, *filters, producer=writing)
    process = mirror.start()
    launch(process)
    path = f"{mirror.offsets(topic)}/0"
    wait_until(
        "the end", WAIT_S, lambda: zookeeper_text(source.zookeeper, path) == str(len(records))
    )
    assert process.stop() == 143
    stored = [found for partition in later_values(later, topic) for found in partition]
    for key in {record.key for record in records}:
        assert [found for found in stored if found[0] == key] == [
            tuple(record) for record in records if record.key == key
        ]


@pytest.mark.slow
def test_back_from_a_later_release(
    clusters: tuple[Broker, Broker],
    later: ModernBroker,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    from confluent_kafka import Producer

    source, target = clusters
    topic, count = unique("back"), 30_000
    target.create_topic(topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": later.address})
    for number in range(count):
        producer.produce(topic, b"%08d" % number, b"key-%d" % (number % 50))
        if number % 5000 == 0:
            producer.flush()
    producer.flush()
    group = unique("back")
    reading = {"bootstrap.servers": later.address, "group.id": group}
    reading |= {"auto.offset.reset": "earliest", "session.timeout.ms": 6000}
    filters = ["--whitelist", topic, "--new.consumer", "--num.streams", "2"]
    filters += ["--offset.commit.interval.ms", "200"]
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, *filters, consumer=reading)
    process = mirror.start()
    launch(process)
    wait_until("some of it", WAIT_S, lambda: total(target, topic) > 1000)
    process.kill()
    process = mirror.start()
    launch(process)
    wait_until("all of it", WAIT_S, lambda: later_committed(later, group, topic) == count)
    assert process.stop() == 143, process.log
    check_all(target, topic, count)


def later_committed(broker: ModernBroker, group: str, topic: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(topic, p) for p in range(PARTITIONS)], 10)
        return sum(max(0, place.offset) for place in found)
    finally:
        consumer.close()


# --- replay


@pytest.mark.parametrize(
    "args", [pytest.param([], marks=pytest.mark.slow), ["--sync", "--messages", "50"]]
)
def test_replay(clusters: tuple[Broker, Broker], tmp_path: Path, args: list[str]) -> None:
    source, _ = clusters
    topic, copy = unique("replayed"), unique("copy")
    for name in (topic, copy):
        source.create_topic(name)
    records = [Record(b"%d" % n, b"value %d" % n) for n in range(200)]
    with KafkaProducer(bootstrap_servers=source.address) as producer:
        for record in records:
            producer.send(topic, record.value, record.key)
    done = Tools("ours", tmp_path).run(
        "kafka.tools.ReplayLogProducer",
        *["--broker-list", source.address, "--zookeeper", source.zookeeper],
        *["--inputtopic", topic, "--outputtopic", copy, "--property", "acks=all", *args],
    )
    assert done.code == 0, done.err
    expected = records[:50] if args else records
    assert values(source, copy, 1) == [[tuple(record) for record in expected]]


def committed(broker: Broker, group: str, topic: str) -> list[int]:
    path = f"/consumers/{group}/offsets/{topic}"
    return [int(zookeeper_text(broker.zookeeper, f"{path}/{p}") or 0) for p in range(PARTITIONS)]
