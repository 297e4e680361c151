"""ZooKeeper for simulated processes: clients of an ensemble on the scheduler's time."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.runtime import SimulatedRuntime
from tests.simulation.scheduler import SECOND, PlannedCall, Scheduler
from tests.simulation.state_history import StateHistory
from tests.simulation.zookeeper import Ensemble
from tests.simulation.zookeeper_library import library
from zk.client import ZkClient


class SecondsOf:
    """A scheduler in seconds."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def now(self) -> float:
        return 1_400_000_000 + self._scheduler.now / SECOND

    def call_later(self, seconds: float, function: Callable[[], object], /) -> PlannedCall:
        return self._scheduler.after(round(max(seconds, 0.0) * SECOND), function)


class SimulatedSessions:
    """The sessions of all processes, and what ZooKeeper has; ``history`` sees that it gets nothing
    that no correct broker writes."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.history = StateHistory(lambda line: scheduler.note(line, "zookeeper"))
        self.ensemble = Ensemble(
            SecondsOf(scheduler),
            scheduler.rng,
            note=lambda line: scheduler.note(line, "zookeeper"),
            committed=self.history.committed,
        )

    def connect(self, runtime: SimulatedRuntime, timeout_ms: int = 6000) -> ZkClient:
        """A session of a process; waits for it, so only one of its tasks may call this."""
        client = ZkClient(
            "zookeeper:2181",
            session_timeout_ms=timeout_ms,
            library=library(self.ensemble, runtime, runtime.name),
        )
        return client.start()

    def died(self, runtime: SimulatedRuntime) -> None:
        """A process has died: its sessions end after their timeouts."""
        self.ensemble.kill(runtime.name)

    def data(self, path: str) -> bytes | None:
        """Of a node, None if it does not exist; as ZooKeeper has it now."""
        node = self.ensemble.tree.nodes.get(path)
        return None if node is None else node.data

    def children(self, path: str) -> list[str]:
        """The names of a node's children, none if it does not exist; as ZooKeeper has it now."""
        node = self.ensemble.tree.nodes.get(path)
        return [] if node is None else list(node.children)
