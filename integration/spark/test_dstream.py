"""The old DStream API against real brokers: what its own tests asserted, and what it got wrong."""

from __future__ import annotations

import os
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import HOME, Broker, Process
from integration.spark.scene import (
    DEADLINE_S,
    SMALLEST,
    SPARK_WARNINGS,
    Seen,
    committed,
    conf_of,
    direct,
    grow,
    new_topic,
    running,
    send,
)
from integration.spark.support import driver, missing, produce, spark_conf
from integration.wire import entry, wait_until
from kafka08.message.sets import encode_set

if missing():
    pytest.skip(missing(), allow_module_level=True)

from pyspark import SparkContext, StorageLevel, TaskContext
from pyspark.streaming import StreamingContext
from pyspark.streaming.listener import StreamingListener

from kafka08.errors import ConfigError, KafkaError
from kafka08.spark import direct as direct_module
from kafka08.spark import dstream, patience, rdd
from kafka08.spark.dstream import KafkaUtils, OffsetRange, TopicAndPartition
from kafka08.spark.errors import JobError, UnreachableError
from kafka08.spark.files.hadoop import HadoopFiles
from kafka08.spark.files.offset_log import OffsetLog
from kafka08.spark.group_offsets import GroupOffsets
from kafka08.spark.planner import Range

pytestmark = SPARK_WARNINGS
JOBS = Path(__file__).parent / "jobs"
PROPS = {
    "message.max.bytes": 4 << 20,
    "replica.fetch.max.bytes": 4 << 20,
    "log.retention.check.interval.ms": 500,
    "log.segment.delete.delay.ms": 100,
    "auto.create.topics.enable": "false",
}


@pytest.fixture(scope="module")
def sc() -> Iterator[SparkContext]:
    context = SparkContext(conf=spark_conf())
    context.setLogLevel("OFF")
    yield context
    context.stop()


@pytest.mark.scenario("spark-1")
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


@pytest.mark.scenario("spark-2")
def test_without_a_reset_only_later_messages(sc: SparkContext, either: Broker) -> None:
    topic = new_topic(either)
    send(either, topic, 0, range(10))
    seen = Seen()

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createDirectStream(ssc, [topic], direct(either))
        stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)

    with running(sc, define):
        send(either, topic, 0, range(10, 20))
        seen.wait(10)
    assert seen.values == list(range(10, 20))


@pytest.mark.scenario("spark-3")
def test_given_offsets(sc: SparkContext, either: Broker) -> None:
    topic = new_topic(either)
    send(either, topic, 0, range(6))
    seen = Seen()
    start = {TopicAndPartition(topic, 0): 4}

    def define(ssc: StreamingContext) -> None:
        with pytest.raises(JobError, match=f"topics: another .* from offsets: {topic}"):
            KafkaUtils.createDirectStream(ssc, ["another"], direct(either), start)
        stream = KafkaUtils.createDirectStream(ssc, [topic], direct(either), start)
        stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)

    with running(sc, define):
        seen.wait(2)
    assert seen.values == [4, 5]


def test_a_job_goes_on_where_its_group_is(sc: SparkContext, either: Broker) -> None:
    topic, group = new_topic(either), f"g-{uuid.uuid4().hex[:8]}"
    partition = TopicAndPartition(topic, 0)
    offsets = GroupOffsets({"zookeeper.connect": either.zookeeper}, group)
    assert offsets.committed([partition]) == {}
    seen = Seen()

    def define(ssc: StreamingContext) -> None:
        begin = offsets.committed([partition])
        params = {**direct(either), **SMALLEST}
        stream = KafkaUtils.createDirectStream(ssc, [topic], params, begin or None)
        stream.foreachRDD(seen.collect)
        stream.foreachRDD(lambda rdd: offsets.commit(rdd.offsetRanges()))

    for round in range(2):
        send(either, topic, 0, range(10 * round, 10 * round + 10))
        with running(sc, define):
            seen.wait(10 * round + 10)
        assert committed(either, group, topic) == {0: 10 * round + 10}
    offsets.close()
    assert [int(value) for _, value in seen.values] == list(range(20))


@pytest.mark.scenario("spark-4")
def test_outputs_see_one_plan(
    sc: SparkContext, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(broker)
    send(broker, topic, 0, range(6))
    first, second, mapped = Seen(), Seen(), Seen()
    planned: list[list[Range]] = []

    def make_rdd(sc: Any, params: Any, ranges: list[Range], *rest: Any) -> Any:
        planned.append(ranges)
        return rdd.make_rdd(sc, params, ranges, *rest)

    monkeypatch.setattr(direct_module, "make_rdd", make_rdd)

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
    # One output sees every batch, empty ones too, and each was planned once for all five.
    assert [(r.start, r.end) for (r,) in planned[: len(first.spans)]] == first.spans
    assert len(planned) - len(first.spans) in (0, 1)


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


@pytest.mark.scenario("spark-5")
def test_handlers_and_decoders(sc: SparkContext, either: Broker) -> None:
    topic = new_topic(either)
    produce(either, topic, 0, [(None, b"a"), (b"k", b"b"), (b"k", None)])
    ranges = [OffsetRange(topic, 0, 0, 3)]
    plain = KafkaUtils.createRDD(sc, direct(either), ranges)
    assert plain.collect() == [(None, "a"), ("k", "b"), ("k", None)]
    raw = KafkaUtils.createRDD(
        sc, direct(either), ranges, keyDecoder=lambda k: k, valueDecoder=lambda v: v and v * 2
    )
    assert raw.collect() == [(None, b"aa"), (b"k", b"bb"), (b"k", None)]
    handled = KafkaUtils.createRDD(
        sc,
        direct(either),
        ranges,
        valueDecoder=lambda v: v,
        messageHandler=lambda m: (m.topic, m.partition, m.offset, m.key, m.message),
    )
    assert handled.collect()[1] == (topic, 0, 1, "k", b"b")
    whole = KafkaUtils.createRDD(sc, direct(either), ranges, messageHandler=lambda m: m)
    assert [(m.offset, m.key, m.message) for m in whole.collect()][1] == (1, "k", "b")
    pairs, seen = Seen(), Seen()

    def define(ssc: StreamingContext) -> None:
        params = {**direct(either), **SMALLEST}
        decoders: dict[str, Any] = {
            "keyDecoder": lambda key: key,
            "valueDecoder": lambda value: value and value * 2,
        }
        stream = KafkaUtils.createDirectStream(ssc, [topic], params, **decoders)
        stream.foreachRDD(pairs.collect)
        stream = KafkaUtils.createDirectStream(
            ssc,
            [topic],
            params,
            messageHandler=lambda m: (m.topic, m.partition, m.offset, m.key, m.message),
            **decoders,
        )
        stream.foreachRDD(seen.collect)

    with running(sc, define):
        seen.wait(3)
    assert pairs.values == [(None, b"aa"), (b"k", b"bb"), (b"k", None)]
    assert seen.values == [(topic, 0, n, *pair) for n, pair in enumerate(pairs.values)]


@pytest.mark.scenario("spark-6", "spark-input-3")
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
    for leaders, attempts in ((right, [0, 0, 0, 0]), (stale, [1, 1, 1, 1])):
        rdd = KafkaUtils.createRDD(sc, direct(either), ranges, leaders, messageHandler=attempt)
        assert rdd.collect() == attempts, "a leader that has gone costs one attempt"
    with pytest.raises(JobError, match="leaders names no broker"):
        leaders = {TopicAndPartition(topic, 0): right[TopicAndPartition(topic, 0)]}
        KafkaUtils.createRDD(sc, direct(either), ranges, leaders)
    group = uuid.uuid4().hex
    sc.setJobGroup(group, "ranges beyond the log")
    try:
        for first, last in ((5, 11), (11, 12)):
            text = rf"Offsets not available on leader: {topic}-0 \[{first}, {last}\).*\[0, 10\)"
            with pytest.raises(JobError, match=text):
                KafkaUtils.createRDD(sc, direct(either), [OffsetRange(topic, 0, first, last)])
        assert list(sc.statusTracker().getJobIdsForGroup(group)) == [], "no job was needed"
    finally:
        sc.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def attempt(message: Any) -> int:
    context = TaskContext.get()
    assert context is not None
    return context.attemptNumber()


@pytest.mark.scenario("spark-input-1", "spark-input-4", "spark-input-7")
def test_errors_at_creation(
    sc: SparkContext, either: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 1.0)  # nobody comes back here
    new_topic(either, 1)  # a broker that knows another topic can tell that one does not exist
    ssc = StreamingContext(sc, 1)
    for params in ({}, {"metadata.broker.list": ""}):
        with pytest.raises(JobError, match="Must specify"):
            KafkaUtils.createDirectStream(ssc, ["t"], params)
    with pytest.raises(JobError, match="host>:<port"):
        KafkaUtils.createDirectStream(ssc, ["t"], {"bootstrap.servers": "localhost"})
    with pytest.raises(TypeError, match="topics should be list"):
        KafkaUtils.createDirectStream(ssc, "t", direct(either))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="topics should be dict"):
        KafkaUtils.createStream(ssc, either.zookeeper, "g", ["t"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="offsetRanges should be list"):
        KafkaUtils.createRDD(sc, direct(either), OffsetRange("t", 0, 0, 1))  # type: ignore[arg-type]
    for option in ("metadata.broker.list", "bootstrap.servers"):
        text = rf"{option.replace('.', '[.]')} has value 127\.0\.0\.1:1,127\.0\.0\.1:2: "
        nowhere = {option: "127.0.0.1:1,127.0.0.1:2"}
        with pytest.raises(UnreachableError, match=text):
            KafkaUtils.createDirectStream(ssc, ["t"], nowhere)
        with pytest.raises(UnreachableError, match=text):
            KafkaUtils.createRDD(sc, nowhere, [OffsetRange("t", 0, 0, 1)])
    with pytest.raises(JobError, match=r"metadata for 'no-such-topic'\. Does the topic exist"):
        KafkaUtils.createDirectStream(ssc, ["no-such-topic"], direct(either))
    with pytest.raises(JobError, match=r"leader offsets: \[no-such-topic,0\]"):
        KafkaUtils.createRDD(sc, direct(either), [OffsetRange("no-such-topic", 0, 0, 1)])
    text = r"fetch\.message\.max\.bytes has value many which is not an integer"
    with pytest.raises(JobError, match=text):
        wrong = direct(either, fetch_message_max_bytes="many")
        KafkaUtils.createDirectStream(ssc, ["t"], wrong)
    for key, value in (("auto.offset.reset", "sometimes"), ("fetch.message.max.bytes", "many")):
        with pytest.raises(ConfigError, match=f"{key}.*{value}"):
            KafkaUtils.createStream(ssc, either.zookeeper, "g", {"t": 1}, {key: value})
    with pytest.raises(KafkaError, match=r"at least one thread each: \{'t': 0\}"):
        KafkaUtils.createStream(ssc, either.zookeeper, "g", {"t": 0})


@pytest.mark.scenario("spark-7")
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


@pytest.mark.scenario("spark-26")
@pytest.mark.parametrize("codec", [1, 2])
def test_ranges_may_begin_inside_a_wrapper(sc: SparkContext, either: Broker, codec: int) -> None:
    topic = new_topic(either)
    with either.wire() as wire:
        for first in (0, 10):
            records = [(None, str(value).encode()) for value in range(first, first + 10)]
            wire.produce(topic, 0, encode_set(records, codec))
    rdd = KafkaUtils.createRDD(sc, direct(either), [OffsetRange(topic, 0, 4, 13)])
    assert [int(value) for _, value in rdd.collect()] == list(range(4, 13))


@pytest.mark.scenario("spark-25")
def test_a_message_larger_than_the_fetch_size(sc: SparkContext, either: Broker) -> None:
    topic = new_topic(either)
    produce(either, topic, 0, [(None, b"x" * (3 << 20)), (None, b"y")])
    rdd = KafkaUtils.createRDD(sc, direct(either), [OffsetRange(topic, 0, 0, 2)])
    assert rdd.map(lambda pair: len(pair[1])).collect() == [3 << 20, 1]


@pytest.mark.scenario("spark-15", "spark-input-3")
def test_what_retention_took_is_an_error_not_a_reset(sc: SparkContext, either: Broker) -> None:
    topic = new_topic(either, segment_bytes=1000, retention_bytes=1000)
    with either.wire() as wire:
        for number in range(20):
            wire.produce(topic, 0, entry(None, b"x" * 400 + b"%d" % number))
        # Two messages a segment; the last two segments are kept. Others go one by one.
        wait_until("retention", DEADLINE_S, lambda: wire.offset(topic, 0, -2) == 16)
    start = {TopicAndPartition(topic, 0): 2}
    seen = Seen()
    ssc = StreamingContext(sc, 0.5)
    KafkaUtils.createDirectStream(ssc, [topic], direct(either), start).foreachRDD(seen.collect)
    ssc.start()
    try:
        with pytest.raises(Exception, match=rf"{topic}-0 \[2, 20\) is out of range.*16"):
            ssc.awaitTerminationOrTimeout(DEADLINE_S)
    finally:
        ssc.stop(False, False)
    assert seen.values == []


@pytest.mark.scenario("spark-input-3")
def test_offsets_beyond_the_log_fail_its_batches(sc: SparkContext, either: Broker) -> None:
    topic = new_topic(either)
    send(either, topic, 0, range(5))
    seen = Seen()
    start = {TopicAndPartition(topic, 0): 99}
    ssc = StreamingContext(sc, 0.5)
    KafkaUtils.createDirectStream(ssc, [topic], direct(either), start).foreachRDD(seen.collect)
    ssc.start()
    try:
        with pytest.raises(Exception, match=rf"99 of \[{topic},0\], whose log ends at 5.*fromOff"):
            ssc.awaitTerminationOrTimeout(DEADLINE_S)
    finally:
        ssc.stop(False, False)
    assert seen.values == []


@pytest.mark.scenario("spark-input-4")
def test_a_group_without_its_zookeeper(sc: SparkContext) -> None:
    ssc = StreamingContext(sc, 0.5)
    stream = KafkaUtils.createStream(ssc, "127.0.0.1:1", "g", {"t": 1})
    stream.foreachRDD(lambda rdd: None)
    ssc.start()
    try:
        with pytest.raises(Exception, match=r"127\.0\.0\.1:1"):
            ssc.awaitTerminationOrTimeout(DEADLINE_S)
    finally:
        ssc.stop(False, False)


@pytest.mark.scenario("spark-17")
@pytest.mark.parametrize("discover", [False, True])
def test_partitions_added_later(sc: SparkContext, either: Broker, discover: bool) -> None:
    topic = new_topic(either, 2)
    seen = Seen()

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createDirectStream(ssc, [topic], direct(either))
        stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)

    settings = {"kafka_discoverPartitions": str(discover).lower()}
    with conf_of(sc, **settings), running(sc, define):
        grow(either, topic, 4)
        for partition in (3, 2, 1, 0):
            send(either, topic, partition, [partition])
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
    files = HadoopFiles(sc, f"file://{tmp_path}/log")
    log = OffsetLog(files, kept=2)
    for number in (1, 2, 3):
        log.write(number, [Range("t", 0, number, 9)])
    assert log.read(3) == [Range("t", 0, 3, 9)]
    assert log.read(1) is None
    assert sorted(int(name) for name in files.names() if name.isdecimal()) == [2, 3]


@pytest.mark.scenario("spark-8")
@pytest.mark.slow
def test_batches_shrink_for_a_slow_output(sc: SparkContext, broker: Broker) -> None:
    """An output of 300 a second, of 600 at first. The share of the short lag is below one."""
    topic = new_topic(broker, 2)
    send(broker, topic, 0, range(20_000))
    send(broker, topic, 1, range(12))
    seen = Seen()
    delays: list[int] = []

    class Delays(StreamingListener):
        def onBatchCompleted(self, batchCompleted: Any) -> None:
            delays.append(int(batchCompleted.batchInfo().schedulingDelay()))

    def slow(rdd: Any) -> None:
        size = sum(o.untilOffset - o.fromOffset for o in rdd.offsetRanges())
        threading.Event().wait(size / 300)

    def define(ssc: StreamingContext) -> None:
        ssc.addStreamingListener(Delays())
        stream = KafkaUtils.createDirectStream(ssc, [topic], {**direct(broker), **SMALLEST})
        stream.foreachRDD(slow)
        stream.foreachRDD(seen.offsets)

    settings = {
        "backpressure_enabled": "true",
        "backpressure_initialRate": 600,
        "backpressure_pid_minRate": 10,
    }
    with conf_of(sc, **settings), running(sc, define, 2.0, graceful=False):
        wait_until("sixteen batches", DEADLINE_S, lambda: len(seen.ranges) >= 16)
    sizes = [[o.untilOffset - o.fromOffset for o in ranges] for ranges in seen.ranges]
    assert sum(sizes[0]) == pytest.approx(1200, abs=1)
    assert max(sum(each) for each in sizes[-8:]) < 900
    assert all(each[0] > 0 for each in sizes)
    assert [each[1] for each in sizes[:12]] == [1] * 12, "a share below one message is one"
    # Without it each batch would wait two seconds more than the one before.
    assert delays[-1] < 15_000


# --- groups


@pytest.mark.scenario("spark-20")
def test_a_group_stream_goes_on_where_it_stopped(sc: SparkContext, either: Broker) -> None:
    topic, group = new_topic(either, 2), uuid.uuid4().hex
    seen = Seen()
    params: dict[str, str] = dict(SMALLEST)

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createStream(
            ssc, either.zookeeper, group, {topic: 2}, params, StorageLevel.MEMORY_ONLY
        )
        stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)

    send(either, topic, 0, range(5))
    send(either, topic, 1, range(5, 10))
    with running(sc, define):
        seen.wait(10)
    assert params["zookeeper.connect"] == either.zookeeper
    assert params["group.id"] == group
    assert committed(either, group, topic) == {0: 5, 1: 5}, "a lag of 0"
    send(either, topic, 0, range(10, 15))
    with running(sc, define):
        seen.wait(15)
    assert sorted(seen.values) == list(range(15))


@pytest.mark.scenario("spark-19")
def test_a_failed_batch_is_not_committed(sc: SparkContext, either: Broker) -> None:
    topic, group = new_topic(either), uuid.uuid4().hex
    seen = Seen()
    fail, failed = threading.Event(), threading.Event()
    fail.set()

    def output(rdd: Any) -> None:
        values = rdd.collect()
        if "bad" in values and fail.is_set():
            failed.set()
            raise RuntimeError("an output that fails")
        seen.values.extend(values)

    def define(ssc: StreamingContext) -> None:
        stream = KafkaUtils.createStream(
            ssc, either.zookeeper, group, {topic: 1}, dict(SMALLEST), StorageLevel.MEMORY_ONLY
        )
        stream.map(lambda pair: pair[1]).foreachRDD(output)

    produce(either, topic, 0, [(None, b"one")])
    with running(sc, define):
        seen.wait(1)
        wait_until("a commit", DEADLINE_S, lambda: committed(either, group, topic) == {0: 1})
        produce(either, topic, 0, [(None, b"bad")])
        seen_before = len(seen.values)
        assert failed.wait(DEADLINE_S)
        produce(either, topic, 0, [(None, b"three")])
        seen.wait(seen_before + 1)
    assert committed(either, group, topic) == {0: 1}
    fail.clear()
    with running(sc, define):
        seen.wait(4)
    assert seen.values == ["one", "three", "bad", "three"]
    assert committed(either, group, topic) == {0: 3}


# --- jobs


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
    broker.create_topic("lines")
    program = tmp_path / "guide.py"
    program.write_text(text.replace("localhost:9092", broker.address))
    job = driver("guide", tmp_path / "guide", program)
    launch(job)
    assert job.exit_code(DEADLINE_S) == 0, job.log[-2000:]
    assert "OffsetRange(topic: lines, partition: 0, range: [0 -> 5])" in job.log
