"""A ZooKeeper ensemble on simulated time, with the promises of the real one and no more.

Writes go through the leader, one after the other, once a quorum has them. Each server applies them
in that order but late, and answers reads from what it has applied. A client that was answered from
one state is never served from an older one in the same session. Requests of a connection are
answered in order; an event of a watch is sent before any answer from the state that caused it. A
server that is cut off from the others does not know it for a while: it goes on to answer reads.
Sessions end when the leader has not heard of them for their timeout; without a quorum none ends,
and a new leader gives all of them their full time. If a leader is lost, each write that was
proposed and not answered either survives or does not.

The model is passive: time and chance are given. Access control lists are not modelled. The contract
in tests/zk/contract holds for it and for the real ZooKeeper.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random

from tests.simulation.moments import Moments
from tests.simulation.znode_tree import MakeOp, Refused, Result, Tree, TreeOp, Txn, refused_results
from tests.simulation.zookeeper_links import (
    Client,
    Connect,
    Connection,
    Request,
    Schedule,
    Timer,
    Timing,
    World,
)
from tests.simulation.zookeeper_server import Proposal, Server
from zk.client import DeleteOp

OF_THE_SESSION = -1
"""The owner in a MakeOp: the session that asks for it."""

DEFAULT_TIMING = Timing()
_NOTICED_SECONDS = 6.0
"""The timeout of a session: who is not answered for so long knows that it is cut off."""


class EnsembleSession:
    """A session of a host as the leader knows it; ``touched``: when it was last heard of."""

    def __init__(
        self, number: int, host: str, timeout_s: float, owner: Server, touched: float
    ) -> None:
        self.number = number
        self.host = host
        self.timeout_s = timeout_s
        self.owner = owner
        self.touched = touched
        self.timer: Timer | None = None


class Ensemble:
    """``servers`` by number. ``note`` is given a line for each event that a person may look for,
    ``committed`` each transaction. ``decisions``: those of the leader.

    Faults: ``stop`` and ``start`` a server, ``isolate`` it from the others and let it ``rejoin``;
    ``cut`` and ``heal`` the ways between a host and servers, ``reset`` its connections; ``expire``
    a session; ``kill`` the clients of a host; ``delete`` or ``make`` a node.
    """

    def __init__(
        self,
        schedule: Schedule,
        random: Random,
        *,
        servers: int = 3,
        timing: Timing = DEFAULT_TIMING,
        note: Callable[[str], object] = lambda line: None,
        committed: Callable[[Txn], object] = lambda txn: None,
    ) -> None:
        self.world = World(schedule, random, timing)
        self.servers = [Server(self, number) for number in range(servers)]
        self.leader: Server | None = None
        self.tree = Tree()
        self.sessions: dict[int, EnsembleSession] = {}
        self.clients: dict[Client, None] = {}
        self.decisions = Moments()
        self._note = note
        self._committed = committed
        self._last_ends: dict[str, float] = {}
        self._last_changes: dict[str, float] = {}
        self._cuts: dict[tuple[str, int], tuple[bool, bool]] = {}
        self._epoch = 0
        self._sessions_made = 0
        self._proposals: deque[Proposal] = deque()
        self._survivors: list[Proposal] = []
        self._is_electing = False
        self._lead(self.servers[0])
        for server in self.servers:
            server.join(self.tree.copy())

    # Clients

    def connect(self, client: Client, number: int) -> Connection | None:
        """A connection, which carries nothing while the way is cut; None if it was refused."""
        server = self.servers[number]
        cut = self._cuts.get((client.host, number), (False, False))
        if not server.is_serving and cut == (False, False):
            return None
        connection = Connection(self.world, client, server, cut)
        server.connections[connection] = None
        return connection

    @property
    def serves_all(self) -> bool:
        """Whether each client has a connection."""
        return all(each.connected for each in self.clients)

    def seconds_without(self, host: str) -> float:
        """How long a host has had no session, and has had the time to see that it is not answered
        any more; 0 if it has one, or never had."""
        if host not in self._last_ends:
            return 0.0
        seen = self._last_changes.get(host, 0.0) + _NOTICED_SECONDS
        return max(self.world.schedule.now() - max(self._last_ends[host], seen), 0.0)

    def touch(self, number: int) -> None:
        session = self.sessions.get(number)
        if session is not None:
            session.touched = self.world.schedule.now()

    # Faults

    def stop(self, number: int) -> None:
        """A server's process ends."""
        server = self.servers[number]
        server.is_up = False
        server.leave()
        server.stop_serving()
        self._review()

    def start(self, number: int) -> None:
        self.servers[number].is_up = True
        self._review()

    def isolate(self, number: int) -> None:
        """The other servers cannot reach this one. Clients can."""
        self.servers[number].is_isolated = True
        self._review()

    def rejoin(self, number: int) -> None:
        self.servers[number].is_isolated = False
        self._review()

    def cut(
        self, host: str, number: int | None = None, *, there: bool = True, back: bool = True
    ) -> None:
        """Hold what a host sends to a server (``there``), and what that sends to it (``back``)."""
        self._set_cut(host, number, (there, back))

    def heal(self, host: str, number: int | None = None) -> None:
        self._set_cut(host, number, (False, False))

    def _set_cut(self, host: str, number: int | None, cut: tuple[bool, bool]) -> None:
        self._last_changes[host] = self.world.schedule.now()
        for server in self.servers:
            if number is None or server.number == number:
                self._cuts[host, server.number] = cut
                lingering = [each for each in server.lingering if each.client.host == host]
                for connection in [*self._of_host(host, server), *lingering]:
                    connection.to_server.cut(cut[0])
                    connection.to_client.cut(cut[1])

    def reset(self, host: str) -> None:
        """End the connections of a host."""
        for server in self.servers:
            for connection in self._of_host(host, server):
                connection.close()

    def _of_host(self, host: str, server: Server) -> list[Connection]:
        return [each for each in server.connections if each.client.host == host]

    def kill(self, host: str) -> None:
        """The processes of a host end. Their sessions go on until their time is over."""
        for client in [each for each in self.clients if each.host == host]:
            del self.clients[client]
            client.kill()

    def expire(self, number: int) -> None:
        """End a session now, as if it had not been heard of. Nothing without a leader."""
        if self.leader is not None and number in self.sessions:
            self._end(number)

    def expire_all(self, host: str) -> None:
        """End the sessions of a host now."""
        for number in [each.number for each in self.sessions.values() if each.host == host]:
            self.expire(number)

    def delete(self, path: str) -> None:
        """A node, now, as somebody else does it. Nothing without it, or without a leader."""
        if self.leader is not None and path in self.tree.nodes:
            self._commit((DeleteOp(path),))

    def make(self, path: str, data: bytes) -> None:
        """A node, in the same way. Nothing if there is one."""
        if self.leader is not None and path not in self.tree.nodes:
            self._commit((MakeOp(path, data),))

    def is_cut(self, host: str) -> bool:
        """Whether nothing gets from a host to any server, or back."""
        return all(self._cuts.get((host, each.number)) == (True, True) for each in self.servers)

    def end_faults(self) -> None:
        """All servers are there and reach each other and all hosts."""
        self.decisions.clear()
        for host, _ in list(self._cuts):
            self.heal(host)
        for server in self.servers:
            server.lag = None
            self.start(server.number)
            self.rejoin(server.number)

    # Leaders

    def _reachable(self) -> list[Server]:
        """The servers that can form a quorum; none if they are too few."""
        found = [each for each in self.servers if each.is_up and not each.is_isolated]
        return found if 2 * len(found) > len(self.servers) else []

    @property
    def has_quorum(self) -> bool:
        return bool(self._reachable())

    def _review(self) -> None:
        """Act on a server that came or went."""
        reachable = self._reachable()
        if self.leader is not None and self.leader not in reachable:
            self._lose_leader()
        for server in self.servers:
            if self.leader is None or server not in reachable:
                if server.follows:
                    server.leave()
                    self.world.later(self.world.timing.notice, partial(self._noticed, server))
            elif not server.follows:
                self.world.later(self.world.timing.joining, partial(self._join, server))
        if reachable and self.leader is None and not self._is_electing:
            self._is_electing = True
            self.world.later(self.world.timing.election, self._elect)

    def _noticed(self, server: Server) -> None:
        if not server.follows:
            server.stop_serving()

    def _join(self, server: Server) -> None:
        if self.leader is not None and not server.follows and server in self._reachable():
            server.join(self.tree.copy())
            self._note(f"server {server.number} follows")

    def _lose_leader(self) -> None:
        """The first of what was proposed has reached servers that will elect; the rest is lost."""
        self._note("no leader")
        self.leader = None
        survive = self.world.random.randint(0, len(self._proposals))
        self._survivors += list(self._proposals)[:survive]
        self._proposals.clear()

    def _elect(self) -> None:
        self._is_electing = False
        reachable = self._reachable()
        if not reachable:
            return
        for server in reachable:
            server.leave()
            server.stop_serving()
        self._lead(self.world.random.choice(reachable))
        survivors, self._survivors = self._survivors, []
        for proposal in survivors:
            self._decide(proposal)
        assert self.leader is not None
        self.leader.join(self.tree.copy())
        self._review()

    def _lead(self, server: Server) -> None:
        self._epoch += 1
        self.tree.zxid = self._epoch << 32
        self.leader = server
        self._note(f"leader {server.number} epoch {self._epoch}")
        for session in self.sessions.values():
            session.touched = self.world.schedule.now()
            self._watch_over(session)

    # Decisions of the leader

    def submit(self, proposal: Proposal) -> None:
        """Lost if the server does not reach the leader: its connection will end."""
        if self.leader is not None and proposal.server.follows:
            self._proposals.append(proposal)
            self.world.later(self.world.timing.commit, self._commit_next)

    def _commit_next(self) -> None:
        self.decisions.happened()
        if self._proposals:
            self._decide(self._proposals.popleft())

    def _decide(self, proposal: Proposal) -> None:
        server, connection, waiting = proposal
        asked = waiting.asked
        session = self.sessions.get(connection.session)
        if isinstance(asked, Connect):
            waiting.zxid = self._open(server, connection, asked)
        elif session is None or session.owner is not server:
            connection.close()  # it ended, or its client went to another server
            return
        elif isinstance(asked, Request):
            waiting.answer = self._answer(asked, session.number)
            waiting.zxid = self.tree.zxid
        server.answer(connection)

    def _answer(self, request: Request, session: int) -> object:
        if request.kind == "close":
            self._end(session)
            return True
        return request.path if request.kind == "sync" else self._write(request, session)

    def _write(self, request: Request, session: int) -> object:
        """The result, or an exception. The transaction is not applied by any server yet."""
        ops = [_owned(op, session) for op in request.ops]
        try:
            prepared = self.tree.prepare(ops)
        except Refused as refused:
            is_multi = request.kind == "multi"
            return refused_results(len(ops), refused) if is_multi else refused.error
        results = self._commit(prepared)
        return results if request.kind == "multi" else results[0]

    def _commit(self, ops: tuple[TreeOp, ...] = (), ended: int = 0) -> list[Result]:
        millis = int(self.world.schedule.now() * 1000)
        txn = Txn(self.tree.zxid + 1, millis, ops, ended)
        results = self.tree.apply(txn)[0]
        self._committed(txn)
        for server in self.servers:
            if server.follows:
                server.inbox.append(txn)
                lag = (0.0, 0.0) if server is self.leader else self.world.timing.lag
                self.world.later(server.lag or lag, server.apply_next)
        return results

    # Sessions

    def _open(self, server: Server, connection: Connection, asked: Connect) -> int:
        """The transaction that the server must have applied first. A new session is one itself, so
        its server knows everything that came before."""
        now = self.world.schedule.now()
        if asked.session == 0:
            self._sessions_made += 1
            connection.session = ((server.number + 1) << 56) + self._sessions_made
            host = connection.client.host
            session = EnsembleSession(connection.session, host, asked.timeout_s, server, now)
            self.sessions[session.number] = session
            self._last_ends.pop(host, None)
            self._watch_over(session)
            self._commit()
            return self.tree.zxid
        if asked.session in self.sessions:
            connection.session = asked.session
            self.sessions[asked.session].owner = server
            self.touch(asked.session)
        return 0

    def _watch_over(self, session: EnsembleSession) -> None:
        """Look again when the session may have ended."""
        if session.timer is not None:
            session.timer.cancel()
        left = session.touched + session.timeout_s - self.world.schedule.now()
        least, most = self.world.timing.tick
        session.timer = self.world.later(
            (left + least, left + most), partial(self._expire_silent, session)
        )

    def _expire_silent(self, session: EnsembleSession) -> None:
        if self.leader is None or session.number not in self.sessions:
            return
        if session.touched + session.timeout_s > self.world.schedule.now():
            self._watch_over(session)
        else:
            self._end(session.number)

    def _end(self, number: int) -> None:
        """A transaction that removes the session's ephemeral nodes, in any order."""
        session = self.sessions.pop(number)
        if session.timer is not None:
            session.timer.cancel()
        if not any(each.host == session.host for each in self.sessions.values()):
            self._last_ends[session.host] = self.world.schedule.now()
        self._note(f"session {number:#x} ends")
        paths = list(self.tree.ephemerals.get(number, {}))
        self.world.random.shuffle(paths)
        self._commit(tuple(DeleteOp(path) for path in paths), number)


def _owned(op: TreeOp, session: int) -> TreeOp:
    if isinstance(op, MakeOp) and op.owner == OF_THE_SESSION:
        return op._replace(owner=session)
    return op
