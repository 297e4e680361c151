"""The rates of replication of a broker, as ZooKeeper has them."""

from __future__ import annotations

import logging

import pytest

from kafka08.server.quotas.replication import ReplicationQuota, ReplicationQuotas
from tests.fakes.runtime import FakeClock
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import entity_configs

LEADER = "leader.replication.throttled.rate"


class World:
    def __init__(self) -> None:
        self.zk = Session(FakeZooKeeper()).start()
        self.quotas = ReplicationQuotas(self.zk, FakeClock(), 1, 10)  # type: ignore[arg-type]
        self.quotas.load()

    def set(self, name: str, **rates: str) -> None:
        config = {f"{side}.replication.throttled.rate": rate for side, rate in rates.items()}
        entity_configs.alter(self.zk, f"brokers/{name}", lambda _: config)  # type: ignore[arg-type]
        self.quotas.changed(f"brokers/{name}")

    def rates(self) -> tuple[float | None, float | None]:
        return self.quotas.leader.rate, self.quotas.follower.rate


@pytest.fixture
def world() -> World:
    return World()


def test_a_brokers_own_rate_comes_before_that_of_all(world: World) -> None:
    assert world.rates() == (None, None)
    world.set("<default>", leader="100", follower="200")
    assert world.rates() == (100, 200)
    world.set("1", leader="50")
    assert world.rates() == (50, 200)
    world.set("1")
    assert world.rates() == (100, 200)
    world.set("<default>")
    assert world.rates() == (None, None)
    assert not world.quotas.leader.is_on


def test_other_brokers_do_not_matter(world: World) -> None:
    world.set("2", leader="100")
    assert world.rates() == (None, None)


@pytest.mark.parametrize("rate", ["0", "-1", "x", "nan"])
def test_a_rate_that_makes_no_sense_counts_as_none(
    world: World, rate: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        world.set("1", leader=rate, follower="5")
    assert world.rates() == (None, 5)
    assert f"Ignoring {LEADER} of brokers/1" in caplog.text


def test_a_node_that_cannot_be_read_counts_as_none(world: World) -> None:
    world.set("1", leader="5")
    world.zk.set("/config/brokers/1", b"{")
    world.quotas.changed("brokers/1")
    assert world.rates() == (None, None)


def test_a_rate_holds_in_the_mean() -> None:
    clock = FakeClock()
    quota = ReplicationQuota(clock, seconds=2)
    assert quota.count(10**9) == 0 and not quota.is_on
    quota.set_rate(100)
    assert quota.count(200) == 0  # what was saved
    assert quota.count(50) == 0.5 and quota.is_used_up()
    clock.advance(0.5)
    assert not quota.is_used_up()
    quota.count(100)
    quota.set_rate(1000)  # what is owed at the old rate stays
    assert quota.count(0) == pytest.approx(0.1)
