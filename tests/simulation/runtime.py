"""kafka08.runtime.Runtime on a simulated scheduler: one for each process, with clocks of its own.

All waits of a process pass through here, and none of them takes real time. A call that blocks a
thread is made at one moment between two waits: the seed decides how long it queued and took.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, TypeVar

from kafka08.runtime import Clock, Empty, Full, Socket
from tests.simulation.scheduler import SECOND, Process, ProcessKilled, Scheduler, SimulatedTask

T = TypeVar("T")

EPOCH_MS = 1_400_000_000_000
_LONGEST_S = 1e9
# A call on another thread begins and ends so many microseconds late at most.
_CALL_MICROS = 300


class Connects(Protocol):
    """The network, as a runtime sees it."""

    def connect(self, runtime: SimulatedRuntime, host: str, port: int, timeout: float) -> Socket:
        """As kafka08.runtime.SocketConnector."""


class SimulatedClock:
    """The clocks of one machine. ``rate``: how fast they go, 1.001 gains 86 s a day; ``drift``
    changes it. ``jump`` moves the wall clock alone, as a correction does."""

    def __init__(self, scheduler: Scheduler, offset_ms: int = 0, rate: float = 1.0) -> None:
        self.rate = rate
        self._scheduler = scheduler
        self._offset_ms = EPOCH_MS + offset_ms
        self._since = 0  # the rate is that of now
        self._shown = 0.0  # microseconds then

    def drift(self, rate: float) -> None:
        self._shown, self._since = self._micros(), self._scheduler.now
        self.rate = rate

    def _micros(self) -> float:
        return self._shown + (self._scheduler.now - self._since) * self.rate

    def jump(self, millis: int) -> None:
        self._offset_ms += millis

    def millis(self) -> int:
        return self._offset_ms + int(self._micros()) // 1000

    def monotonic(self) -> float:
        return self._micros() / SECOND

    def micros(self, seconds: float) -> int:
        """The true time in which this clock shows that ``seconds`` have passed."""
        return max(round(min(seconds, _LONGEST_S) * SECOND / self.rate), 0)


def wake_one(scheduler: Scheduler, waiters: list[SimulatedTask]) -> None:
    """Wake the first that still waits, and has not just run out of time."""
    while waiters:
        if scheduler.wake(waiters.pop(0)):
            return


class SimulatedEvent:
    def __init__(self, runtime: SimulatedRuntime) -> None:
        self._runtime = runtime
        self._flag = False
        self._waiters: list[SimulatedTask] = []

    def set(self) -> None:
        self._flag = True
        waiters, self._waiters = self._waiters, []
        for task in waiters:
            self._runtime.scheduler.wake(task)

    def clear(self) -> None:
        self._flag = False

    def is_set(self) -> bool:
        return self._flag

    def wait(self, timeout: float | None = None) -> bool:
        """Wakes also if the event was cleared again since it was set."""
        self._runtime.check()
        if self._flag:
            return True
        return self._runtime.wait_among(self._waiters, "an event", timeout) or self._flag


class SimulatedLock:
    """Re-entrant."""

    def __init__(self, runtime: SimulatedRuntime) -> None:
        self._runtime = runtime
        self._owner: SimulatedTask | None = None
        self._depth = 0
        self._waiters: list[SimulatedTask] = []

    def acquire(self, blocking: bool = True) -> bool:
        me = self._runtime.scheduler.current
        while self._owner is not None and self._owner is not me:
            if not blocking:
                return False
            self._runtime.wait_among(self._waiters, f"the lock of {self._owner}", None)
        self._owner = me
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            wake_one(self._runtime.scheduler, self._waiters)

    def __enter__(self) -> object:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.release()


class SimulatedQueue:
    """kafka08.runtime.Queue. A task that was woken may find that another was faster, and waits
    on."""

    def __init__(self, runtime: SimulatedRuntime, maxsize: int) -> None:
        self._runtime = runtime
        self._maxsize = maxsize
        self._items: deque[Any] = deque()
        self._getters: list[SimulatedTask] = []
        self._putters: list[SimulatedTask] = []

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if self._maxsize:
            self._await(
                lambda: len(self._items) < self._maxsize, self._putters, Full, block, timeout
            )
        self._items.append(item)
        wake_one(self._runtime.scheduler, self._getters)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        self._await(lambda: bool(self._items), self._getters, Empty, block, timeout)
        item = self._items.popleft()
        wake_one(self._runtime.scheduler, self._putters)
        return item

    def _await(
        self,
        ready: Callable[[], bool],
        waiters: list[SimulatedTask],
        failure: type[Exception],
        block: bool,
        timeout: float | None,
    ) -> None:
        runtime = self._runtime
        runtime.check()
        until = None if timeout is None else runtime.clock.monotonic() + timeout
        while not ready():
            left = None if until is None else until - runtime.clock.monotonic()
            if not block or (left is not None and left <= 0):
                raise failure
            runtime.wait_among(waiters, "a queue", left)

    def empty(self) -> bool:
        return not self._items

    def qsize(self) -> int:
        return len(self._items)


class SimulatedRuntime:
    """The runtime of the process ``name``, which is also the name of its host."""

    def __init__(
        self,
        scheduler: Scheduler,
        network: Connects,
        name: str,
        clock: SimulatedClock | None = None,
        disk_micros: Callable[[], int] = lambda: 0,
    ) -> None:
        """``disk_micros``: how long what was done since the last call takes beyond that moment."""
        self.scheduler = scheduler
        self.name = name
        self.process: Process = scheduler.process(name)
        self._own_clock = clock or SimulatedClock(scheduler)
        self.clock: Clock = self._own_clock
        self._network = network
        self._disk_micros = disk_micros

    # Life and death

    @property
    def is_dead(self) -> bool:
        return self.process.is_dead

    def check(self) -> None:
        """Raises ProcessKilled in a dead process."""
        if self.process.is_dead:
            raise ProcessKilled

    def kill(self) -> None:
        """See Process.kill."""
        self.scheduler.note("is killed", self.name)
        self.process.kill()

    # kafka08.runtime.Runtime

    def spawn(self, name: str, function: Callable[..., object], *args: object) -> SimulatedTask:
        return self.process.spawn(name, function, *args)

    def sleep(self, seconds: float) -> None:
        self.scheduler.wait(f"{seconds} s", self._own_clock.micros(seconds))

    def event(self) -> SimulatedEvent:
        return SimulatedEvent(self)

    def lock(self) -> SimulatedLock:
        return SimulatedLock(self)

    def queue(self, maxsize: int = 0) -> SimulatedQueue:
        return SimulatedQueue(self, maxsize)

    def connect(self, host: str, port: int, timeout: float) -> Socket:
        self.check()
        return self._network.connect(self, host, port, timeout)

    def secured(self, sock: Any, context: Any, host: str) -> Socket:
        raise NotImplementedError("there is no TLS in a simulated network")

    def blocking(self, function: Callable[..., T], *args: object) -> T:
        name = getattr(function, "__name__", type(function).__name__)
        self.scheduler.wait(f"a thread for {name}", self.scheduler.rng.randrange(_CALL_MICROS))
        try:
            return function(*args)
        finally:
            micros = self.scheduler.rng.randrange(_CALL_MICROS) + self._disk_micros()
            self.scheduler.wait(f"the end of {name}", micros)

    def close(self) -> None: ...

    # For the parts of this package

    def wait_among(self, waiters: list[SimulatedTask], what: str, timeout: float | None) -> bool:
        """Wait as one of ``waiters``; the task that wakes this one takes it from them. False if
        ``timeout`` seconds passed first."""
        task = self.scheduler.current
        assert task is not None, f"no task may wait here for {what}"
        waiters.append(task)
        try:
            micros = None if timeout is None else self._own_clock.micros(timeout)
            return self.scheduler.wait(what, micros)
        finally:
            if task in waiters:
                waiters.remove(task)
