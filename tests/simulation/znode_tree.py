"""The tree of nodes of one ZooKeeper server: a state machine without time, network or sessions.

The leader prepares a transaction against its tree, which either refuses it or resolves it; every
server then applies what was resolved, in the same order, without further checks. So two trees that
applied the same transactions are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kazoo import exceptions as kazoo_errors

from zk.client import CheckOp, DeleteOp, SetOp, Stat

ROOT = "/"

CREATED, DELETED, CHANGED, CHILD = "CREATED", "DELETED", "CHANGED", "CHILD"


class MakeOp(NamedTuple):
    """Create a node; ``owner`` is the session of an ephemeral one, or 0. A ``sequence`` node gets
    the number of its parent's next child at the end of its name."""

    path: str
    data: bytes = b""
    owner: int = 0
    sequence: bool = False


TreeOp = MakeOp | SetOp | DeleteOp | CheckOp
Result = str | Stat | bool | Exception
"""Of an operation: the created path, the new Stat, True, or in a refused transaction an error."""


class Refused(Exception):
    """The operation number ``at`` of a transaction cannot be carried out because of ``error``."""

    def __init__(self, at: int, error: kazoo_errors.KazooException) -> None:
        super().__init__(at, error)
        self.at = at
        self.error = error


class Txn(NamedTuple):
    """A transaction as all servers apply it. ``ended``: the session that it ends, or 0."""

    zxid: int
    millis: int
    ops: tuple[TreeOp, ...]
    ended: int = 0


class Happened(NamedTuple):
    """One change as watches are told of it."""

    kind: str
    path: str


@dataclass
class Znode:
    """``created`` counts the children ever created; ``children`` are the names, in order."""

    data: bytes = b""
    czxid: int = 0
    mzxid: int = 0
    pzxid: int = 0
    ctime: int = 0
    mtime: int = 0
    version: int = 0
    owner: int = 0
    created: int = 0
    children: dict[str, None] = field(default_factory=dict)

    def stat(self) -> Stat:
        return Stat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            ctime=self.ctime,
            mtime=self.mtime,
            version=self.version,
            # The count of creations, shown as that of creations and deletions.
            cversion=2 * self.created - len(self.children),
            aversion=0,
            ephemeral_owner=self.owner,
            data_length=len(self.data),
            num_children=len(self.children),
            pzxid=self.pzxid,
        )


class _Planned:
    """A node as a transaction has left it so far; ``version`` is None if it does not exist."""

    def __init__(self, node: Znode | None) -> None:
        self.version = None if node is None else node.version
        self.owner = 0 if node is None else node.owner
        self.created = 0 if node is None else node.created
        self.children = 0 if node is None else len(node.children)


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or ROOT


class Tree:
    """``zxid``: of the last transaction. ``ephemerals``: the paths of each session, in order."""

    def __init__(self) -> None:
        self.zxid = 0
        self.nodes: dict[str, Znode] = {ROOT: Znode()}
        self.ephemerals: dict[int, dict[str, None]] = {}

    def copy(self) -> Tree:
        """Another tree that is equal and shares nothing."""
        other = Tree()
        other.zxid = self.zxid
        other.nodes = {
            path: replace(node, children=dict(node.children)) for path, node in self.nodes.items()
        }
        other.ephemerals = {session: dict(paths) for session, paths in self.ephemerals.items()}
        return other

    # Before a transaction

    def prepare(self, ops: Sequence[TreeOp]) -> tuple[TreeOp, ...]:
        """The operations with the names of sequence nodes. Raises Refused."""
        planned: dict[str, _Planned] = {}
        resolved: list[TreeOp] = []
        for at, op in enumerate(ops):
            try:
                resolved.append(self._plan(op, planned))
            except kazoo_errors.KazooException as error:
                raise Refused(at, error) from None
        return tuple(resolved)

    def _planned(self, path: str, planned: dict[str, _Planned]) -> _Planned:
        if path not in planned:
            planned[path] = _Planned(self.nodes.get(path))
        return planned[path]

    def _plan(self, op: TreeOp, planned: dict[str, _Planned]) -> TreeOp:
        if isinstance(op, MakeOp):
            return self._plan_creation(op, planned)
        node = self._planned(op.path, planned)
        if node.version is None:
            raise kazoo_errors.NoNodeError
        if op.version not in (-1, node.version):
            raise kazoo_errors.BadVersionError
        if isinstance(op, SetOp):
            node.version += 1
        elif isinstance(op, DeleteOp):
            if op.path == ROOT:
                raise kazoo_errors.BadArgumentsError
            if node.children:
                raise kazoo_errors.NotEmptyError
            planned[op.path] = _Planned(None)
            self._planned(parent_of(op.path), planned).children -= 1
        return op

    def _plan_creation(self, op: MakeOp, planned: dict[str, _Planned]) -> MakeOp:
        parent = self._planned(parent_of(op.path), planned)
        if parent.version is None:
            raise kazoo_errors.NoNodeError
        if op.sequence:
            op = op._replace(path=f"{op.path}{parent.created:010d}", sequence=False)
        node = self._planned(op.path, planned)
        if node.version is not None:
            raise kazoo_errors.NodeExistsError
        if parent.owner:
            raise kazoo_errors.NoChildrenForEphemeralsError
        node.version, node.owner, node.created, node.children = 0, op.owner, 0, 0
        parent.created += 1
        parent.children += 1
        return op

    # The transaction

    def apply(self, txn: Txn) -> tuple[list[Result], list[Happened]]:
        """Carry out a transaction that was prepared; the results, and what watches are told."""
        results: list[Result] = []
        happened: list[Happened] = []
        for op in txn.ops:
            if isinstance(op, MakeOp):
                self._make(op, txn)
                results.append(op.path)
                happened.append(Happened(CREATED, op.path))
            elif isinstance(op, SetOp):
                node = self.nodes[op.path]
                node.data, node.mzxid, node.mtime = op.data, txn.zxid, txn.millis
                node.version += 1
                results.append(node.stat())
                happened.append(Happened(CHANGED, op.path))
            else:
                if isinstance(op, DeleteOp):
                    self._remove(op.path, txn)
                    happened.append(Happened(DELETED, op.path))
                results.append(True)
        self.zxid = txn.zxid
        return results, happened

    def _make(self, op: MakeOp, txn: Txn) -> None:
        zxid, millis = txn.zxid, txn.millis
        self.nodes[op.path] = Znode(op.data, zxid, zxid, zxid, millis, millis, owner=op.owner)
        parent = self.nodes[parent_of(op.path)]
        parent.children[op.path.rpartition("/")[2]] = None
        parent.created += 1
        parent.pzxid = zxid
        if op.owner:
            self.ephemerals.setdefault(op.owner, {})[op.path] = None

    def _remove(self, path: str, txn: Txn) -> None:
        node = self.nodes.pop(path)
        parent = self.nodes[parent_of(path)]
        del parent.children[path.rpartition("/")[2]]
        parent.pzxid = txn.zxid
        if node.owner:
            owned = self.ephemerals[node.owner]
            del owned[path]
            if not owned:
                del self.ephemerals[node.owner]


def refused_results(count: int, refused: Refused) -> list[Result]:
    """Of a transaction of ``count`` operations, as kazoo gives them."""
    before = [kazoo_errors.RolledBackError() for _ in range(refused.at)]
    after = [kazoo_errors.RuntimeInconsistency() for _ in range(count - refused.at - 1)]
    return [*before, refused.error, *after]
