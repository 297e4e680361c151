"""Each of the faults begins and ends, and a cluster is at rest again after it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka08.common import TopicPartition
from tests.simulation import checks, faults
from tests.simulation.conditions import ALL
from tests.simulation.faults import KINDS, Scene
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
        for name, fault in KINDS.items():
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
        KINDS["bounce"].strike(Scene(world, other, Random(1)))

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
        KINDS["isolate"].strike(Scene(world, broker, Longest()))
        assert all(each.is_down for each in ways)
        world.scheduler.run_for(24.0)
        assert not any(each.host == broker.host for each in ensemble.sessions.values())
        world.scheduler.run(lambda: not any(each.is_down for each in ways), seconds=2.0)
        world.scheduler.run(lambda: checks.is_at_rest(world, TOPIC), seconds=60)
        settle(world)


def test_a_crashed_broker_is_started_again_soon(world: SimulatedWorld) -> None:
    with world:
        begin(world)
        broker, runtime = world.brokers[2], world.brokers[2].runtime
        KINDS["crash"].strike(Scene(world, broker, Random(1)))
        assert runtime.is_dead
        world.scheduler.run(lambda: broker.runtime is not runtime, seconds=5.1)
        assert broker.is_running
        settle(world)


def test_clients_reach_a_broker_that_is_split_from_the_others(world: SimulatedWorld) -> None:
    with world:
        begin(world)
        broker, network = world.brokers[2], world.network
        world.client("client")
        KINDS["split"].strike(Scene(world, broker, Random(1)))
        assert network.link("broker2", "broker1").is_down
        assert network.link("broker3", "broker2").is_down
        assert not network.link("client", "broker2").is_down
        assert world.sessions.ensemble.is_cut("broker2")
        world.scheduler.run_for(16.0)
        assert not network.link("broker2", "broker1").is_down
        settle(world)


def test_markers_arrive_when_their_coordinator_has_stopped(world: SimulatedWorld) -> None:
    with world:
        begin(world)
        broker, link = world.brokers[2], world.network.link("broker2", "broker1")
        KINDS["late markers"].strike(Scene(world, world.brokers[1], Longest(1)))
        assert not link.is_down
        world.network.sends_markers(("broker2", "broker1"))
        assert link.is_down
        world.scheduler.run(lambda: not link.is_down, seconds=4.0)
        world.scheduler.run(lambda: broker.has_started, seconds=30)
        settle(world)


def test_batches_of_a_client_of_transactions_are_held(world: SimulatedWorld) -> None:
    with world:
        begin(world)
        scene, link = Scene(world, world.brokers[1], Random(1)), world.network.link
        world.client("producer")
        KINDS["late batches"].strike(scene)  # there is no such client
        world.client("lists")
        KINDS["late batches"].strike(scene)
        assert link("lists", "broker1").is_down and not link("producer", "broker1").is_down
        world.scheduler.run(lambda: not link("lists", "broker1").is_down, seconds=9.0)
        settle(world)


def test_a_broker_that_has_cut_a_log_loses_its_power(world: SimulatedWorld) -> None:
    with world:
        begin(world)
        disk = world.brokers[1].disk
        KINDS["power cut behind a cut"].strike(Scene(world, world.brokers[1], Random(1)))
        world.scheduler.run_for(20.0)
        assert world.brokers[1].is_running
        disk.cuts.happened()
        world.scheduler.run(lambda: not world.brokers[1].is_running, seconds=60.0)
        settle(world)


def test_faults_hit_those_that_are_ending_a_transaction(world: SimulatedWorld) -> None:
    def struck() -> list[str]:
        return [line for line in world.scheduler.trace.last if " fault: kill" in line]

    with world:
        begin(world)
        for _ in range(3):
            faults.draw(world, ["kill"], amid=1.0)
        world.scheduler.run_for(5.0)
        assert not struck()
        for _ in range(3):
            world.network.sends_markers(("broker1", "broker2"))
        world.scheduler.run_for(5.0)
        assert struck()
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
        KINDS["elect"].strike(Scene(world, world.brokers[1], Random(1)))
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
