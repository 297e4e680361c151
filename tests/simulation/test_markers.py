"""Markers, when brokers die at moments that are chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.admin import create_topic_with_assignment
from kafka08.cluster.partition import Partition
from kafka08.common import TRANSACTIONS_TOPIC, TopicPartition
from kafka08.log.log import Log
from tests.simulation import checks
from tests.simulation.clients import Seat
from tests.simulation.keyed_ledger import POLICIES, KeyedLedger
from tests.simulation.ledger import Ledger
from tests.simulation.list_ledger import ListLedger
from tests.simulation.log_transactions import LogTransactions
from tests.simulation.transactional import TOPIC, TransactionalClient
from tests.simulation.world import SimulatedWorld

LISTS = TopicPartition(TOPIC, 0)
COORDINATOR, LEADER, FOLLOWERS = 1, 2, (3, 4)


class OneTransaction(TransactionalClient):
    """Writes a message, and commits it once it may."""

    is_written = may_end = has_ended = False

    def go_on(self) -> None:
        if not self.is_written:
            self.is_written = self.include(0) and self.write(0, [(b"key", b"value")])
        elif self.may_end and not self.has_ended:
            self.has_ended = self.end(commit=True)
        else:
            self.runtime.sleep(0.1)


@pytest.fixture
def world(tmp_path: Path) -> SimulatedWorld:
    return SimulatedWorld(tmp_path, 3, count=4)


def begin(world: SimulatedWorld) -> OneTransaction:
    """A client in a cluster whose first broker coordinates, and the second one leads."""
    world.start()
    admin = world.client("admin")

    def create() -> None:
        session = world.sessions.connect(admin)
        lone = {"min.insync.replicas": "1"}
        states = {0: [COORDINATOR], 1: [COORDINATOR]}
        create_topic_with_assignment(session, TRANSACTIONS_TOPIC, states, lone)
        create_topic_with_assignment(session, TOPIC, {0: [LEADER, *FOLLOWERS]})
        session.close()

    task = admin.spawn("create", create)
    world.scheduler.run(lambda: task.has_ended, seconds=60)
    hosts = [each.host for each in world.brokers.values()]
    known = Ledger(), KeyedLedger(POLICIES[0]), ListLedger()
    place = world.client("writer"), hosts, world.sessions, TOPIC
    seat = Seat(*place, *known, is_legacy=False, is_synced=False, committed=world.committed)
    client = OneTransaction(seat, "writer")
    client.start()
    world.scheduler.run(lambda: client.is_written, seconds=60)
    return client


def partition(world: SimulatedWorld, broker: int) -> Partition:
    replicas = world.brokers[broker].replicas
    assert replicas is not None
    return replicas.partitions[LISTS]


def log(world: SimulatedWorld, broker: int) -> Log:
    return partition(world, broker).any_log()


@pytest.mark.scenario("transactions-21")
def test_a_marker_that_died_with_its_leader_is_written_again(world: SimulatedWorld) -> None:
    with world:
        client = begin(world)
        states = world.sessions.history.states
        world.scheduler.run(lambda: set(states[LISTS].isr) == {LEADER, *FOLLOWERS}, seconds=30)
        for each in FOLLOWERS:  # they replicate nothing now
            world.brokers[each].pause()
        client.may_end = True
        world.scheduler.run(lambda: log(world, LEADER).log_end_offset == 2, seconds=30)
        assert not LogTransactions(checks.entries(log(world, LEADER)).values()).open
        assert partition(world, LEADER).last_stable_offset == 0
        world.brokers[LEADER].kill()
        for each in FOLLOWERS:
            assert log(world, each).log_end_offset == 1
            world.brokers[each].resume()
        world.scheduler.run(lambda: states[LISTS].leader in FOLLOWERS, seconds=60)
        leader = states[LISTS].leader
        world.scheduler.run(
            lambda: partition(world, leader).last_stable_offset == 2 and client.has_ended,
            seconds=60,
        )
        world.brokers[LEADER].start()
        world.scheduler.run(lambda: checks.is_at_rest(world, TOPIC), seconds=60)
        world.scheduler.run(lambda: checks.is_replicated(world), seconds=60)
        checks.check_transactions(world)
        found = LogTransactions(checks.entries(log(world, LEADER)).values())
        assert (found.open, found.aborted) == ({}, [])
        client.stopping = True
        world.scheduler.run(lambda: client.has_stopped, seconds=10)


def test_a_transaction_that_has_not_ended_is_left(world: SimulatedWorld) -> None:
    def left() -> list[str]:
        return [
            each for each in checks.leftovers(world) if "transaction" in each or "stable" in each
        ]

    with world:
        client = begin(world)
        world.scheduler.run(lambda: checks.is_replicated(world), seconds=30)
        coordinated, led = left()
        assert "writer" in coordinated and str(LISTS) in led
        assert {key for key, _, _ in checks.open_transactions(world)} == {LISTS}
        checks.check_transactions(world)
        client.may_end = True
        world.scheduler.run(lambda: client.has_ended and not left(), seconds=30)
        world.scheduler.run(lambda: not checks.open_transactions(world), seconds=30)
        log(world, FOLLOWERS[0]).producers.states.open[7] = 0
        with pytest.raises(AssertionError, match=r"has open \{7: 0\}: \{\}"):
            checks.check_transactions(world)
        client.stopping = True
        world.scheduler.run(lambda: client.has_stopped, seconds=10)
