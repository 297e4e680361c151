"""Clients are told the endpoints of the listener that they came in on."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import Broker, Endpoint
from kafka08.network.peer import Peer, current_peer
from kafka08.server.cluster_view.registrations import Reachable, Registrations
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import endpoints, znodes
from zk.errors import ZkConnectionError
from zk.znodes import BrokerRegistration

PLAIN = Endpoint("PLAINTEXT", "PLAINTEXT", "h", 9092)
TLS = Endpoint("SSL", "SSL", "s", 9093)


class FollowedBrokers:
    def __init__(self) -> None:
        self.zk: Any = Session(FakeZooKeeper())
        self.told: list[Any] = []
        self.registrations = Registrations(FakeRuntime(), self.zk, self.told.append)

    def register(self, broker_id: int, *listed: Endpoint) -> None:
        host, port = endpoints.plain_address(listed)
        registration = BrokerRegistration(host, port, endpoints=listed)
        self.write(broker_id, znodes.encode_broker(registration))

    def write(self, broker_id: int, data: bytes) -> None:
        self.zk.create(znodes.broker_path(broker_id), data, makepath=True)


@pytest.fixture
def world() -> FollowedBrokers:
    return FollowedBrokers()


LIVE = {number: Broker(number, "h", 9092) for number in (1, 2)} | {3: Broker(3, "", -1)}


@pytest.mark.scenario("security-2")
def test_brokers_of_a_listener(world: FollowedBrokers) -> None:
    world.register(1, PLAIN, TLS)
    world.register(2, PLAIN)
    world.register(3, TLS)
    world.registrations.start()
    told = world.registrations
    assert told.brokers(LIVE, "PLAINTEXT") == {1: LIVE[1], 2: LIVE[2]}
    assert told.brokers(LIVE, "SSL") == {1: Broker(1, "s", 9093), 3: Broker(3, "s", 9093)}
    assert told.brokers({}, "SSL") == {}


def test_a_broker_not_read_yet_has_the_address_that_the_controller_tells(
    world: FollowedBrokers,
) -> None:
    told = world.registrations
    assert told.brokers(LIVE, "PLAINTEXT") == {1: LIVE[1], 2: LIVE[2]}
    assert told.brokers(LIVE, "SSL") == {}


def test_they_are_read_whenever_one_comes(world: FollowedBrokers) -> None:
    world.zk.create(znodes.BROKER_IDS, b"", makepath=True)
    world.registrations.start()
    world.register(1, TLS)
    world.registrations.step()
    assert world.registrations.brokers(LIVE, "SSL").keys() == {1}
    assert [list(each) for each in world.told] == [[], [1]]


@pytest.mark.scenario("security-6")
def test_garbage_is_passed_over(world: FollowedBrokers) -> None:
    world.write(1, b"{")
    world.register(2, TLS)
    world.registrations.start()
    assert world.told == [{1: None, 2: world.told[0][2]}]
    assert world.registrations.brokers(LIVE, "SSL").keys() == {2}
    assert world.registrations.endpoint(1, "SSL", "SSL") is None


@pytest.mark.scenario("security-6")
def test_endpoints_for_brokers(world: FollowedBrokers) -> None:
    world.register(1, PLAIN, TLS)
    world.register(2, PLAIN)
    told = world.registrations
    assert told.endpoint(1, "SSL", "SSL") == TLS, "read though not told yet"
    assert told.endpoint(2, "SSL", "SSL") is None
    assert told.endpoint(2, "INNER", "PLAINTEXT") == PLAIN, "the only one of 0.8.2.2"
    assert told.endpoint(1, "INNER", "PLAINTEXT") is None
    assert told.endpoint(1, "SSL", "PLAINTEXT") is None, "the protocol must be the same"
    assert told.endpoint(2, "PLAINTEXT", "SSL") is None, "no fall back to plain bytes"
    assert told.endpoint(9, "SSL", "SSL") is None


def test_without_zookeeper_a_new_broker_has_no_endpoint(
    world: FollowedBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> None:
        raise ZkConnectionError()

    monkeypatch.setattr(world.zk, "get_if_exists", fail)
    assert world.registrations.endpoint(1, "SSL", "SSL") is None


def test_the_listener_of_the_request_counts(world: FollowedBrokers) -> None:
    world.register(1, PLAIN, TLS)
    world.registrations.start()
    cache = MetadataCache(threading.Event())
    cache.update([], LIVE.values())
    reachable = Reachable(cache, world.registrations)
    assert reachable.brokers()[1] == LIVE[1]
    token = current_peer.set(Peer("127.0.0.1:1", listener="SSL"))
    try:
        assert reachable.brokers() == {1: Broker(1, "s", 9093)}
        assert Reachable(cache).brokers() == {1: LIVE[1], 2: LIVE[2]}
    finally:
        current_peer.reset(token)
