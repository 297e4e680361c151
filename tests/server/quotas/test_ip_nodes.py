"""Rates of new connections in ZooKeeper."""

from __future__ import annotations

from kafka08.network.connection_limits import ConnectionLimits
from kafka08.server.quotas.ip_nodes import IpNodes
from tests.fakes.runtime import FakeClock
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import entity_configs


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
