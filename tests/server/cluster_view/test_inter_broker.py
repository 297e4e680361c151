"""Brokers connect to each other's listener between brokers."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.network.channel import Channel
from kafka08.server.cluster_view.registrations import Registrations, connectors
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.listeners import Listeners
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes


class Dialled:
    def __init__(self) -> None:
        self.addresses: list[tuple[str, int, float]] = []

    def connect(self, host: str, port: int, timeout: float) -> Any:
        self.addresses.append((host, port, timeout))
        raise ConnectionRefusedError("nobody is there")


def listeners(**settings: str) -> Listeners:
    return BrokerConfig(broker_id=1, zookeeper_connect="z", **settings).resolved_listeners()


@pytest.fixture
def registrations() -> Registrations:
    zk: Any = Session(FakeZooKeeper())
    data = b'{"host":"h","port":1,"version":2,"endpoints":["PLAINTEXT://h:1","SSL://s:2"]}'
    zk.create(znodes.broker_path(7), data, makepath=True)
    return Registrations(FakeRuntime(), zk)


def test_with_the_listener_of_0_8_the_given_address_counts(registrations: Registrations) -> None:
    dialled = Dialled()
    assert connectors(dialled, registrations, listeners())(7) is dialled


def test_the_registered_endpoint_counts(registrations: Registrations) -> None:
    dialled = Dialled()
    given = listeners(listeners="PLAINTEXT://:1,SSL://:2", security_inter_broker_protocol="SSL")
    channel = Channel(
        "far", 9, timeout_ms=5000, runtime=connectors(dialled, registrations, given)(7)
    )
    with pytest.raises(ConnectionRefusedError, match="nobody is there"):
        channel.connect()
    assert dialled.addresses == [("s", 2, 5.0)]


def test_a_broker_without_the_listener_cannot_be_reached(registrations: Registrations) -> None:
    dialled = Dialled()
    given = listeners(
        listeners="INNER://:1",
        listener_security_protocol_map="INNER:SSL",
        inter_broker_listener_name="INNER",
    )
    channel = Channel("far", 9, runtime=connectors(dialled, registrations, given)(7))
    with pytest.raises(ConnectionRefusedError, match="broker 7 has registered no listener INNER"):
        channel.connect()
    assert dialled.addresses == []
