"""The driver as a member: what it may plan, what it commits, what it hands on."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.errors import KafkaError
from kafka08.message.sets import encode_set
from kafka08.spark.driver.member import DriverMember, check_topics
from kafka08.spark.offsets import LogOffsetReader
from kafka08.spark.planner import Range
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from tests.spark.cluster import client_of, cluster_of, put
from zk import znodes

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class GroupWorld:
    """One ZooKeeper, a topic of two partitions whose logs reach from 0 to 100."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.ensemble = FakeZooKeeper()
        self.cluster = cluster_of({})
        self.reach(0, 100)
        self.ensemble.put(
            "/brokers/ids/0", znodes.encode_broker(znodes.BrokerRegistration("b0", 9090))
        )
        self.ensemble.put("/brokers/topics/t", znodes.encode_topic({0: [0], 1: [0]}))

    def reach(self, low: int, high: int) -> None:
        """Have both logs reach from one offset to the other."""
        for tp in (P0, P1):
            put(self.cluster, tp, encode_set([(None, b"x")], 0, high - 1))
            self.cluster.starts[tp] = low

    def offset(self, partition: int) -> str | None:
        path = f"/consumers/g/offsets/t/{partition}"
        return self.ensemble.text(path) if path in self.ensemble.nodes else None

    def owners(self) -> dict[int, str]:
        path = "/consumers/g/owners/t"
        return {int(n): self.ensemble.text(f"{path}/{n}") for n in self.ensemble.below(path)}


class JoinedDriver:
    def __init__(self, world: GroupWorld, name: str = "a", **settings: Any) -> None:
        self.world = world
        self.alive = True
        self.zk = Session(world.ensemble)
        given = {"consumer_id": name, "auto_offset_reset": "smallest", **settings}
        self.member = DriverMember(
            ConsumerConfig(group_id="g", zookeeper_connect="z", **given),
            {"t": 1},
            alive=lambda: self.alive,
            offsets=lambda endpoints: nullcontext(LogOffsetReader(client_of(world.cluster))),
            zk=self.zk,
            runtime=world.runtime,  # type: ignore[arg-type]
        ).start()

    def work(self) -> None:
        self.world.runtime.step(f"{self.member.consumer_id}_member")

    @property
    def positions(self) -> dict[TopicPartition, int]:
        return self.member.positions()[1]

    def batch(self, number: int, *ranges: Range, ok: bool | None = True) -> bool:
        token, _ = self.member.positions()
        planned = self.member.plan(token, number, ranges)
        self.member.submitted(number)
        if ok is not None:
            self.member.completed(number, ok)
        return planned


@pytest.fixture
def world() -> GroupWorld:
    return GroupWorld()


def test_nothing_before_joining_all_after(world: GroupWorld) -> None:
    one = JoinedDriver(world)
    assert one.positions == {}
    one.work()
    assert one.positions == {P0: 0, P1: 0}
    assert world.owners() == {0: "g_a-0", 1: "g_a-0"}
    assert '"subscription":{"t":1}' in world.ensemble.text("/consumers/g/ids/g_a")


def test_where_to_begin(world: GroupWorld) -> None:
    world.reach(10, 100)
    world.ensemble.put("/consumers/g/offsets/t/0", b"42")
    world.ensemble.put("/consumers/g/offsets/t/1", b"5")
    one = JoinedDriver(world)
    one.work()
    assert one.positions == {P0: 42, P1: 10}
    one.alive = False
    one.work()
    two = JoinedDriver(world, "b", auto_offset_reset="largest")
    two.work()
    assert two.positions == {P0: 42, P1: 10}, "where the first began"


def test_a_batch_is_committed_when_it_succeeded(world: GroupWorld) -> None:
    one = JoinedDriver(world)
    one.work()
    assert one.batch(1, Range(*P0, 0, 7), Range(*P1, 0, 0), ok=None)
    assert one.positions == {P0: 7, P1: 0}
    assert world.offset(0) is None
    one.member.completed(1, True)
    assert world.offset(0) == "7"
    one.batch(2, Range(*P0, 7, 9), ok=False)
    one.batch(3, Range(*P0, 9, 12))
    assert world.offset(0) == "7"


@pytest.mark.scenario("spark-18")
def test_a_second_member_gets_its_share_after_a_drain(world: GroupWorld) -> None:
    one, two = JoinedDriver(world), JoinedDriver(world, "b")
    one.work()
    two.work()
    assert two.positions == {}
    one.batch(1, Range(*P1, 0, 7))
    one.work()
    assert one.positions == {P0: 0}
    two.work()
    assert two.positions == {P1: 7}
    assert world.owners() == {0: "g_a-0", 1: "g_b-0"}


def test_a_member_does_not_wait_longer_than_the_owner(world: GroupWorld) -> None:
    """The original waits for the whole rebalance.backoff.ms."""
    one, two = JoinedDriver(world), JoinedDriver(world, "b")
    one.work()
    begin = world.runtime.clock.now
    one.alive = False
    world.runtime.while_waiting = [one.work]
    two.work()
    assert two.positions == {}
    two.work()
    assert two.positions == {P0: 0, P1: 0}
    assert world.runtime.clock.now == begin


def test_an_owner_that_stays_is_asked_again_after_the_backoff(world: GroupWorld) -> None:
    one, two = JoinedDriver(world), JoinedDriver(world, "b")
    one.work()
    begin = world.runtime.clock.now
    two.work()
    assert two.positions == {}
    assert world.runtime.clock.now == begin + 2.0


def test_a_batch_planned_across_a_rebalance_is_refused(world: GroupWorld) -> None:
    one = JoinedDriver(world)
    one.work()
    token, _ = one.member.positions()
    JoinedDriver(world, "b").work()
    one.work()
    assert not one.member.plan(token, 1, [Range(*P0, 0, 5)])


def test_a_batch_that_takes_too_long_is_not_committed_any_more(world: GroupWorld) -> None:
    one, two = JoinedDriver(world), JoinedDriver(world, "b")
    one.work()
    one.batch(1, Range(*P1, 0, 7), ok=None)
    two.work()
    one.work()
    two.work()
    one.member.completed(1, True)
    assert world.offset(1) in (None, "0")
    assert two.positions == {P1: 0}


def test_after_the_end_of_a_session_nothing_old_is_committed(world: GroupWorld) -> None:
    one = JoinedDriver(world)
    one.work()
    one.batch(1, Range(*P0, 0, 7), ok=None)
    one.zk.expire()
    one.work()
    one.member.completed(1, True)
    assert world.offset(0) in (None, "0")
    assert one.positions == {P0: 0, P1: 0}
    assert world.owners() == {0: "g_a-0", 1: "g_a-0"}


def test_a_recovered_batch_is_gone_on_from(world: GroupWorld) -> None:
    world.ensemble.put("/consumers/g/offsets/t/0", b"5")
    one = JoinedDriver(world)
    one.member.recovered(1, [Range(*P0, 5, 9)])
    one.member.submitted(1)
    one.work()
    assert one.positions == {P0: 9, P1: 0}
    one.member.completed(1, True)
    assert world.offset(0) == "9"


def test_an_old_batch_made_again_for_a_window_holds_nothing_up(world: GroupWorld) -> None:
    world.ensemble.put("/consumers/g/offsets/t/0", b"5")
    one = JoinedDriver(world)
    one.member.recovered(1, [Range(*P0, 0, 5)])
    one.work()
    one.batch(2, Range(*P0, 5, 9))
    assert world.offset(0) == "9"


@pytest.mark.scenario("spark-20")
def test_leaving_when_the_batches_end(world: GroupWorld) -> None:
    one = JoinedDriver(world)
    one.work()
    one.batch(1, Range(*P0, 0, 7))
    one.alive = False
    one.work()
    assert world.owners() == {}
    assert world.ensemble.below("/consumers/g/ids") == []
    assert one.positions == {}
    assert world.runtime.step("member") == 0


def test_topics_need_threads() -> None:
    for topics in ({}, {"t": 0}):
        with pytest.raises(KafkaError):
            check_topics(topics)
