"""The nemesis keeps to its limits and takes everything back."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gevent.event import AsyncResult

from integration.faults import nemesis as module
from integration.faults.history import History, load
from integration.faults.nemesis import Nemesis
from integration.faults.plan import Fault, draw
from tests.fakes.runtime import FakeClock


class FakeProcess:
    """A process and, of a broker, its disk."""

    def __init__(self, number: int) -> None:
        self.id = number
        self.alive = True
        self.paused = False
        self.pid = number
        self.full = False

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

    def fill(self) -> None:
        assert not self.full
        self.full = True

    def make_room(self) -> None:
        self.full = False


class FakeCluster:
    """Processes that only know whether they run. ZooKeeper answers every read with the same."""

    def __init__(self) -> None:
        self.brokers = {number: FakeProcess(number) for number in range(1, 6)}
        self.disks = self.brokers
        self.zookeepers = [FakeProcess(0)]
        self.zk = SimpleNamespace(get_async=answered, create_async=answered, delete_async=answered)
        self.cuts: set[tuple[int, str]] = set()
        self.hosts = SimpleNamespace(heal=self.cuts.clear)

    def cut(self, broker_id: int, what: str) -> None:
        self.cuts.add((broker_id, what))

    def troubled(self) -> int:
        bad = {b.id for b in self.brokers.values() if not b.alive or b.paused or b.full}
        return len(bad | {broker_id for broker_id, _ in self.cuts})


def answered(path: str, *args: object, **options: object) -> AsyncResult:
    result = AsyncResult()
    result.set((b'{"brokerid":2,"leader":3}', None))
    return result


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    fake = SimpleNamespace(monotonic=clock.monotonic, sleep=clock.advance)
    monkeypatch.setattr(module, "time", fake)
    return clock


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster()
    monkeypatch.setattr(module.os, "kill", lambda pid, _: fake.brokers[pid].kill())
    return fake


def made(cluster: Any, directory: Path) -> tuple[Nemesis, History]:
    history = History(directory / "history.jsonl")
    return Nemesis(cluster, "t", history, cluster.disks), history


def test_limits_hold_and_everything_is_taken_back(cluster: FakeCluster, tmp_path: Path) -> None:
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


def test_a_broker_that_ends_by_itself_is_a_finding(cluster: FakeCluster, tmp_path: Path) -> None:
    nemesis, history = made(cluster, tmp_path)
    cluster.brokers[4].alive = False
    nemesis.carry_out(Fault("pause", "1", 1.0, False, 0.5, 0, ()))
    assert nemesis.unexpected == ["broker 4 exited with 1"]
    assert cluster.brokers[4].alive
    nemesis.heal()
    history.close()


def test_mending_one_cut_leaves_the_other(cluster: FakeCluster, tmp_path: Path) -> None:
    nemesis, history = made(cluster, tmp_path)
    nemesis.carry_out(Fault("cut-peers", "1", 1.0, True, 0.0, 0, ()))
    nemesis.carry_out(Fault("cut-everything", "2", 9.0, True, 0.0, 0, ()))
    nemesis.carry_out(Fault("pause", "3", 1.0, True, 0.0, 0, ()))
    assert cluster.cuts == {(2, "everything")}
    assert nemesis.impaired == {2, 3}
    nemesis.heal()
    assert not cluster.cuts
    history.close()
