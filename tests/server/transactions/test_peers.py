"""Requests to other coordinators and leaders, over connections that are kept."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import Broker
from kafka08.server.transactions.peers import Peers
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime


@pytest.fixture
def cluster() -> FakeCluster:
    """Whose brokers answer with what they are asked."""
    cluster = FakeCluster()
    cluster.script = lambda _, request: request
    return cluster


@pytest.fixture
def peers(cluster: FakeCluster) -> Peers:
    runtime = FakeRuntime()
    return Peers(lambda _: runtime, "broker-1", 1000, cluster.channel)


@pytest.fixture
def peer(cluster: FakeCluster) -> Broker:
    return next(iter(cluster.brokers.values()))


def test_a_connection_is_used_again(peers: Peers, peer: Broker, cluster: FakeCluster) -> None:
    assert [peers.call(peer, each, 3) for each in "ab"] == ["a", "b"]
    (channel,) = cluster.channels
    assert channel.connected and cluster.called == [("broker-1", "a"), ("broker-1", "b")]


def test_requests_at_once_have_connections_of_their_own(
    peers: Peers, peer: Broker, cluster: FakeCluster
) -> None:
    """And only some of these are kept."""

    def answer(_: int, request: Any) -> Any:
        if request:
            peers.call(peer, request - 1, 0)
        return "done"

    cluster.script = answer
    assert peers.call(peer, 5, 0) == "done"
    assert [each.connected for each in cluster.channels].count(True) == 4
    assert len(cluster.channels) == 6


def test_after_an_error_no_connection_is_trusted(
    peers: Peers, peer: Broker, cluster: FakeCluster
) -> None:
    peers.call(peer, "a", 0)
    cluster.failures = [ConnectionResetError("cut")]
    with pytest.raises(ConnectionResetError):
        peers.call(peer, "b", 0)
    assert peers.call(peer, "c", 0) == "c"
    assert len(cluster.channels) == 2


def test_a_broker_that_stops_ends_its_requests(
    peers: Peers, peer: Broker, cluster: FakeCluster
) -> None:
    def answer(_: int, request: Any) -> Any:
        peers.close()
        if not cluster.channels[0].connected:
            raise ConnectionResetError("cut")

    cluster.script = answer
    with pytest.raises(ConnectionResetError):
        peers.call(peer, "a", 0)
    with pytest.raises(ConnectionAbortedError, match="stopping"):
        peers.call(peer, "b", 0)
    assert len(cluster.channels) == 1


def test_idle_connections_end_with_the_broker(
    peers: Peers, peer: Broker, cluster: FakeCluster
) -> None:
    peers.call(peer, "a", 0)
    peers.close()
    assert not cluster.channels[0].connected
