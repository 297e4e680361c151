"""The nemesis keeps to its limits and takes everything back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gevent.event import AsyncResult

from integration.cluster.cluster import Cluster
from integration.cluster.hosts import Host, Loopback
from integration.cluster.nodes import HostedProcess
from integration.faults import nemesis as module
from integration.faults.history import History, load
from integration.faults.nemesis import Nemesis
from integration.faults.plan import Fault, draw
from integration.harness import STARTED
from tests.fakes.runtime import FakeClock

BROKER = f"echo '{STARTED}'; exec sleep 600"


class Cables(Loopback):
    """Notes which hosts are cut off from how many others."""

    def __init__(self) -> None:
        super().__init__()
        self.cuts: set[tuple[str, int]] = set()

    def cut(self, host: Host, others: Iterable[Host]) -> None:
        self.cuts.add((host.name, len(list(others))))

    def heal(self) -> None:
        self.cuts.clear()


class Scene:
    """A cluster whose processes only sleep. ZooKeeper answers every read with the same."""

    def __init__(self, directory: Path) -> None:
        self.cables = Cables()
        self.cluster = Cluster(self.cables, directory, "ours", brokers=5)
        for process in self.processes:
            process.command = ["sh", "-c", BROKER]
            process.spawn()
        self.cluster.zk = SimpleNamespace(  # type: ignore[assignment]
            get_async=answered, create_async=answered, delete_async=answered
        )
        self.full: set[int] = set()
        self.disks: Any = {
            number: SimpleNamespace(
                fill=partial(self.full.add, number), make_room=partial(self.full.discard, number)
            )
            for number in self.cluster.brokers
        }
        self.history = History(directory / "history.jsonl")
        self.nemesis = Nemesis(self.cluster, "t", self.history, self.disks)

    @property
    def processes(self) -> list[HostedProcess]:
        return [*self.cluster.brokers.values(), *self.cluster.zookeepers]

    def terminate(self, pid: int, sign: int) -> None:
        """Return when the process has ended, as no time passes for the nemesis meanwhile."""
        (process,) = (each for each in self.processes if each.alive and each.pid == pid)
        process.stop(sign)

    def troubled(self) -> int:
        """How many brokers are in trouble."""
        brokers = self.cluster.brokers
        bad = {number for number, broker in brokers.items() if not runs(broker)}
        cut = {name for name, _ in self.cables.cuts}
        return len(
            bad | self.full | {n for n, broker in brokers.items() if broker.host.name in cut}
        )

    def close(self) -> None:
        self.history.close()
        for process in self.processes:
            process.kill()


def runs(process: HostedProcess) -> bool:
    if not process.alive:
        return False
    state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "T"


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
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    monkeypatch.setattr(module, "os", SimpleNamespace(kill=scene.terminate))
    yield scene
    scene.close()


def test_limits_hold_and_everything_is_taken_back(scene: Scene) -> None:
    nemesis = scene.nemesis
    seen = set()
    for fault, _ in zip(draw(7, 5, 4, cuts=True, disks=True), range(500), strict=False):
        nemesis.carry_out(fault)
        seen.add(fault.kind)
        assert fault.kind == "kill-all" or scene.troubled() <= module.MOST_IMPAIRED
        assert scene.troubled() <= len(nemesis.impaired)
    wanted = {"rolling", "kill-all", "cut-peers", "reassign", "zookeeper-restart", "full-disk"}
    assert wanted | {"zookeeper-away", "zookeeper-freeze"} <= seen
    nemesis.heal()
    assert not nemesis.impaired and not nemesis.unexpected
    assert scene.troubled() == 0
    assert runs(scene.cluster.zookeepers[0])
    scene.history.close()
    assert sum(event["e"] == "fault" for event in load(scene.history.path)) == 500


def test_a_broker_that_ends_by_itself_is_a_finding(scene: Scene) -> None:
    nemesis = scene.nemesis
    scene.cluster.brokers[4].kill()
    nemesis.carry_out(Fault("pause", "1", 1.0, False, 0.5, 0, ()))
    assert nemesis.unexpected == ["broker 4 exited with 137"]
    assert scene.cluster.brokers[4].alive
    nemesis.heal()


def test_mending_one_cut_leaves_the_other(scene: Scene) -> None:
    nemesis = scene.nemesis
    nemesis.carry_out(Fault("cut-peers", "1", 1.0, True, 0.0, 0, ()))
    nemesis.carry_out(Fault("cut-everything", "2", 9.0, True, 0.0, 0, ()))
    nemesis.carry_out(Fault("pause", "3", 1.0, True, 0.0, 0, ()))
    assert scene.cables.cuts == {(scene.cluster.brokers[2].host.name, 5)}
    assert nemesis.impaired == {2, 3}
    nemesis.heal()
    assert not scene.cables.cuts
