"""Missing topics are asked for again: a broker that has just started does not know any."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kafka08.common import TopicPartition
from kafka08.errors import ConfigError, UnknownTopicOrPartitionError
from kafka08.message.sets import encode_set
from kafka08.protocol import schemas
from kafka08.spark import params
from kafka08.spark.errors import DataLossError, UnreachableError
from kafka08.spark.params import SourceParams
from kafka08.spark.structured.source import SourceStreamReader
from kafka08.spark.structured.source_options import BOOTSTRAP, SourceOptions, SourceSettings
from kafka08.spark.structured.source_plan import SourcePlanner
from tests.fakes.cluster import FakeCluster, connect
from tests.fakes.runtime import FakeRuntime
from tests.spark.cluster import ONE as BROKER
from tests.spark.cluster import T, cluster_of, put
from tests.spark.sources import planned_by, with_settings

ONE = TopicPartition("t", 1)
PARAMS = SourceParams((("h", 9092),), backoff_ms=1000, option=BOOTSTRAP)
SETTINGS = SourceSettings(time_of_reading=False)
NAMED = SourceOptions(PARAMS, SETTINGS, topics=("t",))
PATTERN = SourceOptions(PARAMS, SETTINGS, pattern="t.*")
ASSIGNED = SourceOptions(PARAMS, SETTINGS, assigned=(T, ONE))
START = {"t": {"0": 4, "1": 4}}
END = {"t": {"0": 10, "1": 30}}
# From a broker that the controller has told nothing yet.
UNTOLD = None
each_subscription = pytest.mark.parametrize("options", [NAMED, PATTERN, ASSIGNED])
each_policy = pytest.mark.parametrize("fail_on_data_loss", [True, False])


def messages(count: int) -> bytes:
    return encode_set([(None, b"x")] * count)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """The cluster that every planner connects to."""
    made = cluster_of({T: messages(10), ONE: messages(30)})
    connect(monkeypatch, params, made)
    return made


def telling(cluster: FakeCluster, *answers: list[TopicPartition] | None) -> list[Any]:
    """Have the next answers to requests for metadata tell these partitions instead of the truth,
    the last first. Returns those left."""
    left = list(answers)

    def script(port: int, request: Any) -> Any:
        if not isinstance(request, schemas.MetadataRequest) or not left:
            return None
        known = left.pop()
        told = cluster.tell(request, known or [])
        return told._replace(brokers=[]) if known is UNTOLD else told

    cluster.script = script
    return left


def clear(cluster: FakeCluster) -> None:
    """Delete the topic."""
    cluster.delete(T)
    cluster.delete(ONE)


def stream_of(
    options: SourceOptions, fail_on_data_loss: bool = True
) -> tuple[SourceStreamReader, FakeRuntime]:
    options = with_settings(options, fail_on_data_loss=fail_on_data_loss)
    runtime = FakeRuntime()
    planner = SourcePlanner(options, runtime=runtime)
    return planned_by(SourceStreamReader(options), planner), runtime


def following(stream: SourceStreamReader, start: dict[str, Any] = START) -> dict[str, Any]:
    return stream.latestOffset(start, ReadAllAvailable())


# --- brokers that have just started


@each_policy
@each_subscription
def test_brokers_that_know_nothing_yet(
    cluster: FakeCluster, options: SourceOptions, fail_on_data_loss: bool
) -> None:
    stream, runtime = stream_of(options, fail_on_data_loss)
    before = runtime.clock.now
    telling(cluster, *[UNTOLD] * 20)
    assert following(stream) == END
    assert runtime.clock.now - before == pytest.approx(20)


@each_policy
@each_subscription
def test_a_broker_that_knows_some_partitions(
    cluster: FakeCluster, options: SourceOptions, fail_on_data_loss: bool
) -> None:
    stream, _ = stream_of(options, fail_on_data_loss)
    telling(cluster, [T], [T], [T])
    assert following(stream) == END


@each_policy
def test_a_broker_that_knows_another_topic_is_believed_when_it_says_so_twice(
    cluster: FakeCluster, fail_on_data_loss: bool
) -> None:
    cluster.create("another", 1, leader=BROKER.id)
    stream, _ = stream_of(PATTERN, fail_on_data_loss)
    telling(cluster, [])
    assert following(stream) == END, "once is not enough"


@each_policy
@each_subscription
def test_a_leader_that_does_not_know_its_partitions_yet(
    cluster: FakeCluster, options: SourceOptions, fail_on_data_loss: bool
) -> None:
    stream, runtime = stream_of(options, fail_on_data_loss)
    before = runtime.clock.now
    cluster.failures = [UnknownTopicOrPartitionError("[t,0]")] * 10
    assert following(stream) == END
    assert runtime.clock.now - before == pytest.approx(10)


@each_policy
@each_subscription
def test_brokers_that_are_never_told(
    cluster: FakeCluster, options: SourceOptions, fail_on_data_loss: bool
) -> None:
    stream, _ = stream_of(options, fail_on_data_loss)
    left = telling(cluster, *[UNTOLD] * 31)
    with pytest.raises(UnreachableError, match=r"bootstrap\.servers has value h:9092: .*no topic"):
        following(stream)
    assert left == []


def test_a_new_query_does_not_begin_with_what_an_untold_broker_knows(cluster: FakeCluster) -> None:
    stream, _ = stream_of(PATTERN)
    telling(cluster, *[UNTOLD] * 5)
    assert stream.initialOffset() == END


# --- what is gone


@each_subscription
def test_gone_is_what_a_broker_with_other_topics_says_twice(
    cluster: FakeCluster, options: SourceOptions
) -> None:
    cluster.create("another", 1, leader=BROKER.id)
    clear(cluster)
    stream, runtime = stream_of(options)
    before = runtime.clock.now
    with pytest.raises(DataLossError, match=r"\[t,0\], \[t,1\] of .* are gone"):
        following(stream)
    assert runtime.clock.now - before <= 2


@each_subscription
def test_the_only_topic_of_a_cluster_is_gone_after_all_retries(
    cluster: FakeCluster, options: SourceOptions
) -> None:
    clear(cluster)
    stream, runtime = stream_of(options)
    before = runtime.clock.now
    with pytest.raises(DataLossError, match=r"\[t,0\], \[t,1\] of .* are gone"):
        following(stream)
    assert runtime.clock.now - before == pytest.approx(30)


def test_no_single_answer_is_believed_without_retries(cluster: FakeCluster) -> None:
    stream, _ = stream_of(with_settings(PATTERN, retries=0))
    telling(cluster, [])
    assert following(stream) == END


def test_a_topic_that_never_was(cluster: FakeCluster) -> None:
    stream, runtime = stream_of(NAMED._replace(topics=("nope",)))
    before = runtime.clock.now
    with pytest.raises(ConfigError, match=r"subscribe \(nope\): no such topic: nope"):
        stream.initialOffset()
    assert runtime.clock.now - before <= 2


def test_a_topic_that_is_deleted_after_it_was_listed(cluster: FakeCluster) -> None:
    cluster.create("another", 1, leader=BROKER.id)
    stream, _ = stream_of(NAMED._replace(topics=("t", "u")), fail_on_data_loss=False)
    put(cluster, TopicPartition("u", 0), messages(5))
    listed = cluster.tell(schemas.MetadataRequest([]), cluster.leaders)
    answers = [listed]
    cluster.script = lambda port, request: answers.pop() if answers else None
    clear(cluster)
    assert following(stream, {**START, "u": {"0": 0}}) == {"u": {"0": 5}}


# --- offsets when nothing is left


@each_subscription
def test_offsets_stay_when_the_last_topic_goes(
    cluster: FakeCluster, options: SourceOptions, caplog: pytest.LogCaptureFixture
) -> None:
    clear(cluster)
    stream, runtime = stream_of(options, fail_on_data_loss=False)
    for _ in range(3):
        assert following(stream) == START
    assert stream.reportLatestOffset() is None
    assert [m for m in caplog.messages if "are gone" in m] == [
        next(m for m in caplog.messages if "are gone" in m)
    ], "it is warned of once"
    before = runtime.clock.now
    assert following(stream) == START
    assert runtime.clock.now == before, "what was proved is not doubted again"
    put(cluster, T, messages(10))
    put(cluster, ONE, messages(30))
    assert following(stream) == END


def test_offsets_stay_in_an_available_now_query(cluster: FakeCluster) -> None:
    stream, _ = stream_of(PATTERN, fail_on_data_loss=False)
    stream.prepareForTriggerAvailableNow()
    clear(cluster)
    assert following(stream) == START


# --- AvailableNow


def test_a_topic_made_again_with_fewer_partitions_during_available_now(
    cluster: FakeCluster,
) -> None:
    strict, _ = stream_of(NAMED)
    lenient, _ = stream_of(NAMED, fail_on_data_loss=False)
    for stream in (strict, lenient):
        stream.prepareForTriggerAvailableNow()
    begin = strict.latestOffset({"t": {"0": 0, "1": 0}}, ReadMaxRows(8))
    assert begin == {"t": {"0": 2, "1": 6}}
    cluster.delete(ONE)
    put(cluster, T, messages(3))
    with pytest.raises(DataLossError, match=r"\[t,1\] of subscribe \(t\) are gone"):
        strict.latestOffset(begin, ReadMaxRows(8))
    end = lenient.latestOffset(begin, ReadMaxRows(8))
    assert end == {"t": {"0": 3}}
    assert lenient.latestOffset(end, ReadMaxRows(8)) == end, "the query ends"


def test_a_topic_made_again_with_less_in_it_during_available_now(cluster: FakeCluster) -> None:
    stream, _ = stream_of(NAMED)
    stream.prepareForTriggerAvailableNow()
    put(cluster, T, messages(9))
    with pytest.raises(DataLossError, match=r"\[t,0\] ends at 9, but 10 was already planned"):
        following(stream)


def test_an_available_now_query_that_began_with_a_short_list(cluster: FakeCluster) -> None:
    stream, _ = stream_of(PATTERN)
    telling(cluster, [T])
    stream.prepareForTriggerAvailableNow()
    assert following(stream) == END
