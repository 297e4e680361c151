"""The losses that power cuts may cause, and when it is known that they lose nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka08.common import TopicPartition
from tests.simulation import checks, faults
from tests.simulation.aims import SYNCED
from tests.simulation.loads import Clients
from tests.simulation.run import TOPIC, SimulatedRun
from tests.simulation.scheduler import TaskFailed
from tests.simulation.world import SimulatedWorld


def begin(world: SimulatedWorld) -> None:
    world.start()
    SimulatedRun.create_topic(world)
    world.scheduler.run(lambda: checks.is_at_rest(world, TOPIC), seconds=60)


def cut_power(world: SimulatedWorld, *numbers: int) -> None:
    for number in numbers:
        world.durability.power_cut(world.brokers[number])
        world.brokers[number].power_cut()


def at_rest_again(world: SimulatedWorld) -> None:
    world.scheduler.run(lambda: faults.are_up(world), seconds=120)
    world.scheduler.run(lambda: checks.is_at_rest(world, TOPIC), seconds=120)


def test_one_power_cut_exposes_nothing_and_the_broker_catches_up(tmp_path: Path) -> None:
    with SimulatedWorld(tmp_path, 1, count=3) as world:
        begin(world)
        cut_power(world, 1)
        world.scheduler.run_for(10.0)
        assert world.durability.behind == {1}
        assert world.durability.may_lose(world.brokers[1])
        assert not world.durability.may_lose(world.brokers[2])
        assert not world.durability.may_leave(world.brokers[2])
        at_rest_again(world)
        world.durability.review()
        assert not world.durability.exposed
        assert not world.durability.behind


def test_power_cuts_of_all_expose_what_the_next_leaders_lack(tmp_path: Path) -> None:
    with SimulatedWorld(tmp_path, 1, count=3) as world:
        begin(world)
        cut_power(world, 1, 2, 3)
        world.scheduler.run_for(1.0)
        at_rest_again(world)
        assert set(world.durability.exposed) >= {TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)}


def test_a_leader_that_has_just_begun_does_not_know_who_has_caught_up(tmp_path: Path) -> None:
    """Its high watermark is the one it last wrote down."""
    with SimulatedWorld(tmp_path, 1, count=2) as world:
        begin(world)
        clients = Clients(world, TOPIC, ["producer"])
        clients.start()
        world.scheduler.run(lambda: clients.are_under_way, seconds=60)
        committed = {
            key: partition.high_watermark
            for broker in world.brokers.values()
            if broker.replicas is not None
            for key, partition in broker.replicas.partitions.items()
            if partition.is_leader
        }
        cut_power(world, 1)
        lose_an_end(world)
        world.brokers[2].kill()
        world.scheduler.run_for(12.0)  # their sessions end
        durability = world.durability

        def has_caught_up() -> bool:
            durability.review()
            return faults.are_up(world) and not durability.behind

        world.scheduler.run(has_caught_up, seconds=120)
        replicas = world.brokers[1].replicas
        assert replicas is not None
        for key in committed.keys() - durability.exposed.keys():
            log = replicas.partitions[key].log
            assert log is not None
            assert log.log_end_offset >= committed[key]


def test_one_broker_of_three_may_leave(tmp_path: Path) -> None:
    with SimulatedWorld(tmp_path, 1, count=3) as world:
        begin(world)
        assert world.durability.may_leave(world.brokers[2])
        world.durability.lost(world.brokers[2])
        world.brokers[2].leave()
        assert not world.durability.may_leave(world.brokers[1])
        at_rest_again(world)
        assert not world.brokers[2].is_running


def lose_an_end(world: SimulatedWorld) -> None:
    """Of a log of broker 1, which does not run, as no broker does."""
    disk = world.brokers[1].disk
    for path in Path(disk.root).glob(f"*/{TOPIC}-*/*.log"):
        os.truncate(path, 0)


def kill_a_follower(world: SimulatedWorld) -> None:
    """Of which a producer has filled the logs."""
    begin(world)
    clients = Clients(world, TOPIC, ["producer"])
    clients.start()
    world.scheduler.run(lambda: clients.are_under_way, seconds=60)
    world.brokers[1].kill()
    world.scheduler.run_for(1.0)


def test_a_process_that_was_killed_has_what_its_leader_counts(tmp_path: Path) -> None:
    with SimulatedWorld(tmp_path, 1, count=3) as world:
        kill_a_follower(world)
        at_rest_again(world)


def test_a_process_that_was_killed_and_lacks_it_is_noticed(tmp_path: Path) -> None:
    with SimulatedWorld(tmp_path, 1, count=3) as world:
        kill_a_follower(world)
        lose_an_end(world)
        with pytest.raises(TaskFailed, match="which its leader counts"):
            at_rest_again(world)


def test_a_process_that_dies_at_its_disk_may_have_closed_its_files(tmp_path: Path) -> None:
    """Its logs are read once more, which opens them."""
    with SimulatedWorld(tmp_path, 1, count=1) as world:
        world.start()
        SimulatedRun.create_topic(world, partitions=1, settings={"cleanup.policy": "compact"})
        broker = world.brokers[1]
        world.scheduler.run(lambda: len(broker.log_manager.logs) == 1, seconds=60)
        (log,) = broker.log_manager.logs.values()
        log.files.active.release()
        broker.kill_at(1)
        world.scheduler.run(lambda: not broker.is_running, seconds=60)
        broker.start()
        world.scheduler.run(lambda: broker.has_started, seconds=60)


def test_brokers_that_sync_before_they_answer_lose_nothing(tmp_path: Path) -> None:
    with SimulatedWorld(tmp_path, 3, count=1, settings=SYNCED) as world:
        begin(world)
        assert world.durability.may_lose(world.brokers[1])
        cut_power(world, 1)
        assert not world.durability.behind
