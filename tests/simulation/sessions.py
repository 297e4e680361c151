"""The sessions of simulated processes in ZooKeeper.

Calls take time, and end with their process. A process that dies leaves its session, which
ZooKeeper ends after its timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.zookeeper import FakeZooKeeper, Session, Watches
from tests.simulation.runtime import SimulatedRuntime
from tests.simulation.scheduler import SECOND

_CALLS = frozenset(
    "children children_if_exists children_of_all close conditional_set create create_or_set delete "
    "delete_if_exists delete_recursive ensure_path exists get get_all get_if_exists multi set "
    "start sync".split()
)
_SLOWEST_MICROS = 2_000


class OrderedZooKeeper(FakeZooKeeper):
    """Tells watches in the order in which they were set."""

    def watch(self, path: str, watch: Callable[[Any], None] | None, *, children: bool) -> None:
        if watch is not None:
            watches: Any = self._child_watches if children else self._data_watches
            watches.setdefault(path, {})[watch] = None

    def _fire(self, watches: Watches, path: str, kind: str) -> None:
        super()._fire({path: watches.pop(path, set())}, path, kind)


class SessionOf:
    """zk.client.ZkClient for the process of ``runtime``."""

    def __init__(self, runtime: SimulatedRuntime, zookeeper: FakeZooKeeper) -> None:
        self._runtime = runtime
        self._zookeeper = zookeeper
        self._session = Session(zookeeper)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._session, name)
        if name not in _CALLS:
            return found

        def call(*args: Any, **more: Any) -> Any:
            where = args[0] if args and isinstance(args[0], str) else ""
            self._pause(f"zookeeper {name} {where}")
            try:
                return found(*args, **more)
            finally:
                self._pause("")

        return call

    def _pause(self, what: str) -> None:
        runtime = self._runtime
        runtime.check()
        if what:
            runtime.scheduler.note(what)
        runtime.scheduler.wait("ZooKeeper", runtime.scheduler.rng.randrange(_SLOWEST_MICROS))

    def abandon(self) -> None:
        """The process has died."""
        if not self._session.closed:
            session, server = self._session, self._zookeeper
            session.closed = True
            micros = session.session_timeout_ms * SECOND // 1000
            self._runtime.scheduler.after(micros, lambda: server.end_session(session.session_id))
