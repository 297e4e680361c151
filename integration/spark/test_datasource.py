"""The format kafka08 against real brokers: batch and streaming source, sink, losses, listener."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import HOME, Broker, Process, Tools
from integration.spark.scene import (
    DEADLINE_S,
    SPARK_WARNINGS,
    grow,
    new_topic,
    send,
)
from integration.spark.support import driver, missing, produce
from integration.wire import wait_until
from kafka08.message.sets import encode_set

if missing():
    pytest.skip(missing(), allow_module_level=True)
pytest.importorskip("pyarrow")

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

from integration.spark.sessions import utc_session
from kafka08.common import TopicPartition
from kafka08.spark.group_offsets import GroupOffsets
from kafka08.spark.listener import GroupOffsetsListener
from kafka08.spark.params import SourceParams
from kafka08.spark.structured import source_offsets
from kafka08.spark.values import TopicAndPartition

pytestmark = SPARK_WARNINGS
PROPS = {
    "message.max.bytes": 4 << 20,
    "replica.fetch.max.bytes": 4 << 20,
    "log.retention.check.interval.ms": 500,
    "log.segment.delete.delay.ms": 100,
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "true",
    "offsets.topic.num.partitions": 3,
}
QUICK = {"fetchOffset.numRetries": 3, "fetchOffset.retryIntervalMs": 200}
GZIP, SNAPPY, LZ4 = 1, 2, 3


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with utc_session("local[2,4]") as session:
        yield session


def load(spark: SparkSession, broker: Broker, stream: bool = False, **options: Any) -> DataFrame:
    """Options take _ for a dot."""
    reader = spark.readStream if stream else spark.read
    named = {key.replace("_", "."): value for key, value in options.items()}
    given = {"kafka.bootstrap.servers": broker.address, **QUICK, **named}
    return reader.format("kafka08").options(**given).load()


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(bytes(row["value"])) for row in frame.select("value").collect())


class Sums:
    """Batches as a foreachBatch sees them: id -> numbers."""

    def __init__(self) -> None:
        self.batches: dict[int, list[int]] = {}

    def __call__(self, frame: DataFrame, batch: int) -> None:
        self.batches[batch] = numbers(frame)

    @property
    def values(self) -> list[int]:
        return sorted(value for batch in self.batches.values() for value in batch)


def start(frame: DataFrame, out: Sums, checkpoint: Path, **trigger: Any) -> Any:
    writer = frame.writeStream.foreachBatch(lambda df, n: out(df, n))
    writer = writer.option("checkpointLocation", str(checkpoint))
    return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()


def offsets_of(query: Any) -> list[dict[TopicPartition, int]]:
    found = [json.loads(p["sources"][0]["endOffset"]) for p in query.recentProgress]
    return [source_offsets.from_json(each) for each in found]


# --- batch


def test_columns_of_a_batch(spark: SparkSession, either: Broker) -> None:
    topic = new_topic(either, 2)
    produce(either, topic, 0, [(b"k", b"v"), (None, b"w"), (b"gone", None)])
    produce(either, topic, 1, [(b"", b"")])
    before = int(time.time())
    rows = load(spark, either, subscribe=topic).orderBy("partition", "offset").collect()
    cells = [tuple(row)[:5] for row in rows]
    assert cells == [
        (b"k", b"v", topic, 0, 0),
        (None, b"w", topic, 0, 1),
        (b"gone", None, topic, 0, 2),
        (b"", b"", topic, 1, 0),
    ]
    (planned,) = {row["timestamp"] for row in rows}
    assert before <= planned.timestamp() <= time.time()
    assert {row["timestampType"] for row in rows} == {-1}


@pytest.mark.scenario("spark-26")
def test_compressed_sets_from_the_middle(spark: SparkSession, either: Broker) -> None:
    topic = new_topic(either)
    values = [(None, b"%d" % number) for number in range(100)]
    with either.wire() as wire:
        for codec in (GZIP, SNAPPY):
            wire.produce(topic, 0, encode_set(values[:50], codec))
    offsets = {"startingOffsets": f'{{"{topic}":{{"0":20}}}}'}
    offsets["endingOffsets"] = f'{{"{topic}":{{"0":77}}}}'
    frame = load(spark, either, assign=f'{{"{topic}":[0]}}', **offsets)
    found = frame.orderBy("offset").collect()
    assert [row["offset"] for row in found] == list(range(20, 77))
    assert [int(bytes(row["value"])) for row in found] == [o % 50 for o in range(20, 77)]


@pytest.mark.scenario("spark-21")
def test_json_offsets_and_patterns(spark: SparkSession, broker: Broker) -> None:
    prefix = uuid.uuid4().hex[:8]
    for name in (f"{prefix}-a", f"{prefix}-b", f"x{prefix}-a"):
        broker.create_topic(name, 1)
        send(broker, name, 0, range(10))
    frame = load(spark, broker, subscribePattern=f"{prefix}-.*")
    assert frame.select("topic").distinct().count() == 2
    starting = {f"{prefix}-a": {"0": -2}, f"{prefix}-b": {"0": 8}}
    ending = {f"{prefix}-a": {"0": 3}, f"{prefix}-b": {"0": -1}}
    frame = load(
        spark,
        broker,
        subscribe=f"{prefix}-a,{prefix}-b",
        startingOffsets=json.dumps(starting),
        endingOffsets=json.dumps(ending),
    )
    assert numbers(frame) == [0, 1, 2, 8, 9]


@pytest.mark.scenario("spark-21")
def test_a_stream_starts_at_json_offsets(
    spark: SparkSession, either: Broker, tmp_path: Path
) -> None:
    topic = new_topic(either, 3)
    for partition in range(3):
        send(either, topic, partition, range(100 * partition, 100 * partition + 10))
    starting = json.dumps({topic: {"0": -2, "1": -1, "2": 7}})
    out = Sums()
    query = start(
        load(spark, either, True, subscribe=topic, startingOffsets=starting), out, tmp_path / "c"
    )
    try:
        wait_until("first", DEADLINE_S, lambda: len(out.values) == 13 or not query.isActive)
        send(either, topic, 1, range(110, 112))
        wait_until("more", DEADLINE_S, lambda: len(out.values) == 15 or not query.isActive)
        assert out.values == [*range(10), 110, 111, 207, 208, 209]
    finally:
        query.stop()


def test_min_partitions_and_frozen_ends(spark: SparkSession, broker: Broker) -> None:
    topic = new_topic(broker)
    send(broker, topic, 0, range(100))
    frame = load(spark, broker, subscribe=topic, minPartitions=4)
    assert frame.rdd.getNumPartitions() == 4
    assert frame.count() == 100
    send(broker, topic, 0, range(100, 150))
    assert frame.count() == 100
    empty = load(spark, broker, subscribe=new_topic(broker))
    assert empty.count() == 0


@pytest.mark.scenario("spark-25")
def test_a_message_larger_than_the_fetch(spark: SparkSession, either: Broker) -> None:
    topic = new_topic(either)
    produce(either, topic, 0, [(None, b"x" * (3 << 20)), (None, b"y")])
    frame = load(spark, either, subscribe=topic, kafka_fetch_message_max_bytes=1 << 16)
    found = frame.orderBy("offset").select(F.length("value")).collect()
    assert [row[0] for row in found] == [3 << 20, 1]


BAD = [
    ({"subscribe": "no-such-topic"}, r"subscribe \(no-such-topic\)"),
    ({"subscribe": "{t}", "startingOffsets": "{{broken"}, "startingOffsets has value {broken"),
    ({"subscribe": "{t}", "startingOffsets": '{{"{t}":{{"1":0}}}}'}, "startingOffsets must name"),
    ({"subscribe": "{t}", "startingOffsets": '{{"{t}":{{"0":99}}}}'}, "startingOffsets has 99"),
    ({"subscribe": "{t}", "endingOffsets": '{{"{t}":{{"0":99}}}}'}, "endingOffsets has 99"),
    ({"assign": '{{"{t}":[7]}}'}, "assign .*no such partition"),
    ({"subscribe": "{t}", "maxoffsetspertriger": "5"}, "did you mean maxOffsetsPerTrigger"),
    (
        {
            "subscribe": "{t}",
            "includeHeaders": "true",
            "kafka_api_versions_request": "false",
        },
        "includeHeaders has value true",
    ),
    (
        {"subscribe": "{t}", "kafka_bootstrap_servers": "127.0.0.1:1,127.0.0.1:2"},
        r"kafka\.bootstrap\.servers has value 127\.0\.0\.1:1,127\.0\.0\.1:2: ",
    ),
    ({"subscribe": "{t}", "kafka_fetch_message_max_bytes": "0"}, "max.bytes has value 0"),
]


@pytest.mark.scenario(
    "spark-21", "spark-input-1", "spark-input-2", "spark-input-3", "spark-input-4", "spark-input-7"
)
def test_bad_input_of_a_batch_is_named(spark: SparkSession, either: Broker) -> None:
    topic = new_topic(either)
    send(either, topic, 0, range(10))
    for options, text in BAD:
        given = {key: value.format(t=topic) for key, value in options.items()}
        begin = time.monotonic()
        with pytest.raises(PySparkException, match=text):
            load(spark, either, **given).count()
        assert time.monotonic() - begin < 30


# --- streams


def test_a_stream_takes_all_of_three_topics(
    spark: SparkSession, either: Broker, tmp_path: Path
) -> None:
    topics = [new_topic(either, 2) for _ in range(3)]
    for number, topic in enumerate(topics):
        for partition in range(2):
            send(either, topic, partition, range(100 * number + 10 * partition, 100 * number + 18))
    out = Sums()
    frame = load(spark, either, True, subscribe=",".join(topics), startingOffsets="earliest")
    query = start(frame, out, tmp_path / "c")
    try:
        expected = [100 * n + i for n in range(3) for i in [*range(18), *range(10, 18)]]
        wait_until(
            "all", DEADLINE_S, lambda: len(out.values) >= len(expected) or not query.isActive
        )
        send(either, topics[0], 0, range(500, 510))
        wait_until("more", DEADLINE_S, lambda: 509 in out.values or not query.isActive)
        assert query.exception() is None
        assert out.values == sorted([*expected, *range(500, 510)])
    finally:
        query.stop()


class Triggers(StreamingQueryListener):
    """Counts what Spark tells of triggers, when it tells of each."""

    def __init__(self) -> None:
        self.idle = self.batches = 0

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryProgress(self, event: Any) -> None:
        self.batches += 1

    def onQueryIdle(self, event: Any) -> None:
        self.idle += 1

    def onQueryTerminated(self, event: Any) -> None: ...


@pytest.fixture
def triggers(spark: SparkSession) -> Iterator[Triggers]:
    interval = "spark.sql.streaming.noDataProgressEventInterval"
    spark.conf.set(interval, "1")
    counting = Triggers()
    spark.streams.addListener(counting)
    yield counting
    spark.streams.removeListener(counting)
    spark.conf.unset(interval)


@pytest.mark.scenario("spark-24")
def test_latest_is_the_default_and_idle_means_idle(
    spark: SparkSession, broker: Broker, tmp_path: Path, triggers: Triggers
) -> None:
    topic = new_topic(broker)
    send(broker, topic, 0, range(10))
    out = Sums()
    query = start(
        load(spark, broker, True, subscribe=topic),
        out,
        tmp_path / "c",
        processingTime="100 milliseconds",
    )
    try:
        offsets = tmp_path / "c" / "offsets"
        wait_until("started", DEADLINE_S, lambda: not query.status["message"].startswith("Init"))
        wait_until("first", DEADLINE_S, lambda: (offsets / "0").exists() or query.recentProgress)
        send(broker, topic, 0, range(10, 15))
        wait_until("new ones", DEADLINE_S, lambda: out.values == list(range(10, 15)))
        batches = len(out.batches)
        wait_until("its end", DEADLINE_S, lambda: triggers.batches >= batches)
        files = sorted(path.name for path in offsets.iterdir())
        idle = triggers.idle
        wait_until("20 idle triggers", DEADLINE_S, lambda: triggers.idle >= idle + 20)
        assert sorted(path.name for path in offsets.iterdir()) == files
        assert (len(out.batches), triggers.batches) == (batches, batches)
    finally:
        query.stop()


@pytest.mark.scenario("spark-22")
def test_available_now_ends_at_the_offsets_of_its_start(
    spark: SparkSession, either: Broker, tmp_path: Path
) -> None:
    topic = new_topic(either, 2)
    for partition in range(2):
        send(either, topic, partition, range(1000 * partition, 1000 * partition + 700))
    out = Sums()

    def more(frame: DataFrame, batch: int) -> None:
        send(either, topic, 0, range(5000, 5010))
        out(frame, batch)

    frame = load(
        spark, either, True, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=600
    )
    query = start(frame, more, tmp_path / "c", availableNow=True)  # type: ignore[arg-type]
    assert query.awaitTermination(DEADLINE_S)
    assert out.values == [*range(700), *range(1000, 1700)]
    assert len(out.batches) == 3
    assert offsets_of(query)[-1] == {TopicPartition(topic, n): 700 for n in range(2)}
    again = start(frame, out, tmp_path / "c", availableNow=True)
    assert again.awaitTermination(DEADLINE_S)
    assert out.values.count(5000) == 3


@pytest.mark.scenario("spark-17")
def test_new_partitions_are_read_from_their_beginning(
    spark: SparkSession, either: Broker, tmp_path: Path
) -> None:
    topic = new_topic(either, 2)
    out = Sums()
    query = start(load(spark, either, True, subscribe=topic), out, tmp_path / "c")
    try:
        wait_until("first", DEADLINE_S, lambda: (tmp_path / "c" / "offsets" / "0").exists())
        grow(either, topic, 4)
        for partition in range(4):
            send(either, topic, partition, range(100 * partition, 100 * partition + 5))
        wait_until("all", DEADLINE_S, lambda: len(out.values) == 20 or not query.isActive)
        assert out.values == [100 * p + i for p in range(4) for i in range(5)]
    finally:
        query.stop()


@pytest.mark.scenario("spark-16")
def test_lost_messages_fail_the_query_or_are_left_out(
    spark: SparkSession, either: Broker, tmp_path: Path
) -> None:
    topic = new_topic(
        either, segment_bytes=1024, retention_bytes=2048, retention_ms=10**9, segment_ms=10**9
    )
    send(either, topic, 0, range(10))
    out = Sums()
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    query = start(load(spark, either, True, **options), out, tmp_path / "c", availableNow=True)
    assert query.awaitTermination(DEADLINE_S)
    for first in range(10, 500, 10):
        send(either, topic, 0, range(first, first + 10))
    wait_until("retention", DEADLINE_S, lambda: _earliest(either, topic) > 10)
    lossy = start(load(spark, either, True, **options), out, tmp_path / "c", availableNow=True)
    with pytest.raises(PySparkException, match=rf"{topic}-0 \[10, 500\).*failOnDataLoss"):
        lossy.awaitTermination(DEADLINE_S)
    assert out.values == list(range(10))
    frame = load(spark, either, True, **options, failOnDataLoss=False)
    query = start(frame, out, tmp_path / "c", availableNow=True)
    assert query.awaitTermination(DEADLINE_S)
    assert out.values == [*range(10), *range(_earliest(either, topic), 500)]


def _earliest(broker: Broker, topic: str) -> int:
    tp = TopicPartition(topic, 0)
    with SourceParams((("127.0.0.1", broker.port),)).offset_reader(3) as reader:
        return reader.earliest([tp])[tp]


@pytest.mark.scenario(
    "spark-21", "spark-input-1", "spark-input-2", "spark-input-3", "spark-input-4", "spark-input-7"
)
def test_bad_input_ends_a_stream(spark: SparkSession, either: Broker, tmp_path: Path) -> None:
    topic = new_topic(either)
    send(either, topic, 0, range(10))
    cases = [
        (
            {"subscribe": topic, "startingOffsets": f'{{"{topic}":{{"0":11}}}}'},
            "Offsets has 11 for",
        ),
        ({"subscribe": topic, "startingOffsets": f'{{"{topic}":{{"1":0}}}}'}, "Offsets must name"),
        ({"subscribe": topic, "failOnDataLos": "false"}, "did you mean failOnDataLoss"),
        ({"subscribe": "no-such-topic"}, r"subscribe \(no-such-topic\)"),
        ({"subscribe": topic, "startingOffsets": "{broken"}, "startingOffsets has value"),
        ({"subscribe": topic, "endingOffsets": "latest"}, "endingOffsets has value latest"),
        (
            {"subscribe": topic, "kafka_bootstrap_servers": "127.0.0.1:1"},
            r"kafka\.bootstrap\.servers has value 127\.0\.0\.1:1",
        ),
    ]
    for number, (options, text) in enumerate(cases):
        begin = time.monotonic()
        with pytest.raises(PySparkException, match=text):
            frame = load(spark, either, True, **options)
            start(frame, Sums(), tmp_path / str(number)).awaitTermination(DEADLINE_S)
        assert time.monotonic() - begin < DEADLINE_S


@pytest.mark.scenario("spark-23")
def test_a_restart_replays_the_batch_that_was_under_way(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = new_topic(broker, 2)
    for partition in range(2):
        send(broker, topic, partition, range(100 * partition, 100 * partition + 100))
    frame = load(
        spark, broker, True, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=50
    )
    seen = Sums()

    def fail(df: DataFrame, batch: int) -> None:
        seen(df, batch)
        if batch == 1:
            raise ValueError("as if killed")

    query = start(frame, fail, tmp_path / "c", availableNow=True)  # type: ignore[arg-type]
    with pytest.raises(PySparkException):
        query.awaitTermination(DEADLINE_S)
    for partition in range(2):
        send(broker, topic, partition, range(1000, 1100))
    again = Sums()
    query = start(frame, again, tmp_path / "c", availableNow=True)
    assert query.awaitTermination(DEADLINE_S)
    assert min(again.batches) == 1
    assert again.batches[1] == seen.batches[1]
    assert len(seen.batches[0]) + len(again.values) == 400


def test_a_watermark_on_the_time_of_reading(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """In append mode: a window's row comes when the watermark has passed it."""
    topic = new_topic(broker)
    send(broker, topic, 0, range(10))
    frame = load(spark, broker, True, subscribe=topic, startingOffsets="earliest")
    windows = frame.withWatermark("timestamp", "0 seconds").groupBy(
        F.window("timestamp", "1 second")
    )
    rows: list[int] = []

    def take(batch: DataFrame, number: int) -> None:
        rows.extend(row["count"] for row in batch.collect())

    writer = windows.count().writeStream.outputMode("append").foreachBatch(take)
    query = writer.option("checkpointLocation", str(tmp_path / "c")).start()

    def counted() -> bool:
        send(broker, topic, 0, [10])
        return sum(rows) >= 10 or not query.isActive

    try:
        wait_until("the first window", DEADLINE_S, counted)
        assert query.exception() is None
        assert rows[0] >= 10
    finally:
        query.stop()


def test_output_modes_and_save_modes_of_the_sink(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = new_topic(broker)
    target = {"kafka.bootstrap.servers": broker.address, "topic": topic}
    for mode in ("error", "ignore"):
        writer = spark.createDataFrame([("a",)], "value string").write.format("kafka08")
        with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            writer.options(**target).mode(mode).save()
    send(broker, topic, 0, range(5))
    frame = load(spark, broker, True, subscribe=topic, startingOffsets="earliest")
    counts = frame.groupBy().count().selectExpr("cast(count as string) value")

    def run(mode: str) -> None:
        stream = counts.writeStream.format("kafka08").options(**target).outputMode(mode)
        stream = stream.option("checkpointLocation", str(tmp_path / mode))
        assert stream.trigger(availableNow=True).start().awaitTermination(DEADLINE_S)

    with pytest.raises(PySparkException, match="kafka08 does not support Update mode"):
        run("update")
    run("complete")
    assert numbers(load(spark, broker, subscribe=topic)) == [0, 1, 2, 3, 4, 5]


def test_a_checkpoint_of_sparks_own_connector_is_continued(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Its files as Spark 4 writes them for ``format("kafka")``, after a batch of 3 and 4."""
    topic = new_topic(broker, 2)
    for partition in range(2):
        send(broker, topic, partition, range(10 * partition, 10 * partition + 10))
    checkpoint = tmp_path / "c"
    batch = {"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {}}
    files = {
        "metadata": json.dumps({"id": str(uuid.uuid4())}),
        "sources/0/0": f'v1\n{{"{topic}":{{"1":0,"0":0}}}}',
        "offsets/0": f'v1\n{json.dumps(batch)}\n{{"{topic}":{{"1":4,"0":3}}}}',
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    }
    for name, text in files.items():
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text(text)
    out = Sums()
    query = start(load(spark, broker, True, subscribe=topic), out, checkpoint, availableNow=True)
    assert query.awaitTermination(DEADLINE_S)
    assert out.batches == {1: [*range(3, 10), *range(14, 20)]}

    def last() -> list[str]:
        return (checkpoint / "offsets" / str(max(out.batches))).read_text().splitlines()

    assert source_offsets.TIME in last()[-1]
    # And back: what Spark's own source finds there is its own form.
    plain = load(spark, broker, True, subscribe=topic, timeOfReading="false")
    query = start(plain, out, checkpoint, availableNow=True)
    assert query.awaitTermination(DEADLINE_S)
    assert json.loads(last()[-1]) == {topic: {"0": 10, "1": 10}}
    assert out.batches[2] == []


def test_offsets_stay_when_the_last_topic_of_a_pattern_goes(
    spark: SparkSession, broker: Broker, tmp_path: Path, triggers: Triggers
) -> None:
    new_topic(broker)  # who knows this one is believed
    topic = f"last-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic)
    send(broker, topic, 0, range(10))
    lenient = {"subscribePattern": "last-.*", "failOnDataLoss": "false"}
    out = Sums()
    frame = load(spark, broker, True, startingOffsets="earliest", **lenient)
    query = start(frame, out, tmp_path / "c", processingTime="100 milliseconds")

    def offsets() -> dict[str, str]:
        return {p.name: p.read_text() for p in (tmp_path / "c" / "offsets").glob("[0-9]*")}

    def gone() -> bool:
        with SourceParams((("127.0.0.1", broker.port),)).offset_reader(3) as reader:
            return TopicPartition(topic, 0) not in reader.find([], lambda there: ())

    try:
        wait_until("all", DEADLINE_S, lambda: len(out.values) == 10 or not query.isActive)
        broker.delete_topic(topic)
        wait_until("its end", DEADLINE_S, gone)
        idle = triggers.idle
        wait_until("triggers", DEADLINE_S, lambda: triggers.idle >= idle + 5 or not query.isActive)
        assert query.exception() is None
        assert set(offsets()) == {"0"}
        ends = json.loads(offsets()["0"].splitlines()[-1])
        assert source_offsets.from_json(ends) == {(topic, 0): 10}
    finally:
        query.stop()


# --- the sink


@pytest.mark.scenario("spark-27")
def test_sink_routes_by_column_and_by_option(spark: SparkSession, either: Broker) -> None:
    one, two = new_topic(either, 2), new_topic(either, 3)
    rows = [(one, "k", "a", 1), (two, None, "b", 2), (two, "k", None, 0)]
    frame = spark.createDataFrame(rows, "topic string, key string, value string, partition int")
    target = {"kafka.bootstrap.servers": either.address, "kafka.compression.type": "gzip"}
    frame.write.format("kafka08").options(**target).mode("append").save()
    found = load(spark, either, subscribe=f"{one},{two}").collect()
    assert sorted(
        (r["topic"], r["key"], r["value"], r["partition"]) for r in found if r["key"]
    ) == (sorted([(one, b"k", b"a", 1), (two, b"k", None, 0)]))
    assert [(r["topic"], r["value"], r["partition"]) for r in found if not r["key"]] == [
        (two, b"b", 2)
    ]
    three = new_topic(either)
    only = frame.drop("partition")
    only.write.format("kafka08").options(**target, topic=three).mode("append").save()
    assert load(spark, either, subscribe=three).count() == 3


@pytest.mark.scenario("spark-27", "spark-input-1", "spark-input-4", "spark-input-7")
def test_bad_input_of_a_sink_is_named(spark: SparkSession, either: Broker) -> None:
    topic = new_topic(either)
    target = {"kafka.bootstrap.servers": either.address}
    frame = spark.createDataFrame([(None, "a")], "topic string, value string")
    cases = [
        (frame, {}, "append", "Column topic is null"),
        (frame.select("topic"), {}, "append", "Required column value is missing"),
        (frame.select("value"), {}, "append", "Option topic must be set"),
        (
            frame,
            {
                "topic": topic,
                "kafka.bootstrap.servers": "127.0.0.1:1",
                "kafka.metadata.fetch.timeout.ms": "500",
            },
            "append",
            r"kafka\.bootstrap\.servers has value 127\.0\.0\.1:1",
        ),
        (frame, {"topic": topic}, "overwrite", "overwrite"),
        (frame, {"topic": topic, "kafka.acks": "some"}, "append", "kafka.acks has value some"),
        (
            frame,
            {"topic": "no-such-topic", "kafka.metadata.fetch.timeout.ms": "500"},
            "append",
            "no-such-topic",
        ),
    ]
    for data, options, mode, text in cases:
        with pytest.raises(PySparkException, match=text):
            data.write.format("kafka08").options(**{**target, **options}).mode(mode).save()
    assert load(spark, either, subscribe=topic).count() == 0


def test_a_stream_from_topic_to_topic(spark: SparkSession, either: Broker, tmp_path: Path) -> None:
    source, target = new_topic(either, 2), new_topic(either, 2)
    for partition in range(2):
        send(either, source, partition, range(1000 * partition, 1000 * partition + 900))
    frame = load(
        spark, either, True, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=500
    )
    writer = frame.select("key", "value").writeStream.format("kafka08")
    writer = writer.options(**{"kafka.bootstrap.servers": either.address, "topic": target})
    query = (
        writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    )
    assert query.awaitTermination(DEADLINE_S)
    assert numbers(load(spark, either, subscribe=target)) == [*range(900), *range(1000, 1900)]


# --- the listener


@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
def test_a_group_shows_the_progress_of_a_query(
    spark: SparkSession, either: Broker, tmp_path: Path, storage: str
) -> None:
    topic, group = new_topic(either, 2), f"g-{uuid.uuid4().hex[:8]}"
    send(either, topic, 0, range(30))
    send(either, topic, 1, range(7))
    properties = {"zookeeper.connect": either.zookeeper, "offsets.storage": storage}
    listener = GroupOffsetsListener(properties, group)
    spark.streams.addListener(listener)
    try:
        frame = load(spark, either, True, subscribe=topic, startingOffsets="earliest")
        query = start(frame, Sums(), tmp_path / "c", availableNow=True)
        assert query.awaitTermination(DEADLINE_S)
        send(either, topic, 1, range(3))
        checker = Tools("ours", tmp_path / "tools")

        def lags() -> list[list[str]]:
            args = ("--zookeeper", either.zookeeper, "--group", group, "--topic", topic)
            lines = checker.run("kafka.tools.ConsumerOffsetChecker", *args).lines
            return [line.split()[2:6] for line in lines if line.startswith(group)]

        expected = [["0", "30", "30", "0"], ["1", "7", "10", "3"]]
        wait_until("offsets", DEADLINE_S, lambda: lags() == expected)
    finally:
        spark.streams.removeListener(listener)
        listener.close()


@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
def test_a_group_shows_what_a_foreach_batch_has_done(
    spark: SparkSession, either: Broker, tmp_path: Path, storage: str
) -> None:
    topic, group = new_topic(either, 2), f"g-{uuid.uuid4().hex[:8]}"
    send(either, topic, 0, range(30))
    send(either, topic, 1, range(7))
    properties = {"zookeeper.connect": either.zookeeper, "offsets.storage": storage}
    offsets = GroupOffsets(properties, group)
    frame = load(spark, either, True, subscribe=topic, startingOffsets="earliest")
    writer = frame.writeStream.foreachBatch(lambda rows, _: offsets.commit_frame(rows))
    writer = writer.option("checkpointLocation", str(tmp_path / "c"))
    assert writer.trigger(availableNow=True).start().awaitTermination(DEADLINE_S)
    partitions = [TopicAndPartition(topic, number) for number in range(3)]
    assert offsets.committed(partitions) == {partitions[0]: 30, partitions[1]: 7}
    offsets.close()
    by_brokers = {"metadata.broker.list": either.address}
    read = GroupOffsets(by_brokers, group).committed(partitions[:2])
    assert read == ({partitions[0]: 30, partitions[1]: 7} if storage == "kafka" else {})


@pytest.mark.slow
def test_the_example_of_the_guide(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    section = (HOME / "docs" / "spark.md").read_text().partition("## Structured Streaming")[2]
    # The query, and the listener that shows its progress.
    blocks = [block.partition("```")[0] for block in section.split("```python\n")[1:]]
    blocks = [each for each in blocks if "SparkSession" in each or "GroupOffsetsListener" in each]
    assert len(blocks) == 2
    text = "\n".join(blocks)
    assert "localhost:9092" in text
    assert "localhost:2181" in text
    broker.create_topic("words", 2)
    program = tmp_path / "guide.py"
    text = text.replace("localhost:9092", broker.address)
    program.write_text(text.replace("localhost:2181", broker.zookeeper))
    job = driver("guide", tmp_path / "guide", program)
    launch(job)
    assert job.exit_code(3 * DEADLINE_S) == 0, job.log[-2000:]
    assert "|  to|    2|" in job.log
