"""A ZooKeeper in memory: a tree of nodes, and sessions with zk.client.ZkClient's methods.

It is faithful in versions, czxids, mzxids, one-shot watches, sequence numbers, transactions, and
ephemeral nodes, which are deleted with their session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from zk.access import OPEN, Acl
from zk.client import NO_WATCHES, CheckOp, CreateOp, DeleteOp, Op, SessionState, SetOp, Stat
from zk.errors import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    ZkConnectionError,
)

Watches = dict[str, set[Callable[[Any], None]]]


class Node(NamedTuple):
    data: bytes
    czxid: int
    owner: int
    mzxid: int
    version: int = 0


class FakeZooKeeper:
    """The server. ``writes``: every change so far, in order."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.zxid = 0
        self.sessions = 0
        self.writes: list[Op] = []
        self.acls: dict[str, list[Acl]] = {}  # of nodes that are not open to all
        self._sequences: Counter[str] = Counter()
        self._data_watches: Watches = {}
        self._child_watches: Watches = {}

    # For tests

    def put(self, path: str, data: bytes = b"") -> None:
        """Create or change a persistent node, parents included."""
        parent = path.rpartition("/")[0]
        if path in self.nodes:
            self.apply([SetOp(path, data)], 0)
            return
        if parent and parent not in self.nodes:
            self.put(parent)
        self.apply([CreateOp(path, data)], 0)

    def add(self, path: str, data: bytes, session: int) -> None:
        """Create an ephemeral node of a session."""
        self.apply([CreateOp(path, data, True)], session)

    def remove(self, path: str) -> None:
        self.apply([DeleteOp(path)], 0)

    def text(self, path: str) -> str:
        return self.nodes[path].data.decode()

    def below(self, path: str) -> list[str]:
        return sorted(self.children(path))

    # For sessions

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return [
            name[len(prefix) :]
            for name in self.nodes
            if name.startswith(prefix) and "/" not in name[len(prefix) :]
        ]

    def node(self, path: str) -> Node:
        """Raises NoNodeError. The root is always there."""
        if path == "/":
            return Node(b"", 0, 0, 0)
        if path not in self.nodes:
            raise NoNodeError(path=path)
        return self.nodes[path]

    def stat(self, path: str) -> Stat:
        node = self.node(path)
        return Stat(
            czxid=node.czxid,
            mzxid=node.mzxid,
            ctime=0,
            mtime=0,
            version=node.version,
            cversion=0,
            aversion=0,
            ephemeral_owner=node.owner,
            data_length=len(node.data),
            num_children=len(self.children(path)),
            pzxid=0,
        )

    def watch(self, path: str, watch: Callable[[Any], None] | None, *, children: bool) -> None:
        if watch is not None:
            watches = self._child_watches if children else self._data_watches
            watches.setdefault(path, set()).add(watch)

    @property
    def watched(self) -> int:
        """How many watches wait."""
        both = (self._data_watches, self._child_watches)
        return sum(len(watches) for each in both for watches in each.values())

    def forget_watches(self) -> None:
        """No watch is told any more."""
        self._data_watches, self._child_watches = {}, {}

    def drop_watches(self) -> None:
        """Tell all watches of the end of the connection, as kazoo does."""
        dropped = [*self._data_watches.values(), *self._child_watches.values()]
        self.forget_watches()
        for watch in set().union(*dropped):
            watch(SimpleNamespace(type="NONE", path=""))

    def sequenced(self, path: str) -> str:
        """The path with the next sequence number of its parent."""
        parent = path.rpartition("/")[0]
        self._sequences[parent] += 1
        return f"{path}{self._sequences[parent] - 1:010d}"

    def check(self, op: Op, nodes: dict[str, Node]) -> None:
        """Raise what the server would, given the tree as the transaction left it so far."""
        path = op.path
        if isinstance(op, CreateOp):
            parent = path.rpartition("/")[0]
            if parent and parent not in nodes:
                raise NoNodeError(path=path)
            if path in nodes:
                raise NodeExistsError(path=path)
            return
        if path not in nodes:
            raise NoNodeError(path=path)
        if op.version not in (-1, nodes[path].version):
            raise BadVersionError(path=path)
        if isinstance(op, DeleteOp) and any(name.startswith(path + "/") for name in nodes):
            raise NotEmptyError(path=path)

    def apply(self, ops: Sequence[Op], session: int) -> list[Any]:
        """All or nothing, then the watches."""
        nodes = dict(self.nodes)
        fired: list[tuple[str, str]] = []
        self.zxid += 1
        for op in ops:
            self.check(op, nodes)
            if isinstance(op, CreateOp):
                owner = session if op.ephemeral else 0
                nodes[op.path] = Node(op.data, self.zxid, owner, self.zxid)
                fired.append(("CREATED", op.path))
            elif isinstance(op, SetOp):
                node = nodes[op.path]
                version = node.version + 1
                nodes[op.path] = node._replace(data=op.data, mzxid=self.zxid, version=version)
                fired.append(("CHANGED", op.path))
            elif isinstance(op, DeleteOp):
                del nodes[op.path]
                fired.append(("DELETED", op.path))
        self.nodes = nodes
        self.writes.extend(op for op in ops if not isinstance(op, CheckOp))
        results = [
            self.stat(op.path) if isinstance(op, SetOp) and op.path in self.nodes else op.path
            for op in ops
        ]
        for kind, path in fired:
            self._fire(self._data_watches, path, kind)
            if kind != "CHANGED":
                self._fire(self._child_watches, path.rpartition("/")[0] or "/", "CHILD")
            if kind == "DELETED":
                self._fire(self._child_watches, path, kind)
        return results

    def _fire(self, watches: Watches, path: str, kind: str) -> None:
        for watch in watches.pop(path, set()):
            watch(SimpleNamespace(type=kind, path=path))

    def end_session(self, session: int) -> None:
        for path in [path for path, node in self.nodes.items() if node.owner == session]:
            self.apply([DeleteOp(path)], 0)


class Session:
    """zk.client.ZkClient for a FakeZooKeeper.

    ``down``: calls fail as during an outage. ``fails``: errors that the next call on a path
    raises. ``before`` is called with the method's name and the path, ``before_multi`` once before
    the next transaction. ``unreachable``: close cannot end the session.
    """

    session_timeout_ms = 6000
    unreachable = False

    def __init__(self, server: FakeZooKeeper) -> None:
        self.server = server
        self.down = False
        self.expired = False
        self.connected = True
        self.closed = False
        self.patience_s: float | None = None
        self.fails: dict[str, Exception] = {}
        self.before: Callable[[str, str], None] | None = None
        self.before_multi: Callable[[], None] | None = None
        self._listeners: list[Callable[[SessionState], None]] = []
        self.new_session()

    def new_session(self) -> None:
        self.server.sessions += 1
        self.session_id = self.server.sessions

    def _begin(self, call: str, path: str) -> None:
        if self.before is not None:
            self.before(call, path)
        if path in self.fails:
            raise self.fails.pop(path)
        if self.down:
            raise ZkConnectionError(path=path)
        if self.expired:
            raise SessionExpiredError(path=path)

    # The session

    def start(self) -> Session:
        return self

    def hurry(self, timeout_s: float) -> None:
        self.patience_s = timeout_s

    def close(self) -> bool:
        """Whether the session was ended."""
        if not self.closed and not self.unreachable:
            self.server.end_session(self.session_id)
        self.closed = True
        return not self.unreachable

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        self._listeners.append(callback)

    def tell(self, *states: SessionState) -> None:
        for state in states:
            for listener in self._listeners:
                listener(state)

    def lose_session(self) -> None:
        """The server ends the session; the client does not know yet."""
        self.expired = True
        self.server.end_session(self.session_id)

    def renew_session(self) -> None:
        """The client hears of it and gets a new one."""
        self.new_session()
        self.expired = False
        self.tell(SessionState.EXPIRED)

    def expire(self) -> None:
        self.lose_session()
        self.renew_session()

    def lose_connection(self, then: SessionState) -> None:
        """Watches end with a connection; here those of all sessions do."""
        self.tell(SessionState.SUSPENDED)
        self.server.drop_watches()
        self.tell(then)

    def reconnect(self) -> None:
        self.tell(SessionState.SUSPENDED, SessionState.CONNECTED)

    # Reads

    def get(self, path: str, watch: Any = None) -> tuple[bytes, Stat]:
        self._begin("get", path)
        data = self.server.node(path).data
        self.server.watch(path, watch, children=False)
        return data, self.server.stat(path)

    def get_if_exists(self, path: str) -> tuple[bytes, Stat] | None:
        try:
            return self.get(path)
        except NoNodeError:
            return None

    def exists(self, path: str, watch: Any = None) -> Stat | None:
        self._begin("exists", path)
        self.server.watch(path, watch, children=False)
        return self.server.stat(path) if path in self.server.nodes else None

    def children(self, path: str, watch: Any = None) -> list[str]:
        self._begin("children", path)
        if path not in self.server.nodes and path != "/":
            raise NoNodeError(path=path)
        self.server.watch(path, watch, children=True)
        return self.server.children(path)

    def children_if_exists(self, path: str) -> list[str]:
        try:
            return self.children(path)
        except NoNodeError:
            return []

    def get_all(
        self, paths: Sequence[str], watches: Mapping[str, Any] = NO_WATCHES
    ) -> list[tuple[bytes, Stat] | None]:
        self._begin("get_all", "")
        nodes = self.server.nodes
        for path in nodes.keys() & watches.keys():
            self.server.watch(path, watches[path], children=False)
        return [(nodes[p].data, self.server.stat(p)) if p in nodes else None for p in paths]

    def children_of_all(self, paths: Sequence[str]) -> list[list[str]]:
        self._begin("children_of_all", "")
        return [self.server.children(p) if p in self.server.nodes else [] for p in paths]

    def get_acl(self, path: str) -> tuple[list[Acl], Stat]:
        self._begin("get_acl", path)
        return self.server.acls.get(path, list(OPEN)), self.server.stat(path)

    def sync(self, path: str) -> None:
        self._begin("sync", path)

    # Writes

    def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        makepath: bool = False,
    ) -> str:
        if sequence:
            path = self.server.sequenced(path)
        self._begin("create", path)
        parent = path.rpartition("/")[0]
        if makepath and parent:
            self.ensure_path(parent)
        self.server.apply([CreateOp(path, data, ephemeral)], self.session_id)
        return path

    def ensure_chroot(self) -> None: ...

    def ensure_path(self, *paths: str) -> None:
        for path in paths:
            if path and path not in self.server.nodes:
                self.ensure_path(path.rpartition("/")[0])
                self.create(path)

    def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        self._begin("set", path)
        stat: Stat = self.server.apply([SetOp(path, data, version)], self.session_id)[0]
        return stat

    def create_or_set(self, path: str, data: bytes) -> int:
        try:
            return self.set(path, data).version
        except NoNodeError:
            self.create(path, data, makepath=True)
            return 0

    def conditional_set(
        self, path: str, data: bytes, version: int, same: Any = None
    ) -> tuple[bool, int]:
        try:
            return True, self.set(path, data, version).version
        except BadVersionError:
            stored, stat = self.get(path)
            return (True, stat.version) if same and same(stored) else (False, -1)
        except NoNodeError:
            return False, -1

    def delete(self, path: str, version: int = -1) -> None:
        self._begin("delete", path)
        self.server.apply([DeleteOp(path, version)], self.session_id)

    def delete_if_exists(self, path: str) -> bool:
        try:
            self.delete(path)
        except NoNodeError:
            return False
        return True

    def delete_recursive(self, path: str) -> None:
        for child in self.server.children(path):
            self.delete_recursive(f"{path}/{child}")
        self.delete_if_exists(path)

    def multi(self, ops: Sequence[Op]) -> list[Any]:
        self._begin("multi", "")
        if self.before_multi is not None:
            hook, self.before_multi = self.before_multi, None
            hook()
        return self.server.apply(ops, self.session_id)
