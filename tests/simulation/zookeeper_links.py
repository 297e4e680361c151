"""Between a client of ZooKeeper and a server: messages, and connections that carry them in order.

A connection is two lanes, each of which delivers its messages in the order in which they were sent.
While a lane is cut its messages wait, as TCP sends them again. At the end of a connection what is
on its way to the server may still arrive in part: the client cannot know what was carried out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Generic, NamedTuple, Protocol, TypeVar

from tests.simulation.znode_tree import Happened, TreeOp

M = TypeVar("M")
Range = tuple[float, float]
"""The least and the most seconds that something takes."""


class Timer(Protocol):
    def cancel(self) -> object: ...


class Schedule(Protocol):
    """``now`` in seconds. Calls that are due at the same time may run in any order."""

    def now(self) -> float: ...
    def call_later(self, seconds: float, function: Callable[[], object], /) -> Timer: ...


class Timing(NamedTuple):
    """How long everything takes.

    ``latency``: of each message. ``commit``: until a quorum has a transaction. ``lag``: until a
    follower has applied it. ``election``: until there is a new leader. ``joining``: until a server
    has caught up with the leader. ``notice``: until a server that the others cannot reach stops
    serving its clients. ``tick``: how much longer than its timeout a session may live.
    """

    latency: Range = (0.0002, 0.003)
    commit: Range = (0.0005, 0.008)
    lag: Range = (0.0, 0.02)
    election: Range = (0.2, 2.0)
    joining: Range = (0.05, 0.5)
    notice: Range = (0.5, 10.0)
    tick: Range = (0.0, 2.0)


class World:
    """Time and chance: everything that is not decided by a message."""

    def __init__(self, schedule: Schedule, random: Random, timing: Timing) -> None:
        self.schedule = schedule
        self.random = random
        self.timing = timing

    def later(self, between: Range, function: Callable[[], object]) -> Timer:
        return self.schedule.call_later(self.random.uniform(*between), function)


# To the server


class Connect(NamedTuple):
    """``session`` 0 asks for a new one; ``last_zxid``: the newest that the client has seen."""

    session: int
    last_zxid: int
    timeout_s: float


class Ping(NamedTuple):
    """Keeps the session; answered with a Pong."""


class Request(NamedTuple):
    """``kind`` is get, exists, children, write, multi, sync or close. ``watch``: a read arms one.
    ``path`` is that of a read or a sync."""

    kind: str
    path: str = ""
    watch: bool = False
    ops: tuple[TreeOp, ...] = ()


ToServer = Connect | Ping | Request

# To the client


class Connected(NamedTuple):
    """``session`` 0: the one that was asked for has ended."""

    session: int


class Pong(NamedTuple):
    pass


class Reply(NamedTuple):
    """To the oldest request without one. ``answer`` is the result or an exception of kazoo."""

    answer: object
    zxid: int


class End(NamedTuple):
    """The server closed the connection."""


ToClient = Connected | Pong | Reply | Happened | End


class Lane(Generic[M]):
    """Messages in one direction. Nothing is delivered while ``is_cut`` is true."""

    def __init__(self, world: World, deliver: Callable[[M], object], is_cut: bool) -> None:
        self._world = world
        self._deliver = deliver
        self._queue: deque[M] = deque()
        self._held = 0
        self.is_cut = is_cut

    def __len__(self) -> int:
        """How many messages are on their way."""
        return len(self._queue)

    def send(self, message: M) -> None:
        self._queue.append(message)
        self._world.later(self._world.timing.latency, self._arrive)

    def _arrive(self) -> None:
        """The next message, whichever was the reason for this call."""
        if self.is_cut:
            self._held += 1
        elif self._queue:
            self._deliver(self._queue.popleft())

    def cut(self, is_cut: bool) -> None:
        self.is_cut = is_cut
        held, self._held = self._held, 0
        for _ in range(held):
            self._world.later(self._world.timing.latency, self._arrive)

    def lose(self, everything: bool = False) -> None:
        """Lose all messages that are on their way, or the last ones: some, all or none."""
        count = len(self._queue)
        for _ in range(count if everything else self._world.random.randint(0, count)):
            self._queue.pop()


class Client(Protocol):
    """``host`` is where it runs, as cuts name it."""

    host: str

    @property
    def connected(self) -> bool: ...
    def receive(self, connection: Connection, message: ToClient) -> None: ...
    def kill(self) -> None: ...


class Service(Protocol):
    """``number`` is that of the server, as cuts name it."""

    number: int

    def receive(self, connection: Connection, message: ToServer) -> None: ...
    def forget(self, connection: Connection) -> None: ...


class Waiting:
    """A message that a server has not answered. ``zxid``: the server must have come so far first;
    None: the leader has not decided."""

    def __init__(self, asked: ToServer) -> None:
        self.asked = asked
        self.answer: object = None
        self.zxid: int | None = None


class Connection:
    """``session``: the one it serves, 0 before it is known. ``waiting``: the messages that came,
    in order. ``watched``: what the server has noted for this connection."""

    def __init__(self, world: World, client: Client, service: Service, cut: tuple[bool, bool]):
        """``cut``: whether the way to the server, and the way back, are cut now."""
        self.client = client
        self.service = service
        self.session = 0
        self.is_open = True
        self.has_client = True
        self.waiting: deque[Waiting] = deque()
        self.watched: dict[tuple[bool, str], None] = {}
        self.to_server: Lane[ToServer] = Lane(world, self._sent, cut[0])
        self.to_client: Lane[ToClient] = Lane(world, self._received, cut[1])

    def _sent(self, message: ToServer) -> None:
        self.service.receive(self, message)

    def _received(self, message: ToClient) -> None:
        if self.has_client:
            self.client.receive(self, message)

    def send(self, message: ToClient) -> None:
        """From the server."""
        if self.is_open:
            self.to_client.send(message)

    def leave(self) -> None:
        """The client ends it. Some or all that it sent before arrives."""
        self.has_client = False
        if self.is_open:
            self.is_open = False
            self.to_server.lose()
            self.service.forget(self)

    def close(self) -> None:
        """The server ends it. The client is told, after some or all that was sent before."""
        if self.is_open:
            self.is_open = False
            self.to_server.lose(everything=True)
            self.to_client.lose()
            self.to_client.send(End())
            self.service.forget(self)
