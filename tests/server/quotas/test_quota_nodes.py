"""Quotas in ZooKeeper: their nodes are Kafka's, and changes count as soon as they are told."""

from __future__ import annotations

import logging

import pytest

from kafka08.network.connection_limits import ConnectionLimits
from kafka08.security.limits import QuotaLimits
from kafka08.server.quotas.quota_nodes import IpNodes, QuotaNodes
from kafka08.server.quotas.throttle import Throttle
from tests.fakes.runtime import FakeClock
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import entity_configs


class Nodes:
    def __init__(self) -> None:
        self.zk = Session(FakeZooKeeper()).start()
        self.throttle = Throttle(FakeClock())
        self.mutations = QuotaLimits()
        self.quotas = QuotaNodes(self.zk, self.throttle, self.mutations)  # type: ignore[arg-type]

    def store(self, entity: str, text: str) -> None:
        data, path = text.encode(), f"/config/{entity}"
        if self.zk.exists(path) is None:
            self.zk.create(path, data, makepath=True)
        else:
            self.zk.set(path, data)

    def rates(self, user: str, client: str) -> tuple[float | None, float | None]:
        found = [
            quota.limits.find(user, client)
            for quota in (self.throttle.producers, self.throttle.consumers)
        ]
        produced, consumed = (None if limit is None else limit.rate for limit in found)
        return produced, consumed


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


def config(text: str) -> str:
    return f'{{"version":1,"config":{{{text}}}}}'


PRODUCER = '"producer_byte_rate":"{}"'


def test_without_nodes_there_are_no_quotas(nodes: Nodes) -> None:
    nodes.quotas.load()
    assert not nodes.throttle.is_on


def test_the_nodes_of_kafka_are_read(nodes: Nodes) -> None:
    nodes.store(
        "clients/throttled", config('"producer_byte_rate":"1000","consumer_byte_rate":"2000"')
    )
    nodes.store("users/CN%3Da%20b%2CO%3Dx/clients/<default>", config(PRODUCER.format("1024.0")))
    nodes.store("users/CN%3Da%20b%2CO%3Dx", config('"SCRAM-SHA-256":"x","consumer_byte_rate":"7"'))
    nodes.store("users/<default>", config(PRODUCER.format(5)))
    nodes.quotas.load()
    assert nodes.rates("ANONYMOUS", "throttled") == (5, 2000)
    assert nodes.rates("CN=a b,O=x", "throttled") == (1024, 7)
    assert nodes.rates("bob", "c") == (5, None)


@pytest.mark.scenario("security-48")
def test_48_changes_count(nodes: Nodes) -> None:
    nodes.quotas.load()
    for entity in ("users/u", "clients/c", "users/u/clients/c", "users/<default>/clients/c"):
        nodes.store(entity, config(PRODUCER.format(1000)))
        nodes.quotas.changed(entity)
        assert nodes.rates("u", "c") == (1000, None)
        nodes.store(entity, config(PRODUCER.format(2000)))
        nodes.quotas.changed(entity)
        assert nodes.rates("u", "c") == (2000, None)
        nodes.store(entity, config(""))
        nodes.quotas.changed(entity)
        assert not nodes.throttle.is_on


def test_quotas_that_went_unnoticed_are_gone_after_a_new_session(nodes: Nodes) -> None:
    nodes.store("clients/c", config(PRODUCER.format(1000)))
    nodes.quotas.load()
    nodes.zk.delete("/config/clients/c")
    nodes.store("clients/d", config(PRODUCER.format(2000)))
    nodes.quotas.load()
    assert nodes.rates("u", "c") == (None, None)
    assert nodes.rates("u", "d") == (2000, None)


@pytest.mark.parametrize("rate", ["", "x", "0", "-1", "nan", "inf", "1e999"])
def test_a_rate_that_makes_no_sense_is_none(
    nodes: Nodes, rate: str, caplog: pytest.LogCaptureFixture
) -> None:
    nodes.store("clients/c", config(f'{PRODUCER.format(rate)},"consumer_byte_rate":"3"'))
    nodes.quotas.load()
    assert nodes.rates("u", "c") == (None, 3)
    (error,) = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert error.startswith("Ignoring producer_byte_rate of clients/c: ")


def test_garbage_stops_nothing(nodes: Nodes, caplog: pytest.LogCaptureFixture) -> None:
    nodes.store("clients/c", "garbage")
    nodes.store("clients/d", config(PRODUCER.format(1000)))
    nodes.quotas.load()
    assert nodes.rates("u", "c") == (None, None)
    assert nodes.rates("u", "d") == (1000, None)
    assert "Ignoring the quotas of clients/c" in caplog.text
    for entity in ("users/u/groups/g", "users", "clients/a/users/b"):
        nodes.quotas.changed(entity)


def test_rates_of_administrators(nodes: Nodes) -> None:
    nodes.store("users/u", config('"controller_mutation_rate":"2.5"'))
    nodes.quotas.load()
    found = nodes.mutations.find("u", "c")
    assert found is not None and found.rate == 2.5
    assert not nodes.throttle.is_on
    nodes.store("users/u", config(""))
    nodes.quotas.changed("users/u")
    assert not nodes.mutations


def test_shares_of_time(nodes: Nodes) -> None:
    nodes.store("users/u", config('"request_percentage":"12.5"'))
    nodes.store("clients/c", config('"request_percentage":"-1"'))
    nodes.quotas.load()
    found = nodes.throttle.times.limits.find("u", "c")
    assert found is not None and found.rate == 12.5
    assert nodes.throttle.timer is not None
    assert nodes.throttle.times.limits.find("ANONYMOUS", "c") is None
    nodes.store("users/u", config(""))
    nodes.quotas.changed("users/u")
    assert nodes.throttle.timer is None
    assert not nodes.throttle.is_on


class Ips:
    def __init__(self) -> None:
        self.zk = Session(FakeZooKeeper()).start()
        self.limits = ConnectionLimits(FakeClock(), seconds=1)
        self.nodes = IpNodes(self.zk, self.limits)  # type: ignore[arg-type]

    def store(self, address: str, **config: str) -> None:
        entity_configs.alter(self.zk, f"ips/{address}", lambda _: config)  # type: ignore[arg-type]

    def accepted(self, address: str) -> int:
        """How many connections come in at once, up to 100."""
        return sum(self.limits.rejection(address) == "" for _ in range(100))


def test_rates_are_those_of_the_address_or_of_all() -> None:
    ips = Ips()
    ips.nodes.load()
    assert ips.accepted("10.0.0.1") == 100
    ips.store("10.0.0.2", connection_creation_rate="20")
    ips.store("<default>", connection_creation_rate="5")
    ips.nodes.load()
    assert ips.accepted("10.0.0.2") == 21
    assert ips.accepted("10.0.0.3") == 6


def test_changes_count_and_nonsense_does_not() -> None:
    ips = Ips()
    ips.store("10.0.0.2", connection_creation_rate="5")
    ips.nodes.changed("ips/10.0.0.2")
    assert ips.accepted("10.0.0.2") == 6
    ips.store("10.0.0.2", connection_creation_rate="x")
    ips.nodes.changed("ips/10.0.0.2")
    assert ips.accepted("10.0.0.2") == 100
    ips.store("10.0.0.2", connection_creation_rate="1")
    ips.nodes.changed("ips/10.0.0.2")
    ips.zk.delete("/config/ips/10.0.0.2")
    ips.nodes.load()
    assert ips.accepted("10.0.0.2") == 100
