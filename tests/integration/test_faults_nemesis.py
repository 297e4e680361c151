"""The nemesis keeps to its limits and takes everything back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from integration.faults import nemesis as module
from integration.faults.history import History, load
from integration.faults.nemesis import Nemesis
from integration.faults.plan import Fault, draw


class FakeProcess:
    def __init__(self, number: int) -> None:
        self.id = number
        self.alive = True
        self.paused = False
        self.pid = number

    def kill(self) -> None:
        self.alive = self.paused = False

    def spawn(self) -> None:
        assert not self.alive
        self.alive = True

    def pause(self) -> None:
        assert self.alive
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def await_started(self) -> None:
        pass

    def exit_code(self, timeout: float) -> int:
        return 1


class FakeHosts:
    def __init__(self) -> None:
        self.cut: set[tuple[int, str]] = set()

    def heal(self) -> None:
        self.cut.clear()


class Answer:
    def get(self, timeout: float) -> tuple[bytes, None]:
        return b'{"brokerid":2,"leader":3}', None


class FakeZooKeeper:
    def get_async(self, path: str) -> Answer:
        return Answer()

    def create_async(self, path: str, data: bytes, makepath: bool) -> Answer:
        return Answer()

    def delete_async(self, path: str) -> Answer:
        return Answer()


class FakeCluster:
    def __init__(self) -> None:
        self.brokers = {number: FakeProcess(number) for number in range(1, 6)}
        self.zookeepers = [FakeProcess(0)]
        self.zk = FakeZooKeeper()
        self.hosts = FakeHosts()
        self.disks = {number: FakeDisk() for number in self.brokers}

    def cut(self, broker_id: int, what: str) -> None:
        self.hosts.cut.add((broker_id, what))

    def troubled(self) -> int:
        bad = {b.id for b in self.brokers.values() if not b.alive or b.paused}
        full = {broker_id for broker_id, disk in self.disks.items() if disk.full}
        return len(bad | full | {broker_id for broker_id, _ in self.hosts.cut})


class FakeDisk:
    full = False

    def fill(self) -> None:
        assert not self.full
        self.full = True

    def make_room(self) -> None:
        self.full = False


class FakeTime:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr(module, "time", fake)
    return fake


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster()
    monkeypatch.setattr(module.os, "kill", lambda pid, _: fake.brokers[pid].kill())
    return fake


def made(cluster: Any, directory: Path) -> tuple[Nemesis, History]:
    history = History(directory / "history.jsonl")
    return Nemesis(cluster, "t", history, cluster.disks), history


def test_limits_hold_and_everything_is_taken_back(
    cluster: FakeCluster, time: FakeTime, tmp_path: Path
) -> None:
    nemesis, history = made(cluster, tmp_path)
    seen = set()
    for fault, _ in zip(draw(7, 5, 4, cuts=True, disks=True), range(500), strict=False):
        nemesis.carry_out(fault)
        seen.add(fault.kind)
        assert fault.kind == "kill-all" or cluster.troubled() <= module.MOST_IMPAIRED
        assert cluster.troubled() <= len(nemesis.impaired)
    wanted = {"rolling", "kill-all", "cut-peers", "reassign", "zookeeper-restart", "full-disk"}
    assert wanted | {"zookeeper-away", "zookeeper-freeze"} <= seen
    nemesis.heal()
    assert not nemesis.impaired and not nemesis.unexpected
    assert cluster.troubled() == 0
    assert cluster.zookeepers[0].alive and not cluster.zookeepers[0].paused
    history.close()
    assert sum(event["e"] == "fault" for event in load(history.path)) == 500


def test_a_broker_that_ends_by_itself_is_a_finding(
    cluster: FakeCluster, time: FakeTime, tmp_path: Path
) -> None:
    nemesis, history = made(cluster, tmp_path)
    cluster.brokers[4].alive = False
    nemesis.carry_out(Fault("pause", "1", 1.0, False, 0.5, 0, ()))
    assert nemesis.unexpected == ["broker 4 exited with 1"]
    assert cluster.brokers[4].alive
    nemesis.heal()
    history.close()


def test_mending_one_cut_leaves_the_other(
    cluster: FakeCluster, time: FakeTime, tmp_path: Path
) -> None:
    nemesis, history = made(cluster, tmp_path)
    nemesis.carry_out(Fault("cut-peers", "1", 1.0, True, 0.0, 0, ()))
    nemesis.carry_out(Fault("cut-everything", "2", 9.0, True, 0.0, 0, ()))
    nemesis.carry_out(Fault("pause", "3", 1.0, True, 0.0, 0, ()))
    assert cluster.hosts.cut == {(2, "everything")}
    assert nemesis.impaired == {2, 3}
    nemesis.heal()
    assert not cluster.hosts.cut
    history.close()
