"""Each of the faults begins and ends, and a cluster is at rest again after it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka08.common import TopicPartition
from tests.simulation import checks, faults
from tests.simulation.conditions import ALL
from tests.simulation.faults import FAULTS, Scene
from tests.simulation.run import TOPIC, SimulatedRun
from tests.simulation.world import SimulatedWorld


class Longest(Random):
    """Draws what lasts longest."""

    def choice(self, seq: Any) -> Any:
        return seq[-1]


@pytest.fixture
def world(tmp_path: Path) -> SimulatedWorld:
    return SimulatedWorld(tmp_path, 3, count=3)


def begin(world: SimulatedWorld) -> None:
    world.start()
    SimulatedRun.create_topic(world)
    world.scheduler.run(lambda: checks.is_at_rest(world, TOPIC), seconds=60)


def settle(world: SimulatedWorld) -> None:
    faults.end_all(world)
    world.scheduler.run(lambda: faults.are_up(world), seconds=120)
    world.scheduler.run(lambda: checks.is_at_rest(world, TOPIC), seconds=120)


def test_all_of_them(world: SimulatedWorld) -> None:
    with world:
        begin(world)
        rng = Random(1)
        for name, fault in FAULTS.items():
            broker = rng.choice([each for each in world.brokers.values() if not each.is_gone])
            world.scheduler.note(name, "fault")
            fault.strike(Scene(world, broker, rng))
            world.scheduler.run_for(3.0)
            settle(world)
        assert sum(each.is_gone for each in world.brokers.values()) == 1


def test_a_controller_that_stands_still_sees_the_new_process_only(world: SimulatedWorld) -> None:
    with world:
        begin(world)
        controller = world.controller
        assert controller is not None
        other = next(each for each in world.staying if each is not controller)
        path = f"/brokers/ids/{other.id}"
        nodes = world.sessions.ensemble.tree.nodes
        before = nodes[path].stat().czxid
        FAULTS["bounce"].strike(Scene(world, other, Random(1)))

        def is_back() -> bool:
            return path in nodes and nodes[path].stat().czxid > before

        world.scheduler.run(is_back, seconds=2.9)
        assert world.controller is controller
        settle(world)


def test_an_isolated_broker_ends_its_session_and_comes_back_at_once(world: SimulatedWorld) -> None:
    with world:
        begin(world)
        broker, ensemble = world.brokers[2], world.sessions.ensemble
        others = [each.host for each in world.brokers.values() if each is not broker]
        ways = [
            world.network.link(*way)
            for each in others
            for way in ((broker.host, each), (each, broker.host))
        ]
        FAULTS["isolate"].strike(Scene(world, broker, Longest()))
        assert all(each.is_down for each in ways)
        world.scheduler.run_for(24.0)
        assert not any(each.host == broker.host for each in ensemble.sessions.values())
        world.scheduler.run(lambda: not any(each.is_down for each in ways), seconds=2.0)
        world.scheduler.run(lambda: checks.is_at_rest(world, TOPIC), seconds=60)
        settle(world)


def test_preferred_leaders_are_elected_as_an_operator_asks(world: SimulatedWorld) -> None:
    with world:
        begin(world)
        states, preferred = world.sessions.history.states, TopicPartition(TOPIC, 0)
        before = states[preferred].leader
        world.brokers[before].kill()
        world.scheduler.run(lambda: states[preferred].leader not in (before, -1), seconds=60)
        settle(world)
        assert states[preferred].leader != before
        FAULTS["elect"].strike(Scene(world, world.brokers[1], Random(1)))
        world.scheduler.run(lambda: states[preferred].leader == before, seconds=10)
        settle(world)


def test_a_third_of_them_hit_at_a_moment(world: SimulatedWorld) -> None:
    with world:
        begin(world)
        planned = 0
        for _ in range(60):
            struck = len([line for line in world.scheduler.trace.last if " fault: " in line])
            world.scheduler.trace.last.clear()
            faults.draw(world, ALL)
            planned += not any(" fault: " in line for line in world.scheduler.trace.last)
            assert struck <= 1
        faults.end_all(world)
    assert 15 <= planned <= 35


def test_a_broker_that_cannot_start_without_zookeeper_is_started_again(
    world: SimulatedWorld,
) -> None:
    with world:
        begin(world)
        broker, ensemble = world.brokers[2], world.sessions.ensemble
        broker.kill()
        world.scheduler.run(lambda: not broker.is_running, seconds=1)
        for number in (0, 1):
            ensemble.stop(number)
        broker.start()
        world.scheduler.run(lambda: not broker.is_running, seconds=120)
        settle(world)
        assert broker.has_started


def test_a_directory_that_failed_is_used_again_in_the_end(world: SimulatedWorld) -> None:
    with world:
        begin(world)
        broker = world.brokers[1]
        broker.disk.broken = broker.disk.directories[0]
        world.scheduler.run(lambda: broker.has_lost_a_directory, seconds=120)
        settle(world)
        assert broker.log_manager.log_dirs == broker.disk.directories
