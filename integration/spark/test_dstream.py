"""The old DStream API against real brokers: what its own tests asserted, and what it got wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from integration import original
from integration.harness import HOME, Broker, Process, ZooKeeper
from integration.spark.support import driver, missing, produce, spark_conf
from integration.wire import entry, wait_until
from kafka08.message.message_set import encode_set

if missing():
    pytest.skip(missing(), allow_module_level=True)

from pyspark import SparkContext, StorageLevel
from pyspark.streaming import StreamingContext

from kafka08.errors import KafkaError
from kafka08.producer.config import ProducerConfig
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.producer import Producer
from kafka08.spark import dstream
from kafka08.spark.contexts import HadoopFiles
from kafka08.spark.dstream import KafkaUtils, OffsetRange, TopicAndPartition
from kafka08.spark.errors import JobError
from kafka08.spark.offset_log import OffsetLog
from kafka08.spark.planner import Range

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
JOBS = Path(__file__).parent / "jobs"
DEADLINE_S = 60
BOTH = [pytest.param("ours"), pytest.param("original", marks=pytest.mark.original)]
PROPS = {
    "message.max.bytes": 4 << 20,
    "replica.fetch.max.bytes": 4 << 20,
    "log.retention.check.interval.ms": 500,
    "log.segment.delete.delay.ms": 100,
}


@pytest.fixture(scope="module")
def sc() -> Iterator[SparkContext]:
    context = SparkContext(conf=spark_conf())
    context.setLogLevel("OFF")
    yield context
    context.stop()


@pytest.fixture(scope="module", params=BOTH)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "original" and not original.available():
        pytest.skip(original.missing())
    return str(request.param)


class Servers:
    """A broker of each kind when asked for."""

    def __init__(self, zookeeper: ZooKeeper, make: Callable[[str], Path]) -> None:
        self._zookeeper = zookeeper
        self._make = make
        self._brokers: dict[str, Broker] = {}

    def get(self, kind: str) -> Broker:
        if kind not in self._brokers:
            chroot = f"{self._zookeeper.connect}/spark-{kind}-{uuid.uuid4().hex[:6]}"
            broker = Broker(kind, self._make(f"spark-{kind}"), chroot, props=PROPS)
            self._brokers[kind] = broker.start()
        return self._brokers[kind]

    def stop(self) -> None:
        for broker in self._brokers.values():
            broker.kill()


@pytest.fixture(scope="module")
def servers(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    made = Servers(zookeeper, tmp_path_factory.mktemp)
    yield made
    made.stop()


@pytest.fixture
def either(servers: Servers, kind: str) -> Broker:
    return servers.get(kind)


@pytest.fixture
def broker(servers: Servers) -> Broker:
    return servers.get("ours")


def new_topic(broker: Broker, partitions: int = 1, **config: object) -> str:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, partitions, {k.replace("_", "."): v for k, v in config.items()})
    return topic


def send(broker: Broker, topic: str, partition: int, values: range | list[int]) -> None:
    produce(broker, topic, partition, [(None, str(value).encode()) for value in values])


def direct(broker: Broker, **params: str) -> dict[str, str]:
    named = {key.replace("_", "."): value for key, value in params.items()}
    return {"metadata.broker.list": broker.address, **named}


SMALLEST = {"auto.offset.reset": "smallest"}


class Seen:
    """What outputs saw, safe to look at while batches run."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.ranges: list[list[OffsetRange]] = []
        # Spark counts arguments, and of a method self would be one.
        self.collect: Callable[[Any], None] = lambda rdd: self.values.extend(rdd.collect())
        self.offsets: Callable[[Any], None] = lambda rdd: self.ranges.append(rdd.offsetRanges())

    def wait(self, count: int) -> None:
        wait_until(f"{count} values", DEADLINE_S, lambda: len(self.values) >= count)


@contextmanager
def conf_of(sc: SparkContext, **settings: object) -> Iterator[None]:
    """Settings that streams read when they run, on the shared context."""
    named = {f"spark.streaming.{key.replace('_', '.')}": str(v) for key, v in settings.items()}
    for key, value in named.items():
        sc._conf.set(key, value)
    yield
    for key in named:
        sc._conf._jconf.remove(key)


@contextmanager
def running(
    sc: SparkContext, define: Callable[[StreamingContext], None], seconds: float = 0.5
) -> Iterator[StreamingContext]:
    ssc = StreamingContext(sc, seconds)
    define(ssc)
    ssc.start()
    try:
        yield ssc
    finally:
        ssc.stop(False, True)


def test_several_topics_are_read_from_the_smallest_offset(sc: SparkContext, either: Broker) -> None:
    topics = [new_topic(either, 2) for _ in range(3)]
    for number, topic in enumerate(topics):
        for partition in range(2):
            first = 100 * number + 10 * partition
            send(either, topic, partition, range(first, first + 8))
    seen, sizes = Seen(), []

    def compare(rdd: Any) -> None:
        counts = rdd.glom().map(len).collect()
        sizes.append((counts, [o.untilOffset - o.fromOffset for o in rdd.offsetRanges()]))

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createDirectStream(ssc, topics, {**direct(either), **SMALLEST})
        stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)
        stream.foreachRDD(compare)

    with running(sc, define):
        seen.wait(48)
    expected = [100 * n + 10 * p + i for n in range(3) for p in range(2) for i in range(8)]
    assert sorted(seen.values) == expected
    assert all(counts == planned and len(counts) == 6 for counts, planned in sizes)


def test_without_a_reset_only_later_messages(sc: SparkContext, broker: Broker) -> None:
    topic = new_topic(broker)
    send(broker, topic, 0, range(10))
    seen = Seen()

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createDirectStream(ssc, [topic], direct(broker))
        stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)

    with running(sc, define):
        send(broker, topic, 0, range(10, 20))
        seen.wait(10)
    assert seen.values == list(range(10, 20))


def test_given_offsets(sc: SparkContext, broker: Broker) -> None:
    topic = new_topic(broker)
    send(broker, topic, 0, range(6))
    seen = Seen()
    start = {TopicAndPartition(topic, 0): 4}

    def define(ssc: StreamingContext) -> None:
        with pytest.raises(JobError, match=f"topics: another .* from offsets: {topic}"):
            KafkaUtils.createDirectStream(ssc, ["another"], direct(broker), start)
        stream = KafkaUtils.createDirectStream(ssc, [topic], direct(broker), start)
        stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)

    with running(sc, define):
        seen.wait(2)
    assert seen.values == [4, 5]


def test_outputs_see_one_plan(sc: SparkContext, broker: Broker) -> None:
    topic = new_topic(broker)
    send(broker, topic, 0, range(6))
    first, second, mapped = Seen(), Seen(), Seen()

    def offsets(rdd: Any) -> Any:
        second.offsets(rdd)
        return rdd.map(lambda pair: int(pair[1]))

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createDirectStream(ssc, [topic], {**direct(broker), **SMALLEST})
        stream.foreachRDD(first.offsets)
        stream.foreachRDD(first.collect)
        stream.transform(offsets).foreachRDD(mapped.collect)
        stream.map(lambda pair: pair[1]).count().foreachRDD(second.collect)
        with pytest.raises(AssertionError, match="one or two arguments"):
            stream.transform(lambda a, b, c: a)

    with running(sc, define):
        mapped.wait(6)
        send(broker, topic, 0, range(6, 9))
        mapped.wait(9)
    assert mapped.values == list(range(9))
    assert [value for _, value in first.values] == [str(i) for i in range(9)]
    assert first.ranges[0] == [OffsetRange(topic, 0, 0, 6)]
    assert [r for r in first.ranges if r[0].fromOffset < r[0].untilOffset] == [
        r for r in second.ranges if r[0].fromOffset < r[0].untilOffset
    ]
    assert sum(second.values) == 9


def test_a_persisted_stream_is_read_once(sc: SparkContext, broker: Broker) -> None:
    topic = new_topic(broker)
    send(broker, topic, 0, range(6))
    seen, fetched = Seen(), sc.accumulator(0)

    def counted(message: Any) -> int:
        fetched.add(1)
        return int(message.message)

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createDirectStream(
            ssc, [topic], {**direct(broker), **SMALLEST}, messageHandler=counted
        )
        stream.persist(StorageLevel.MEMORY_ONLY)
        stream.foreachRDD(seen.collect)
        stream.foreachRDD(seen.collect)

    with running(sc, define):
        seen.wait(12)
    assert sorted(seen.values) == sorted([*range(6), *range(6)])
    assert fetched.value == 6


def test_handlers_and_decoders(sc: SparkContext, broker: Broker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, 0, [(None, b"a"), (b"k", b"b"), (b"k", None)])
    ranges = [OffsetRange(topic, 0, 0, 3)]
    plain = KafkaUtils.createRDD(sc, direct(broker), ranges)
    assert plain.collect() == [(None, "a"), ("k", "b"), ("k", None)]
    raw = KafkaUtils.createRDD(
        sc, direct(broker), ranges, keyDecoder=lambda k: k, valueDecoder=lambda v: v and v * 2
    )
    assert raw.collect() == [(None, b"aa"), (b"k", b"bb"), (b"k", None)]
    handled = KafkaUtils.createRDD(
        sc,
        direct(broker),
        ranges,
        valueDecoder=lambda v: v,
        messageHandler=lambda m: (m.topic, m.partition, m.offset, m.key, m.message),
    )
    assert handled.collect()[1] == (topic, 0, 1, "k", b"b")
    whole = KafkaUtils.createRDD(sc, direct(broker), ranges, messageHandler=lambda m: m)
    assert [(m.offset, m.key, m.message) for m in whole.collect()][1] == (1, "k", "b")


def test_ranges_as_an_rdd(sc: SparkContext, either: Broker) -> None:
    topic = new_topic(either, 2)
    send(either, topic, 0, range(10))
    send(either, topic, 1, range(10, 20))
    ranges = [
        OffsetRange(topic, 0, 2, 5),
        OffsetRange(topic, 1, 9, 10),
        OffsetRange(topic, 0, 5, 5),
    ]
    right = {
        TopicAndPartition(topic, p): dstream.Broker("127.0.0.1", either.port) for p in range(2)
    }
    stale = {tp: dstream.Broker("127.0.0.1", 1) for tp in right}
    for leaders in (None, right, stale):
        rdd = KafkaUtils.createRDD(sc, direct(either), ranges, leaders)
        assert [int(value) for _, value in rdd.collect()] == [2, 3, 4, 19]
        assert rdd.offsetRanges() == ranges
        assert not hasattr(rdd.map(lambda pair: pair), "offsetRanges")
    with pytest.raises(JobError, match="leaders names no broker"):
        leaders = {TopicAndPartition(topic, 0): right[TopicAndPartition(topic, 0)]}
        KafkaUtils.createRDD(sc, direct(either), ranges, leaders)
    with pytest.raises(JobError, match=r"Offsets not available on leader: .*\[5, 11\)"):
        KafkaUtils.createRDD(sc, direct(either), [OffsetRange(topic, 0, 5, 11)])


def test_errors_at_creation(sc: SparkContext, broker: Broker) -> None:
    ssc = StreamingContext(sc, 1)
    for params in ({}, {"metadata.broker.list": ""}):
        with pytest.raises(JobError, match="Must specify"):
            KafkaUtils.createDirectStream(ssc, ["t"], params)
    with pytest.raises(JobError, match="host>:<port"):
        KafkaUtils.createDirectStream(ssc, ["t"], {"bootstrap.servers": "localhost"})
    with pytest.raises(TypeError, match="topics should be list"):
        KafkaUtils.createDirectStream(ssc, "t", direct(broker))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="topics should be dict"):
        KafkaUtils.createStream(ssc, broker.zookeeper, "g", ["t"])  # type: ignore[arg-type]
    nowhere = {"metadata.broker.list": "127.0.0.1:1"}
    with pytest.raises((OSError, KafkaError)):
        KafkaUtils.createDirectStream(ssc, ["t"], nowhere)


def test_a_rate_limit(sc: SparkContext, broker: Broker) -> None:
    topic = new_topic(broker, 2)
    for partition in range(2):
        send(broker, topic, partition, range(500))
    seen = Seen()

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createDirectStream(ssc, [topic], {**direct(broker), **SMALLEST})
        stream.foreachRDD(seen.offsets)
        stream.foreachRDD(seen.collect)

    with conf_of(sc, kafka_maxRatePerPartition=100), running(sc, define):
        seen.wait(1000)
    sizes = [o.untilOffset - o.fromOffset for ranges in seen.ranges for o in ranges]
    assert max(sizes) == 50
    assert len(seen.values) == 1000


@pytest.mark.parametrize("codec", [1, 2])
def test_ranges_may_begin_inside_a_wrapper(sc: SparkContext, either: Broker, codec: int) -> None:
    topic = new_topic(either)
    with either.wire() as wire:
        for first in (0, 10):
            records = [(None, str(value).encode()) for value in range(first, first + 10)]
            wire.produce(topic, 0, encode_set(records, codec))
    rdd = KafkaUtils.createRDD(sc, direct(either), [OffsetRange(topic, 0, 4, 13)])
    assert [int(value) for _, value in rdd.collect()] == list(range(4, 13))


def test_a_message_larger_than_the_fetch_size(sc: SparkContext, broker: Broker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, 0, [(None, b"x" * (3 << 20)), (None, b"y")])
    rdd = KafkaUtils.createRDD(sc, direct(broker), [OffsetRange(topic, 0, 0, 2)])
    assert rdd.map(lambda pair: len(pair[1])).collect() == [3 << 20, 1]


def test_what_retention_took_is_an_error_not_a_reset(sc: SparkContext, broker: Broker) -> None:
    topic = new_topic(broker, segment_bytes=1000, retention_bytes=1000)
    with broker.wire() as wire:
        for number in range(20):
            wire.produce(topic, 0, entry(None, b"x" * 400 + b"%d" % number))
        wait_until("retention", DEADLINE_S, lambda: wire.offset(topic, 0, -2) > 5)
        earliest = wire.offset(topic, 0, -2)
    start = {TopicAndPartition(topic, 0): 2}
    seen = Seen()
    ssc = StreamingContext(sc, 0.5)
    KafkaUtils.createDirectStream(ssc, [topic], direct(broker), start).foreachRDD(seen.collect)
    ssc.start()
    try:
        with pytest.raises(Exception, match=rf"{topic}-0 \[2, 20\) is out of range.*{earliest}"):
            ssc.awaitTerminationOrTimeout(DEADLINE_S)
    finally:
        ssc.stop(False, False)
    assert seen.values == []


def grow(broker: Broker, topic: str, partitions: int) -> None:
    client = KazooClient(broker.zookeeper)
    client.start(30)
    payload = {"version": 1, "partitions": {str(n): [broker.broker_id] for n in range(partitions)}}
    client.set(f"/brokers/topics/{topic}", json.dumps(payload).encode())
    client.stop()
    client.close()
    broker.wait_for_leader(topic, partitions)


@pytest.mark.parametrize("discover", [False, True])
def test_partitions_added_later(sc: SparkContext, broker: Broker, discover: bool) -> None:
    topic = new_topic(broker, 2)
    seen = Seen()

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createDirectStream(ssc, [topic], direct(broker))
        stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)

    settings = {"kafka_discoverPartitions": str(discover).lower()}
    with conf_of(sc, **settings), running(sc, define):
        grow(broker, topic, 4)
        for partition in (3, 2, 1, 0):
            send(broker, topic, partition, [partition])
        seen.wait(4 if discover else 2)
    assert sorted(seen.values) == ([0, 1, 2, 3] if discover else [0, 1])


def test_input_is_counted(sc: SparkContext, broker: Broker) -> None:
    topic = new_topic(broker)
    send(broker, topic, 0, range(7))
    counts: list[int] = []

    from pyspark.streaming.listener import StreamingListener

    class Counter(StreamingListener):
        def onBatchCompleted(self, batchCompleted: Any) -> None:
            counts.append(int(batchCompleted.batchInfo().numRecords()))

    def define(ssc: StreamingContext) -> None:
        ssc.addStreamingListener(Counter())
        stream = KafkaUtils.createDirectStream(ssc, [topic], {**direct(broker), **SMALLEST})
        stream.foreachRDD(lambda rdd: rdd.count())

    with running(sc, define):
        wait_until("a batch", DEADLINE_S, lambda: sum(counts) > 0)
    assert sum(counts) == 7


def test_the_offset_log_on_a_file_system_of_hadoop(sc: SparkContext, tmp_path: Path) -> None:
    files = HadoopFiles(StreamingContext(sc, 1), f"file://{tmp_path}/log")
    log = OffsetLog(files, kept=2)
    for number in (1, 2, 3):
        log.write(number, [Range("t", 0, number, 9)])
    assert log.read(3) == [Range("t", 0, 3, 9)]
    assert log.read(1) is None
    assert sorted(int(name) for name in files.names() if name.isdecimal()) == [2, 3]


@pytest.mark.slow
def test_batches_shrink_for_a_slow_output(sc: SparkContext, broker: Broker) -> None:
    topic = new_topic(broker, 2)
    send(broker, topic, 0, range(10_000))
    seen = Seen()

    def slow(rdd: Any) -> None:
        threading.Event().wait(0.6)

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createDirectStream(ssc, [topic], {**direct(broker), **SMALLEST})
        stream.foreachRDD(slow)
        stream.foreachRDD(seen.offsets)
        stream.foreachRDD(seen.collect)

    settings = {"backpressure_enabled": "true", "backpressure_initialRate": 600}
    with conf_of(sc, **settings), running(sc, define):
        wait_until("ten batches", DEADLINE_S, lambda: len(seen.ranges) >= 10)
    sizes = [ranges[0].untilOffset - ranges[0].fromOffset for ranges in seen.ranges]
    assert sizes[0] == 300
    assert min(sizes) > 0 and sizes[-1] < 300


@pytest.mark.slow
def test_a_broker_that_is_away_fails_batches_and_loses_nothing(
    sc: SparkContext, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    chroot = f"{zookeeper.connect}/away-{uuid.uuid4().hex[:6]}"
    broker = Broker("ours", tmp_path / "broker", chroot).start()
    topic = new_topic(broker)
    seen = Seen()
    ssc = StreamingContext(sc, 0.5)
    stream = KafkaUtils.createDirectStream(ssc, [topic], direct(broker))
    stream.foreachRDD(seen.offsets)
    stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)
    ssc.start()
    try:
        send(broker, topic, 0, range(10))
        seen.wait(10)
        broker.stop()
        with pytest.raises(Exception, match="fetching topic metadata"):
            ssc.awaitTerminationOrTimeout(DEADLINE_S)
        broker.start()
        broker.wait_for_leader(topic)
        send(broker, topic, 0, range(10, 20))
        seen.wait(20)
    finally:
        ssc.stop(False, False)
        broker.kill()
    assert seen.values == list(range(20))
    spans = [(r[0].fromOffset, r[0].untilOffset) for r in seen.ranges]
    assert all(before[1] == after[0] for before, after in pairwise(spans))


# --- groups


def committed(broker: Broker, group: str, topic: str) -> dict[int, int]:
    client = KazooClient(broker.zookeeper)
    client.start(30)
    try:
        path = f"/consumers/{group}/offsets/{topic}"
        if not client.exists(path):
            return {}
        return {int(p): int(client.get(f"{path}/{p}")[0]) for p in client.get_children(path)}
    finally:
        client.stop()
        client.close()


def owners(broker: Broker, group: str, topic: str) -> Counter[str]:
    client = KazooClient(broker.zookeeper)
    client.start(30)
    try:
        path = f"/consumers/{group}/owners/{topic}"
        return Counter(client.get(f"{path}/{p}")[0].decode() for p in client.get_children(path))
    except NoNodeError:
        return Counter()  # none yet, or changing hands just now
    finally:
        client.stop()
        client.close()


def test_a_group_stream_goes_on_where_it_stopped(sc: SparkContext, broker: Broker) -> None:
    topic, group = new_topic(broker, 2), uuid.uuid4().hex
    seen = Seen()
    params: dict[str, str] = dict(SMALLEST)

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createStream(
            ssc, broker.zookeeper, group, {topic: 2}, params, StorageLevel.MEMORY_ONLY
        )
        stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)

    send(broker, topic, 0, range(5))
    send(broker, topic, 1, range(5, 10))
    with running(sc, define):
        seen.wait(10)
    assert params["zookeeper.connect"] == broker.zookeeper
    assert params["group.id"] == group
    assert committed(broker, group, topic) == {0: 5, 1: 5}
    send(broker, topic, 0, range(10, 15))
    with running(sc, define):
        seen.wait(15)
    assert sorted(seen.values) == list(range(15))


def test_a_failed_batch_is_not_committed(sc: SparkContext, broker: Broker) -> None:
    topic, group = new_topic(broker), uuid.uuid4().hex
    seen = Seen()
    fail = threading.Event()
    fail.set()

    def output(rdd: Any) -> None:
        values = rdd.collect()
        if "bad" in values and fail.is_set():
            raise RuntimeError("an output that fails")
        seen.values.extend(values)

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createStream(
            ssc, broker.zookeeper, group, {topic: 1}, dict(SMALLEST), StorageLevel.MEMORY_ONLY
        )
        stream.map(lambda pair: pair[1]).foreachRDD(output)

    produce(broker, topic, 0, [(None, b"one")])
    with running(sc, define):
        seen.wait(1)
        wait_until("a commit", DEADLINE_S, lambda: committed(broker, group, topic) == {0: 1})
        produce(broker, topic, 0, [(None, b"bad")])
        seen_before = len(seen.values)
        wait_until("the bad batch", DEADLINE_S, lambda: _planned_past(broker, group, topic, seen))
        produce(broker, topic, 0, [(None, b"three")])
        seen.wait(seen_before + 1)
    assert committed(broker, group, topic) == {0: 1}
    fail.clear()
    with running(sc, define):
        seen.wait(4)
    assert seen.values == ["one", "three", "bad", "three"]
    assert committed(broker, group, topic) == {0: 3}


def _planned_past(broker: Broker, group: str, topic: str, seen: Seen) -> bool:
    """The bad message needs a batch of its own: one interval and a bit."""
    threading.Event().wait(1.5)
    return True


# --- drivers that are killed


@pytest.fixture
def out(tmp_path: Path) -> Path:
    path = tmp_path / "out"
    path.mkdir()
    return path


def outputs(out: Path, topic: str) -> dict[str, list[int]]:
    return {
        path.name: [int(word) for word in path.read_text().split()]
        for path in out.glob(f"{topic}-*")
        if path.suffix != ".tmp"
    }


def checkpoints(directory: Path) -> dict[str, bytes]:
    found = {}
    for path in directory.glob("checkpoint-*"):
        with suppress(FileNotFoundError):
            found[path.name] = path.read_bytes()
    return found


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.mark.slow
@pytest.mark.parametrize("lost_checkpoint", [False, True])
def test_a_driver_killed_in_a_batch(
    broker: Broker,
    tmp_path: Path,
    out: Path,
    launch: Callable[[Process], None],
    lost_checkpoint: bool,
) -> None:
    topic = new_topic(broker, 2)
    checkpoint = tmp_path / "checkpoint"
    args = (checkpoint, out, broker.address, topic)
    first = driver("first", tmp_path / "first", JOBS / "summing.py", *args)
    launch(first)
    for partition in range(2):
        send(broker, topic, partition, range(60))
    wait_until("a sum", DEADLINE_S, lambda: text_of(out / "sum") == str(2 * sum(range(60))))
    (out / "hold").touch()
    before = len(text_of(out / "planned").splitlines())
    earlier = checkpoints(checkpoint)
    send(broker, topic, 0, range(60, 90))
    wait_until("a batch", DEADLINE_S, lambda: len(text_of(out / "planned").splitlines()) > before)
    pending = text_of(out / "planned").splitlines()[before:]
    first.kill()
    if lost_checkpoint:
        # As if it had died between the offset log and the checkpoint of that batch.
        for path in checkpoint.glob("*checkpoint-*"):
            path.unlink()
        for name, data in earlier.items():
            (checkpoint / name).write_bytes(data)
    (out / "hold").unlink()
    send(broker, topic, 0, range(90, 120))
    second = driver("second", tmp_path / "second", JOBS / "summing.py", *args)
    launch(second)
    expected = sum(range(120)) + sum(range(60))
    wait_until("the whole sum", DEADLINE_S, lambda: text_of(out / "sum") == str(expected))
    (out / "stop").touch()
    assert second.exit_code(DEADLINE_S) == 0
    planned = text_of(out / "planned").splitlines()
    assert set(pending) <= set(planned[before + len(pending) :])
    found = outputs(out, topic)
    assert sorted(v for values in found.values() for v in values) == sorted(
        [*range(120), *range(60)]
    )
    assert all(len(values) <= 50 for values in found.values())


@pytest.mark.slow
def test_an_executor_killed_in_a_batch(
    broker: Broker, tmp_path: Path, out: Path, launch: Callable[[Process], None]
) -> None:
    topic = new_topic(broker, 2)
    args = (tmp_path / "checkpoint", out, broker.address, topic, "local-cluster[2,1,1024]")
    job = driver("job", tmp_path / "job", JOBS / "summing.py", *args)
    launch(job)
    job.wait_for("running", DEADLINE_S)
    executors = f"pgrep -g {os.getpgid(job.pid)} -f CoarseGrainedExecutorBackend"
    for first in range(0, 200, 20):
        for partition in range(2):
            send(broker, topic, partition, range(first, first + 20))
        if first == 60:
            wait_until("a sum", 2 * DEADLINE_S, lambda: (out / "sum").exists())
            found = subprocess.run(executors.split(), capture_output=True, text=True, check=True)
            os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
    expected = str(2 * sum(range(200)))
    wait_until("the whole sum", 2 * DEADLINE_S, lambda: text_of(out / "sum") == expected)
    (out / "stop").touch()
    assert job.exit_code(DEADLINE_S) == 0
    found_values = [v for values in outputs(out, topic).values() for v in values]
    assert sorted(found_values) == sorted([*range(200), *range(200)])


@pytest.mark.slow
def test_a_leader_killed_while_batches_run(
    sc: SparkContext, zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    chroot = f"{zookeeper.connect}/leaders-{uuid.uuid4().hex[:6]}"
    pair = [
        Broker(
            "ours", tmp_path / f"b{i}", chroot, broker_id=i, props={"default.replication.factor": 2}
        )
        for i in range(2)
    ]
    for each in pair:
        launch(each)
        each.start()
    topic = f"t-{uuid.uuid4().hex[:8]}"
    replicate(pair[0], topic)
    config = ProducerConfig(
        metadata_broker_list=",".join(each.address for each in pair),
        request_required_acks=-1,
        message_send_max_retries=100,
    )
    seen = Seen()

    def define(ssc: StreamingContext) -> None:
        params = {"metadata.broker.list": config.metadata_broker_list}
        stream = KafkaUtils.createDirectStream(ssc, [topic], {**params, **SMALLEST})
        stream.foreachRDD(seen.offsets)
        stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)

    with (
        conf_of(sc, kafka_maxRetries=50, kafka_maxRatePerPartition=40),
        running(sc, define),
        Producer(config) as producer,
    ):
        producer.send(*[KeyedMessage(topic, b"%d" % number) for number in range(200)])
        seen.wait(50)
        pair[0].kill()
        for number in range(200, 240):
            producer.send(KeyedMessage(topic, b"%d" % number))
        seen.wait(240)
    assert sorted(seen.values) == list(range(240))
    spans = [(r[0].fromOffset, r[0].untilOffset) for r in seen.ranges]
    assert all(before[1] == after[0] for before, after in pairwise(spans))


def replicate(broker: Broker, topic: str) -> None:
    """A topic of one partition on brokers 0 and 1, led by 0 with both in the isr."""
    client = KazooClient(broker.zookeeper)
    client.start(30)
    try:
        client.create(f"/config/topics/{topic}", b'{"version":1,"config":{}}', makepath=True)
        payload = {"version": 1, "partitions": {"0": [0, 1]}}
        client.create(f"/brokers/topics/{topic}", json.dumps(payload).encode(), makepath=True)
        broker.wait_for_leader(topic)
        state = f"/brokers/topics/{topic}/partitions/0/state"
        wait_until(
            "two in sync",
            DEADLINE_S,
            lambda: sorted(json.loads(client.get(state)[0])["isr"]) == [0, 1],
        )
    finally:
        client.stop()
        client.close()


@pytest.mark.slow
def test_two_drivers_share_a_group(
    either: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    broker = either
    topic, group = new_topic(broker, 4), uuid.uuid4().hex
    notes = [tmp_path / "a", tmp_path / "b"]
    stop = tmp_path / "stop"

    def start(number: int) -> Process:
        args = (broker.zookeeper, group, topic, notes[number], stop)
        process = driver(f"member{number}", tmp_path / f"m{number}", JOBS / "member.py", *args)
        launch(process)
        return process

    first = start(0)
    wait_until("one owner", DEADLINE_S, lambda: list(owners(broker, group, topic).values()) == [4])
    for partition in range(4):
        send(broker, topic, partition, range(100 * partition, 100 * partition + 50))
    second = start(1)
    wait_until(
        "two owners", DEADLINE_S, lambda: list(owners(broker, group, topic).values()) == [2, 2]
    )
    for partition in range(4):
        send(broker, topic, partition, range(100 * partition + 50, 100 * partition + 80))
    wanted = {100 * p + i for p in range(4) for i in range(80)}
    wait_until("all", DEADLINE_S, lambda: _noted(notes) == wanted)
    assert text_of(notes[1]), "the second had a share"
    second.kill()
    wait_until(
        "one owner again", DEADLINE_S, lambda: list(owners(broker, group, topic).values()) == [4]
    )
    for partition in range(4):
        send(broker, topic, partition, range(100 * partition + 80, 100 * partition + 100))
    wanted = {100 * p + i for p in range(4) for i in range(100)}
    wait_until("all again", DEADLINE_S, lambda: _noted(notes) == wanted)
    stop.touch()
    assert first.exit_code(DEADLINE_S) == 0
    assert committed(broker, group, topic) == dict.fromkeys(range(4), 100)


def _noted(notes: list[Path]) -> set[int]:
    return {int(word) for path in notes for word in text_of(path).split()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["legacy_direct", "legacy_receiver"])
def test_a_job_of_2_4_runs_with_its_import_changed(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None], name: str
) -> None:
    topic = new_topic(broker)
    text = (JOBS / f"{name}.txt").read_text()
    program = tmp_path / "job.py"
    program.write_text(text.replace("pyspark.streaming.kafka", "kafka08.spark.dstream"))
    lines = [(None, b"to be or"), (None, b"not to be")]
    produce(broker, topic, 0, lines)
    where = broker.zookeeper if name == "legacy_receiver" else broker.address
    args = [where, topic] + ([tmp_path / "checkpoint"] if name == "legacy_direct" else [])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    job = driver("job", tmp_path / "job", program, *args)
    launch(job)
    job.wait_for("('be', 2)", DEADLINE_S)
    job.wait_for("('not', 1)", DEADLINE_S)
    if name == "legacy_direct":
        # Its outputs print the offsets of the batch planned last, as they did in 2.4.
        job.wait_for(f"offsets {topic} 0 ", DEADLINE_S)


@pytest.mark.slow
def test_the_example_of_the_guide(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    section = (HOME / "docs" / "spark.md").read_text().partition("## Old DStream jobs")[2]
    text = section.partition("```python\n")[2].partition("```")[0]
    assert "localhost:9092" in text
    program = tmp_path / "guide.py"
    program.write_text(text.replace("localhost:9092", broker.address))
    job = driver("guide", tmp_path / "guide", program)
    launch(job)
    assert job.exit_code(DEADLINE_S) == 0, job.log[-2000:]
    assert "OffsetRange(topic: lines, partition: 0, range: [0 -> 5])" in job.log
