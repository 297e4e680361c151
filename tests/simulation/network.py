"""Connections that carry bytes between simulated processes, late, in pieces, or not at all.

Bytes of one direction of a connection arrive in order, in pieces that the seed cuts. Directions and
connections overtake each other. A ``Link`` is the way from one host to another: its latency, and
whether it is down. Bytes sent over a link that is down arrive when it is up again; if that takes
too long, the sender's wait runs into its timeout, as with TCP. A connection can be cut, in the
middle of what is under way. The receiver of bytes that nobody reads makes the sender wait.

The processes are those of ``SimulatedRuntime``; the end of one resets its connections.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable
from functools import partial

from tests.simulation.moments import Moments
from tests.simulation.runtime import SimulatedRuntime
from tests.simulation.scheduler import SECOND, Scheduler, SimulatedTask

WINDOW = 64 * 1024
"""So many bytes at most are under way or not read, in each direction of a connection."""
_FASTEST, _SLOWEST = 50, 2_000
_IN_PIECES = 0.25
_MOST_CUTS = 2
_FIRST_RETRY_SECONDS = 1.0
_KIND_OF_REQUEST = slice(4, 6)
_MARKERS = (27).to_bytes(2, "big")
"""The kind of requests that tell partitions how transactions have ended."""


class Link:
    """The way from one host to another. Latencies in microseconds; ``is_down``: nothing arrives."""

    def __init__(self) -> None:
        self.fastest, self.slowest = _FASTEST, _SLOWEST
        self.is_down = False
        self.held: list[Callable[[], object]] = []


class Direction:
    """One direction of a connection: what is under way, and what has arrived and is not read."""

    def __init__(self, network: SimulatedNetwork, source: str, target: str, name: str) -> None:
        self.arrived = bytearray()
        self.under_way = 0
        self.has_ended = False  # the reader sees the end after what has arrived
        self.is_reset = False  # the reader gets an error
        self.readers: list[SimulatedTask] = []
        self.writers: list[SimulatedTask] = []
        self.on_end: Callable[[], object] | None = None
        self.name = name
        self._network = network
        self._way = source, target
        self._link = network.link(source, target)
        self._queue: deque[Callable[[], object]] = deque()  # what is under way, in order
        self._last = 0  # when the last of it arrives

    @property
    def room(self) -> int:
        return WINDOW - self.under_way - len(self.arrived)

    def carry(self, data: bytes) -> None:
        """Send bytes, of which there must be ``room``."""
        rng = self._network.scheduler.rng
        if data[_KIND_OF_REQUEST] == _MARKERS:
            self._network.sends_markers(self._way)
        self.under_way += len(data)
        if rng.random() >= _IN_PIECES:
            self._send(partial(self._arrive, data))
            return
        cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randint(1, _MOST_CUTS)))
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            if start < end:
                self._send(partial(self._arrive, data[start:end]))

    def end(self, *, reset: bool = False) -> None:
        """Have the reader see the end, or an error."""
        self._send(partial(self.ended, reset))

    def cut(self) -> None:
        """Nothing that is under way arrives any more; the reader gets an error at once."""
        self.ended(True)

    def _send(self, act: Callable[[], object]) -> None:
        self._queue.append(act)
        self._move()

    def _move(self) -> None:
        """Have the first of the queue arrive in a while; called once for each."""
        link = self._link
        if link.is_down:
            link.held.append(self._move)
            return
        scheduler = self._network.scheduler
        latency = scheduler.rng.randint(link.fastest, link.slowest)
        self._last = max(self._last, scheduler.now + latency)
        scheduler.at(self._last, self._reach)

    def _reach(self) -> None:
        link = self._link
        if link.is_down:  # since it was sent
            link.held.append(self._move)
        else:
            self._queue.popleft()()

    def _arrive(self, data: bytes) -> None:
        self._network.arrivals.happened()
        if self.has_ended:
            return
        self.under_way -= len(data)
        self.arrived += data
        self._network.scheduler.note(f"{len(data)} bytes, crc {zlib.crc32(data):08x}", self.name)
        self._wake(self.readers)

    def ended(self, reset: bool) -> None:
        if self.has_ended:
            return
        self._network.scheduler.note("is reset" if reset else "ends", self.name)
        self.has_ended, self.is_reset = True, reset
        self._wake(self.readers)
        self._wake(self.writers)
        if self.on_end is not None:
            self.on_end()

    def took(self) -> None:
        """Some of what had arrived was read."""
        self._wake(self.writers)

    def _wake(self, tasks: list[SimulatedTask]) -> None:
        if tasks:
            waiting = list(tasks)
            tasks.clear()
            for task in waiting:
                self._network.scheduler.wake(task)


class SimulatedSocket:
    """kafka08.runtime.Socket: one end of a connection, used by the process of ``runtime``.

    ``timeout``: seconds, None for as long as it takes.
    """

    def __init__(
        self,
        runtime: SimulatedRuntime,
        incoming: Direction,
        outgoing: Direction,
        timeout: float | None,
    ) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self._runtime = runtime
        self._timeout = timeout
        self._is_closed = False

    def sendall(self, data: bytes | bytearray | memoryview, /) -> None:
        left = memoryview(bytes(data))
        while left:
            self._check()
            if self.incoming.is_reset:
                raise BrokenPipeError(f"{self.outgoing.name} is closed")
            if self.outgoing.has_ended:  # the peer has closed, which may not be known here yet
                return
            room = self.outgoing.room
            if room <= 0:
                self._wait(self.outgoing.writers, "room to send")
                continue
            self.outgoing.carry(bytes(left[:room]))
            left = left[room:]

    def recv(self, size: int, /) -> bytes:
        data = bytearray(size)
        return bytes(data[: self.recv_into(data)])

    def recv_into(self, buffer: bytearray | memoryview, /) -> int:
        pipe = self.incoming
        while True:
            self._check()
            if pipe.is_reset:
                raise ConnectionResetError(f"{pipe.name} was reset")
            if pipe.arrived:
                count = min(len(buffer), len(pipe.arrived))
                buffer[:count] = pipe.arrived[:count]
                del pipe.arrived[:count]
                pipe.took()
                return count
            if pipe.has_ended:
                return 0
            self._wait(pipe.readers, "bytes")

    def _check(self) -> None:
        self._runtime.check()
        if self._is_closed:
            raise OSError(9, "Bad file descriptor")

    def _wait(self, tasks: list[SimulatedTask], what: str) -> None:
        what = f"{what} of {self.incoming.name}"
        if not self._runtime.wait_among(tasks, what, self._timeout):
            raise TimeoutError(f"no {what} in time")

    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...

    def shutdown(self, how: int, /) -> None:
        """Both directions, whatever ``how`` says."""
        if not self._runtime.is_dead:
            if not self.outgoing.has_ended:
                self.outgoing.end()
            self.incoming.ended(False)

    def close(self) -> None:
        self.shutdown(2)
        self._is_closed = True


class Acceptor:
    """A process that accepts connections. ``accept`` is called with each and the peer's address; it
    must not wait."""

    def __init__(
        self, runtime: SimulatedRuntime, accept: Callable[[SimulatedSocket, str], object]
    ) -> None:
        self.runtime = runtime
        self.accept = accept


class SimulatedConnection:
    """Two pipes between the processes of two runtimes."""

    def __init__(
        self, network: SimulatedNetwork, client: SimulatedRuntime, server: SimulatedRuntime
    ) -> None:
        self.ends = (client, server)
        network.connections += 1
        number = network.connections
        self.there = Direction(
            network, client.name, server.name, f"{client.name}>{server.name}#{number}"
        )
        self.back = Direction(
            network, server.name, client.name, f"{server.name}>{client.name}#{number}"
        )

    @property
    def is_over(self) -> bool:
        return self.there.has_ended and self.back.has_ended

    def cut(self) -> None:
        self.there.cut()
        self.back.cut()


class SimulatedNetwork:
    """All hosts and what is between them. ``arrivals``: of bytes. ``markers``: the moments in which
    a coordinator sends markers of transactions to a leader on another host; ``marker_way``: the
    last one's hosts."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.connections = 0
        self.arrivals = Moments()
        self.markers = Moments()
        self.marker_way: tuple[str, str] | None = None
        self._dark: set[str] = set()  # hosts whose machines are off
        self._listeners: dict[tuple[str, int], Acceptor] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._live: list[SimulatedConnection] = []

    def link(self, source: str, target: str) -> Link:
        way = (source, target)
        if way not in self._links:
            self._links[way] = Link()
        return self._links[way]

    def sends_markers(self, way: tuple[str, str]) -> None:
        """Markers are about to be on their way."""
        self.marker_way = way
        self.markers.happened()

    # Listening and connecting

    def listen(self, port: int, listener: Acceptor) -> None:
        """Raises OSError if the port is in use."""
        address = (listener.runtime.name, port)
        known = self._listeners.get(address)
        if known is not None and not known.runtime.is_dead:
            raise OSError(98, f"Address already in use: {address}")
        self._listeners[address] = listener
        self._dark.discard(listener.runtime.name)

    def stop_listening(self, port: int, listener: Acceptor) -> None:
        if self._listeners.get((listener.runtime.name, port)) is listener:
            del self._listeners[listener.runtime.name, port]

    def connect(
        self, runtime: SimulatedRuntime, host: str, port: int, timeout: float
    ) -> SimulatedSocket:
        """As kafka08.runtime.SocketConnector: a way there and a way back, tried again and again as
        by TCP while one of them is down."""
        there, back = self.link(runtime.name, host), self.link(host, runtime.name)
        scheduler = self.scheduler
        latency = scheduler.rng.randint(there.fastest + back.fastest, there.slowest + back.slowest)
        left, pause = timeout - latency / SECOND, _FIRST_RETRY_SECONDS
        while there.is_down or back.is_down or host in self._dark:
            runtime.sleep(min(pause, timeout))
            left, pause = left - pause, 2 * pause
            if left <= 0:
                raise TimeoutError(f"{host}:{port} does not answer")
        runtime.sleep(latency / SECOND)
        listener = self._listeners.get((host, port))
        if listener is None or listener.runtime.is_dead:
            raise ConnectionRefusedError(111, f"Connection refused: {host}:{port}")
        made = SimulatedConnection(self, runtime, listener.runtime)
        self._live = [each for each in self._live if not each.is_over]
        self._live.append(made)
        scheduler.note(f"connects to {host}:{port}")
        accepted = SimulatedSocket(listener.runtime, made.there, made.back, None)
        listener.accept(accepted, f"{runtime.name}:{40_000 + self.connections}")
        return SimulatedSocket(runtime, made.back, made.there, timeout)

    # Faults

    def partition(self, source: str, target: str) -> None:
        """Nothing gets from one host to the other; the way back stays as it is."""
        self.scheduler.note(f"from {source} to {target} nothing arrives", "network")
        self.link(source, target).is_down = True

    def heal(self, source: str, target: str) -> None:
        link = self.link(source, target)
        if link.is_down:
            self.scheduler.note(f"from {source} to {target} all arrives", "network")
            link.is_down = False
            held, link.held = link.held, []
            for send in held:
                send()

    def heal_all(self) -> None:
        """Every way is up and fast, and nothing is planned."""
        self.arrivals.clear()
        self.markers.clear()
        for (source, target), link in self._links.items():
            link.fastest, link.slowest = _FASTEST, _SLOWEST
            self.heal(source, target)

    def cut_one(self) -> None:
        """Cut a connection that the seed picks, in the middle of what is under way."""
        self._live = [each for each in self._live if not each.is_over]
        if self._live:
            chosen = self.scheduler.rng.choice(self._live)
            self.scheduler.note(f"{chosen.there.name} is cut", "network")
            chosen.cut()

    def cut_all(self, host: str) -> None:
        """Cut each connection of a host, as when its network is started again."""
        for each in self._live:
            if not each.is_over and any(end.name == host for end in each.ends):
                self.scheduler.note(f"{each.there.name} is cut", "network")
                each.cut()

    def died(self, runtime: SimulatedRuntime, *, silently: bool = False) -> None:
        """A process has died. The system resets its connections; if the machine has died with it,
        ``silently``, the others do not hear of it until they have sent something and waited."""
        if silently:
            self._dark.add(runtime.name)
        for each in self._live:
            if runtime in each.ends and not each.is_over:
                outgoing = each.there if each.ends[0] is runtime else each.back
                incoming = each.back if each.ends[0] is runtime else each.there
                incoming.ended(True)
                if not silently:
                    outgoing.end(reset=True)
