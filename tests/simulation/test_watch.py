"""Replicas that a watchman does not let pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.cluster.partition import Partition
from kafka08.common import TopicPartition
from kafka08.message.sets import encode_set
from tests.simulation import checks
from tests.simulation.run import TOPIC, SimulatedRun
from tests.simulation.watch import Watchman
from tests.simulation.world import SimulatedWorld

NAME = TopicPartition(TOPIC, 0)


class Watched:
    """A partition of two brokers with messages that both have."""

    def __init__(self, world: SimulatedWorld) -> None:
        world.start()
        SimulatedRun.create_topic(world)
        self.world = world
        world.scheduler.run(self.is_there, seconds=60)
        state = world.sessions.history.states[NAME]
        self.watchman = Watchman(world)
        self.leader = self.replica(state.leader)
        (other,) = set(state.isr) - {state.leader}
        self.follower = self.replica(other)
        self.append(2)
        world.scheduler.run(lambda: self.leader.high_watermark == 2, seconds=10)
        self.look()

    def is_there(self) -> bool:
        """Whether all brokers have the partition, and its whole isr."""
        there = [each.replicas and each.replicas.partitions for each in self.world.brokers.values()]
        return checks.is_at_rest(self.world, TOPIC) and all(NAME in (each or {}) for each in there)

    def replica(self, number: int) -> Partition:
        replicas = self.world.brokers[number].replicas
        assert replicas is not None
        return replicas.partitions[NAME]

    def append(self, count: int) -> None:
        data = memoryview(bytearray(encode_set([(b"key", b"value")] * count)))
        self.leader.append_messages_to_leader(data, 1)

    def look(self) -> None:
        """After a step of each broker."""
        for broker in self.world.brokers.values():
            self.watchman.look(next(iter(broker.runtime.process.tasks.values())))


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with SimulatedWorld(tmp_path, 1, count=2) as world:
        yield Watched(world)


def test_a_follower_may_lack_what_nobody_was_shown(watched: Watched) -> None:
    watched.append(1)
    watched.look()


def test_a_high_watermark_beyond_the_end_is_found(watched: Watched) -> None:
    watched.leader.high_watermark = 3
    with pytest.raises(AssertionError, match="is beyond its end"):
        watched.look()


def test_a_high_watermark_that_goes_back_is_found(watched: Watched) -> None:
    watched.leader.high_watermark = 1
    with pytest.raises(AssertionError, match="goes back"):
        watched.look()


def test_a_first_offset_that_goes_back_is_found(watched: Watched) -> None:
    log = watched.leader.leader_log()
    log.deleted_until = 2
    watched.look()
    log.deleted_until = 1
    with pytest.raises(AssertionError, match="goes back"):
        watched.look()


def test_a_member_of_the_isr_without_what_was_shown_is_found(watched: Watched) -> None:
    watched.append(1)
    watched.leader.high_watermark = 3
    with pytest.raises(AssertionError, match=r"of the isr .* ends at 2"):
        watched.look()


def test_a_broker_that_a_power_cut_left_behind_is_exempt(watched: Watched) -> None:
    watched.watchman.exempt = {watched.follower.broker_id}
    watched.append(1)
    watched.leader.high_watermark = 3
    watched.look()


def test_a_state_is_compared_with_the_replicas_when_it_is_written(watched: Watched) -> None:
    watched.follower.any_log().truncate_to(1)
    watched.world.sessions.history.changed[NAME] = None
    with pytest.raises(AssertionError, match=r"of the isr .* ends at 1"):
        watched.watchman.look(None)


def test_what_a_former_leader_has_shown_is_committed(watched: Watched) -> None:
    watched.append(1)
    watched.leader.leader_epoch -= 1  # of which the watchman has not seen more
    watched.watchman = Watchman(watched.world)
    watched.leader.high_watermark = 3
    with pytest.raises(AssertionError, match=r"of the isr .* ends at 2"):
        watched.look()


@pytest.mark.parametrize("forgotten", [False, True])
def test_an_old_leader_epoch_that_is_obeyed_is_found(watched: Watched, forgotten: bool) -> None:
    watched.follower.leader_epoch += 2
    watched.look()
    if forgotten:
        watched.follower.forget_epoch()
        watched.look()
    watched.follower.leader_epoch = 1
    with pytest.raises(AssertionError, match="obeys an old epoch"):
        watched.look()


def test_a_second_beginning_in_a_leader_epoch_is_found(watched: Watched) -> None:
    watched.leader.leadership_start += 1
    with pytest.raises(AssertionError, match="goes back"):
        watched.look()


def test_an_old_controller_that_is_obeyed_is_found(watched: Watched) -> None:
    rooms = watched.world.brokers[1].rooms
    assert rooms is not None
    rooms.replication.roles.controller_epoch -= 1
    with pytest.raises(AssertionError, match="obeys a controller of"):
        watched.look()
