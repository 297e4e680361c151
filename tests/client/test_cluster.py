from __future__ import annotations

from typing import Any

import pytest

from kafka08.client.cluster import (
    TRANSACTION,
    ClusterClient,
    NoBrokerError,
    endpoints_of,
    find_coordinator,
    listeners_of,
    parse_broker_list,
)
from kafka08.common import Broker, TopicPartition
from kafka08.errors import (
    ConfigError,
    ConsumerCoordinatorNotAvailableError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

BROKERS = [Broker(0, "b0", 9090), Broker(1, "b1", 9091)]
ENDPOINTS = [(b.host, b.port) for b in BROKERS]


def client(cluster: FakeCluster) -> ClusterClient:
    return ClusterClient(ENDPOINTS, runtime=FakeRuntime(), channel=cluster.channel)


def test_broker_list() -> None:
    assert parse_broker_list("a:1, b:2,[::1]:3") == [("a", 1), ("b", 2), ("::1", 3)]
    for bad in ("", "a", "a:", ":1", "a:x", "a:1,b"):
        with pytest.raises(ConfigError):
            parse_broker_list(bad)


def test_brokers_without_a_listener_are_not_asked() -> None:
    """As the registry has a broker whose only listener is one with TLS, for plain clients."""
    secure = Broker(7, "", -1)
    assert endpoints_of([secure, *BROKERS]) == ENDPOINTS
    assert listeners_of([secure, *BROKERS], "PLAINTEXT") == ENDPOINTS
    for none in ([secure], []):
        with pytest.raises(NoBrokerError, match="no live broker has a listener of PLAINTEXT"):
            listeners_of(none, "PLAINTEXT")


def test_any_listed_broker_may_answer() -> None:
    cluster = FakeCluster(BROKERS)
    cluster.create("t", 2)
    for down in (9090, 9091):
        cluster.down = {down}
        assert [p.partition for p in client(cluster).partitions("t")] == [0, 1]
    cluster.down = {9090, 9091}
    with pytest.raises(NoBrokerError, match="failed"):
        client(cluster).partitions("t")


def test_a_broker_that_was_told_nothing_yet_does_not_count_while_another_answers() -> None:
    """It has just started: it knows no brokers and no topics until the controller tells it."""
    cluster = FakeCluster(BROKERS)
    cluster.create("t", 2)

    def untold(*ports: int) -> None:
        def answer(port: int, request: Any) -> Any:
            topics = [schemas.TopicMetadata(3, topic, []) for topic in request.topics]
            return schemas.MetadataResponse([], topics) if port in ports else None

        cluster.script = answer

    for port in (9090, 9091):
        untold(port)
        assert [p.partition for p in client(cluster).partitions("t")] == [0, 1]
        assert len(client(cluster).refresh().topics) == 1
    untold(9090, 9091)
    with pytest.raises(UnknownTopicOrPartitionError):
        client(cluster).partitions("t")
    untold(9090)
    cluster.down = {9091}
    with pytest.raises(UnknownTopicOrPartitionError):
        client(cluster).partitions("t")


def test_leaders() -> None:
    cluster = FakeCluster(BROKERS)
    cluster.create("t", 2, leader=1)
    cluster.leaders[TopicPartition("t", 1)] = -1
    known = client(cluster)
    assert known.leader(TopicPartition("t", 0)) == BROKERS[1]
    with pytest.raises(LeaderNotAvailableError):
        known.leader(TopicPartition("t", 1))
    with pytest.raises(UnknownTopicOrPartitionError):
        known.leader(TopicPartition("t", 2))
    with pytest.raises(UnknownTopicOrPartitionError):
        known.leader(TopicPartition("nowhere", 0))
    assert len(cluster.sent(schemas.MetadataRequest)) == 2


def test_topic_error_is_raised_and_asked_again() -> None:
    cluster = FakeCluster(BROKERS)
    cluster.topic_errors["t"] = 5
    known = client(cluster)
    with pytest.raises(LeaderNotAvailableError):
        known.partitions("t")
    del cluster.topic_errors["t"]
    cluster.create("t", 1)
    assert len(known.partitions("t")) == 1


def test_channels_are_pooled_until_the_broker_moves() -> None:
    cluster = FakeCluster(BROKERS)
    cluster.create("t", 1, leader=1)
    known = client(cluster)
    request = schemas.OffsetsRequest(-1, [])
    known.call_leader(TopicPartition("t", 0), request)
    opened = len(cluster.channels)
    known.call_leader(TopicPartition("t", 0), request)
    assert len(cluster.channels) == opened
    cluster.brokers[1] = Broker(1, "b1", 9999)
    cluster.down = {9091}
    known.refresh(["t"])
    known.call_leader(TopicPartition("t", 0), request)
    assert cluster.requests[-1][0] == 9999


def test_requests_that_need_versions_have_a_connection_of_their_own() -> None:
    """One of 0.8.2.2 closes the connection on which it is asked for them."""
    cluster = FakeCluster(BROKERS)
    asked = client(cluster)
    for _ in range(2):
        asked.call(BROKERS[0], schemas.OffsetsRequest(-1, []))
        asked.call(BROKERS[0], schemas.OffsetsRequest(-1, []), api_versions=True)
    assert [options.get("api_versions", False) for options in cluster.options] == [False, True]
    asked.close()
    assert not any(channel.connected for channel in cluster.channels)


def test_coordinator() -> None:
    cluster = FakeCluster(BROKERS)
    cluster.down = {9091}
    assert client(cluster).coordinator("g") == BROKERS[0]
    cluster.script = lambda port, request: schemas.ConsumerMetadataResponse(15, -1, "", -1)
    with pytest.raises(ConsumerCoordinatorNotAvailableError):
        find_coordinator("g", BROKERS[:1], cluster.channel)
    with pytest.raises(NoBrokerError):
        find_coordinator("g", [], cluster.channel)


def test_the_coordinator_of_a_transactional_id() -> None:
    """Only brokers that say their versions know what that is."""
    cluster = FakeCluster(BROKERS)
    assert client(cluster).coordinator("id", TRANSACTION) == BROKERS[0]
    assert cluster.sent(schemas.ConsumerMetadataRequest)[0].key_type == TRANSACTION
    assert cluster.options[-1]["api_versions"]


def test_any_broker_that_answers() -> None:
    cluster = FakeCluster(BROKERS)
    cluster.down = {9091}
    asked = client(cluster)
    assert asked.call_any(schemas.OffsetsRequest(-1, [])) == schemas.OffsetsResponse([])
    assert cluster.options[-1]["api_versions"]
    cluster.down = {9090, 9091}
    with pytest.raises(ConnectionRefusedError):
        asked.call_any(schemas.OffsetsRequest(-1, []))


def test_an_abort_reaches_every_connection() -> None:
    cluster = FakeCluster(BROKERS)
    asked = client(cluster)
    asked.call(BROKERS[0], schemas.OffsetsRequest(-1, []))
    aborted: list[int] = []

    def abort(port: int, request: Any) -> Any:
        for channel in cluster.channels:
            channel.abort = lambda port=channel.port: aborted.append(port)  # type: ignore[method-assign]
        asked.abort()
        return None

    cluster.script = abort
    asked.coordinator("g")
    assert len(aborted) == len(cluster.channels) == 2
    asked.abort()
    assert len(aborted) == 3  # the one that looked the coordinator up has ended


def test_aborted_while_it_asks() -> None:
    cluster = FakeCluster([Broker(0, "b0", 9090), Broker(1, "b1", 9091)])
    client = ClusterClient(
        [("b0", 9090), ("b1", 9091)], runtime=FakeRuntime(), channel=cluster.channel
    )

    def abort(port: int, request: Any) -> Any:
        client.abort()
        raise ConnectionResetError("by who aborted")

    cluster.script = abort
    for _ in range(2):
        with pytest.raises(NoBrokerError):
            client.refresh(["t"])
    assert len(cluster.requests) == 1
