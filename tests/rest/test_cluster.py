from __future__ import annotations

import pytest

from kafka08.common import Broker, Endpoint, TopicPartition
from kafka08.rest.cluster import Cluster
from kafka08.rest.config import RestConfig
from kafka08.rest.errors import RestError
from tests.rest.world import BROKER, RestWorld
from zk import znodes

TP = TopicPartition("t", 0)


def test_leaders_are_those_that_zookeeper_has() -> None:
    world = RestWorld()
    world.topic("t")
    assert world.cluster.leader(TP) == BROKER
    world.ensemble.remove("/brokers/ids/0")
    with pytest.raises(RestError) as caught:
        world.cluster.leader(TP)
    assert caught.value.code == 40404


def test_a_broker_without_a_plain_port_cannot_be_reached() -> None:
    world = RestWorld()
    world.topic("t")
    endpoint = Endpoint("SSL", "SSL", "b0", 9093)
    registration = znodes.BrokerRegistration("", -1, endpoints=(endpoint,))
    world.ensemble.put("/brokers/ids/0", znodes.encode_broker(registration))
    with pytest.raises(RestError, match="Broker 0 has no listener of PLAINTEXT") as caught:
        world.cluster.leader(TP)
    assert caught.value.code == 50101
    secured = Cluster(RestConfig(), world.zk, world.runtime, protocol="ssl")  # type: ignore[arg-type]
    assert secured.leader(TP) == Broker(0, "b0", 9093)
    assert secured.brokers() == [Broker(0, "b0", 9093)]


def test_offsets_of_times() -> None:
    world = RestWorld()
    world.topic("t")
    world.brokers.append("t", 0, b"a", b"b")
    assert world.cluster.end_offsets(TP) == (0, 2)
    assert world.cluster.offsets_at({TP: -1}) == {TP: 2}
    assert world.cluster.offsets_at({TP: -2}) == {TP: 0}
