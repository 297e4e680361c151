"""One server of the ensemble: its state, which may be behind, its clients and their watches."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, Protocol

from kazoo import exceptions as kazoo_errors

from tests.simulation.znode_tree import CHILD, CREATED, DELETED, Happened, Tree, Txn, parent_of
from tests.simulation.zookeeper_links import (
    Connect,
    Connected,
    Connection,
    Ping,
    Pong,
    Range,
    Reply,
    Request,
    ToClient,
    ToServer,
    Waiting,
    World,
)

_READS = ("get", "exists", "children")


def _is_read(message: ToServer) -> bool:
    """Whether a server answers it without the leader."""
    return isinstance(message, Ping) or (isinstance(message, Request) and message.kind in _READS)


class Proposal(NamedTuple):
    """Something that a server asks the leader to decide."""

    server: Server
    connection: Connection
    waiting: Waiting


class Leaders(Protocol):
    """The part of the ensemble that a server uses."""

    world: World

    def submit(self, proposal: Proposal) -> None: ...
    def touch(self, number: int) -> None:
        """A session was heard of."""


class Server:
    """One member. ``is_serving``: it has clients; ``follows``: the leader's transactions reach it.

    ``lag``: how late it applies them, if it is not to be as the others are. ``lingering``:
    connections that clients have left, from which something may still arrive.
    """

    def __init__(self, leaders: Leaders, number: int) -> None:
        self.number = number
        self.tree = Tree()
        self.is_up = True
        self.is_isolated = False
        self.is_serving = False
        self.follows = False
        self.lag: Range | None = None
        self.inbox: deque[Txn] = deque()
        self.connections: dict[Connection, None] = {}
        self.lingering: dict[Connection, None] = {}
        self._leaders = leaders
        self._watches: dict[tuple[bool, str], dict[Connection, None]] = {}

    # Its place in the ensemble

    def join(self, tree: Tree) -> None:
        """Follow the leader from its present state on, and serve clients."""
        self.stop_serving()
        self.tree = tree
        self.follows = self.is_serving = True

    def leave(self) -> None:
        """Nothing of the leader reaches it any more."""
        self.follows = False
        self.inbox.clear()

    def stop_serving(self) -> None:
        """Close all connections."""
        self.is_serving = False
        for connection in list(self.connections):
            connection.close()
        self.lingering.clear()

    def apply_next(self) -> None:
        """Apply one more transaction, then tell watches, then answer who waited for it."""
        if not self.inbox:
            return
        txn = self.inbox.popleft()
        for each in self.tree.apply(txn)[1]:
            self._tell_watches(each)
        for connection in list(self.connections):
            self.answer(connection)
            if txn.ended and connection.session == txn.ended:
                connection.close()

    # Connections

    def receive(self, connection: Connection, message: ToServer) -> None:
        if not connection.to_server:
            self.lingering.pop(connection, None)
        if not self.is_serving:
            connection.close()
            return
        if self.follows:
            self._leaders.touch(connection.session)
        if isinstance(message, Connect) and message.last_zxid > self.tree.zxid:
            connection.close()  # the client knows more than this server
            return
        waiting = Waiting(message)
        connection.waiting.append(waiting)
        if not _is_read(message):
            self._leaders.submit(Proposal(self, connection, waiting))
        self.answer(connection)

    def forget(self, connection: Connection) -> None:
        """The connection ended."""
        self.connections.pop(connection, None)
        if connection.to_server:
            self.lingering[connection] = None
        for key in connection.watched:
            del self._watches[key][connection]
        connection.watched.clear()

    def answer(self, connection: Connection) -> None:
        """Answer what waits, as far as that is possible in its order."""
        while connection.waiting:
            first = connection.waiting[0]
            if not _is_read(first.asked) and (first.zxid is None or first.zxid > self.tree.zxid):
                return
            connection.waiting.popleft()
            connection.send(self._reply(connection, first))

    def _reply(self, connection: Connection, waiting: Waiting) -> ToClient:
        asked = waiting.asked
        if isinstance(asked, Ping):
            return Pong()
        if isinstance(asked, Connect):
            return Connected(connection.session)
        if asked.kind == "close":
            connection.session = 0
        answer = self._read(connection, asked) if asked.kind in _READS else waiting.answer
        return Reply(answer, self.tree.zxid)

    def _read(self, connection: Connection, request: Request) -> object:
        node = self.tree.nodes.get(request.path)
        if request.watch and (node is not None or request.kind == "exists"):
            self._watch(connection, request)
        if node is None:
            return None if request.kind == "exists" else kazoo_errors.NoNodeError()
        if request.kind == "exists":
            return node.stat()
        if request.kind == "get":
            return node.data, node.stat()
        names = list(node.children)
        self._leaders.world.random.shuffle(names)
        return names

    def _watch(self, connection: Connection, request: Request) -> None:
        if connection in self.connections:
            key = request.kind == "children", request.path
            self._watches.setdefault(key, {})[connection] = None
            connection.watched[key] = None

    def _tell_watches(self, happened: Happened) -> None:
        kind, path = happened
        keys = [(False, path)]
        if kind == DELETED:
            keys.append((True, path))
        self._tell(happened, keys)
        if kind in (CREATED, DELETED):
            self._tell(Happened(CHILD, parent_of(path)), [(True, parent_of(path))])

    def _tell(self, happened: Happened, keys: list[tuple[bool, str]]) -> None:
        """One event to each connection that watches, which ends the watch."""
        told: dict[Connection, None] = {}
        for key in keys:
            for connection in self._watches.pop(key, {}):
                told[connection] = None
                connection.watched.pop(key)
        for connection in told:
            connection.send(happened)
