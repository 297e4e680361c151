from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import KafkaError, NotLeaderForPartitionError
from kafka08.message.sets import iter_messages
from kafka08.metrics.names import FETCH_SIZES, FETCH_TIMES, FETCHER_BYTES, FETCHER_REQUESTS
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster

TP = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create("t", 1)
    cluster.append("t", 0, b"a", b"b")
    return cluster


@pytest.fixture
def consumer(cluster: FakeCluster) -> SimpleConsumer:
    return SimpleConsumer("b0", 9090, channel=cluster.channel)


def test_fetch(consumer: SimpleConsumer) -> None:
    entry = consumer.fetch({TP: 1})[TP]
    data: Any = entry.message_set
    assert (entry.error, entry.high_watermark) == (0, 2)
    assert [message.value for message in iter_messages(data)] == [b"b"]


def test_offsets(consumer: SimpleConsumer, cluster: FakeCluster) -> None:
    assert consumer.earliest_or_latest(TP, -2) == 0
    assert consumer.earliest_or_latest(TP, -1) == 2
    cluster.script = lambda port, request: schemas.OffsetsResponse(
        [schemas.OffsetsTopicResponse("t", [schemas.OffsetsPartitionResponse(0, 6, [])])]
    )
    with pytest.raises(NotLeaderForPartitionError):
        consumer.offsets_before(TP, -1)


def test_group_offsets(consumer: SimpleConsumer) -> None:
    assert consumer.commit_offsets("g", {TP: 7}) == {TP: 0}
    assert consumer.fetch_offsets("g", [TP])[TP].offset == 7
    assert consumer.consumer_metadata("g").error == 0


def test_one_failure_is_retried_the_second_raised(
    consumer: SimpleConsumer, cluster: FakeCluster
) -> None:
    failures = [OSError("first")]

    def fail(port: int, request: Any) -> None:
        if failures:
            raise failures.pop()

    cluster.script = fail
    assert consumer.topic_metadata(["t"]).topics[0].topic == "t"
    failures += [OSError("third"), OSError("second")]
    with pytest.raises(OSError, match="third"):
        consumer.topic_metadata(["t"])


def test_closed_stays_closed(consumer: SimpleConsumer) -> None:
    with consumer:
        pass
    with pytest.raises(KafkaError, match="closed"):
        consumer.topic_metadata()


@pytest.mark.parametrize("asked", [False, True])
def test_versions_are_asked_for_if_the_caller_says_so(cluster: FakeCluster, asked: bool) -> None:
    SimpleConsumer("b0", 9090, api_versions=asked, channel=cluster.channel)
    assert [each["api_versions"] for each in cluster.options] == [asked]


@pytest.mark.scenario("ops-19")
def test_fetches_are_timed_and_sized(consumer: SimpleConsumer) -> None:
    assert all(not each.value.count for each in consumer.series() if each.metric is FETCH_SIZES)
    consumer.fetch({TP: 0})
    found = {
        (each.metric, each.tags.get("brokerPort", "")): each.value for each in consumer.series()
    }
    assert found[FETCH_TIMES, ""].times.count == found[FETCH_TIMES, "9090"].times.count == 1
    assert found[FETCH_SIZES, ""].sum == found[FETCHER_BYTES, "9090"].count == 2 * 27
    assert found[FETCHER_REQUESTS, "9090"].count == 1
