"""ZooKeeper for simulated processes: a tree in memory, whose sessions end with their processes.

Calls take time. A process that dies leaves its session, which ends after its timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from tests.fakes.zookeeper import FakeZooKeeper, Session, Watches
from tests.simulation.runtime import SimulatedRuntime
from tests.simulation.scheduler import SECOND
from zk.client import ZkClient

_CALLS = frozenset(
    (
        "children", "children_if_exists", "children_of_all", "close", "conditional_set", "create",
        "create_or_set", "delete", "delete_if_exists", "delete_recursive", "ensure_path", "exists",
        "get", "get_all", "get_if_exists", "multi", "set", "sync",
    )
)  # fmt: skip
_SLOWEST_MICROS = 2_000


class SimulatedSessions:
    """The sessions of all processes, and what ZooKeeper has."""

    def __init__(self) -> None:
        self._tree = OrderedTree()
        self._of: dict[SimulatedRuntime, list[Session]] = {}

    def connect(self, runtime: SimulatedRuntime, timeout_ms: int = 6000) -> ZkClient:
        """A session of a process."""
        session = Session(self._tree)
        session.session_timeout_ms = timeout_ms
        self._of.setdefault(runtime, []).append(session)
        return cast(ZkClient, SlowSession(runtime, session))

    def died(self, runtime: SimulatedRuntime) -> None:
        """A process has died: its sessions end after their timeouts."""
        for session in self._of.pop(runtime, ()):
            if not session.closed:
                session.closed = True
                micros = session.session_timeout_ms * SECOND // 1000
                runtime.scheduler.after(micros, partial(self._tree.end_session, session.session_id))

    def data(self, path: str) -> bytes | None:
        """Of a node, None if it does not exist; as ZooKeeper has it now."""
        node = self._tree.nodes.get(path)
        return None if node is None else node.data


class OrderedTree(FakeZooKeeper):
    """Tells watches in the order in which they were set."""

    def watch(self, path: str, watch: Callable[[Any], None] | None, *, children: bool) -> None:
        if watch is not None:
            watches: Any = self._child_watches if children else self._data_watches
            watches.setdefault(path, {})[watch] = None

    def _fire(self, watches: Watches, path: str, kind: str) -> None:
        super()._fire({path: watches.pop(path, set())}, path, kind)


class SlowSession:
    """zk.client.ZkClient for the process of ``runtime``: its calls wait, and end with it."""

    def __init__(self, runtime: SimulatedRuntime, session: Session) -> None:
        self._runtime = runtime
        self._session = session

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._session, name)
        if name not in _CALLS:
            return found

        def call(*args: Any, **more: Any) -> Any:
            path = args[0] if args and isinstance(args[0], str) else ""
            self._pause(f"ZooKeeper, {name} {path}")
            try:
                return found(*args, **more)
            finally:
                self._pause(f"the answer of ZooKeeper, {name} {path}")

        return call

    def _pause(self, what: str) -> None:
        scheduler = self._runtime.scheduler
        scheduler.wait(what, scheduler.rng.randrange(_SLOWEST_MICROS))
