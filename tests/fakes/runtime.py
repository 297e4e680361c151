"""A clock and a runtime on one thread: time passes only when something waits or a test says so."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from kafka08.runtime import Empty, Full, Lock


class WouldBlock(BaseException):
    """A wait without a timeout that nobody can end. No handler of Exception takes it."""


class QueueWait(WouldBlock):
    """A task waits for its queue: it is paused there until something is put."""


class FakeClock:
    """kafka08.runtime.Clock; ``now`` in seconds, ``now_ms`` the same in whole milliseconds.

    It counts whole microseconds, so that steps of 0.05 s add up exactly.
    """

    def __init__(self, now: float = 1_400_000_000.0) -> None:
        self.now = now

    @property
    def now(self) -> float:
        return self._micros / 1e6

    @now.setter
    def now(self, seconds: float) -> None:
        self._micros = round(seconds * 1e6)

    @property
    def now_ms(self) -> int:
        return self._micros // 1000

    @now_ms.setter
    def now_ms(self, millis: int) -> None:
        self._micros = millis * 1000

    def millis(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Any time above 0 moves the clock, so that a loop cannot wait again and again for less."""
        self._micros += max(round(seconds * 1e6), 1 if seconds > 0 else 0)


class Event:
    """Waiting runs the runtime's next ``while_waiting``; if that does not set it, time passes."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self._runtime = runtime
        self._flag = False

    def set(self) -> None:
        self._flag = True

    def clear(self) -> None:
        self._flag = False

    def is_set(self) -> bool:
        return self._flag

    def wait(self, timeout: float | None = None) -> bool:
        if not self._flag and self._runtime.while_waiting:
            self._runtime.while_waiting.pop(0)()
        if not self._flag:
            self._runtime.wait_for(
                self.is_set, timeout, WouldBlock("an event that nobody will set")
            )
        return self._flag


class Queue:
    """A wait for a full or an empty queue ends at once: its timeout has passed then."""

    def __init__(self, runtime: FakeRuntime, maxsize: int) -> None:
        self._runtime = runtime
        self._maxsize = maxsize
        self.items: deque[Any] = deque()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if self._maxsize and len(self.items) >= self._maxsize:
            if block and timeout is None:
                raise WouldBlock("a full queue that nobody will empty")
            if block:
                self._runtime.pass_time(timeout or 0.0)
            raise Full
        self.items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self.items and block:
            self._runtime.wait_for(lambda: bool(self.items), timeout, QueueWait())
        if not self.items:
            raise Empty
        return self.items.popleft()

    def empty(self) -> bool:
        return not self.items

    def qsize(self) -> int:
        return len(self.items)


class Task:
    """A spawned function. It runs only when a test or ``join`` runs it."""

    def __init__(self, name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.name = name
        self.function = function
        self.args = args
        self.ended = False
        self._running = False

    def run(self) -> None:
        """Run to the end, or until the task waits for its queue: then ``run`` may be called
        again."""
        if self.ended:
            return
        self._running = True
        try:
            self.function(*self.args)
            self.ended = True
        except QueueWait:
            pass
        finally:
            self._running = False

    def join(self, timeout: float | None = None) -> bool:
        """Run the task first. A join from within the task stands for one from another thread,
        which sees the end of the task."""
        if self._running:
            return True
        self.run()
        return self.ended


class FakeRuntime:
    """kafka08.runtime.Runtime. ``tasks``: everything that was spawned.

    ``while_waiting``: calls that happen, one for each wait, while something waits for an event.
    ``slept``: every time that passed, in seconds; ``on_sleep`` is called with each. ``pooled``: the
    names of the functions that ran as blocking calls. ``open_socket`` is given a host and a port;
    without it every connection is refused.
    ``may_sleep`` False: plain sleeps fail, for code that must react to events only. ``world``: what
    else happens while time passes; it is given what is waited for, and the seconds or None.
    """

    def __init__(self, now: float = 1_400_000_000.0) -> None:
        self.clock = FakeClock(now)
        self.tasks: list[Task] = []
        self.while_waiting: list[Callable[[], Any]] = []
        self.slept: list[float] = []
        self.on_sleep: Callable[[float], Any] | None = None
        self.pooled: list[str] = []
        self.open_socket: Callable[[str, int], Any] | None = None
        self.may_sleep = True
        self.world: Callable[[Callable[[], bool], float | None], Any] | None = None

    def spawn(self, name: str, function: Callable[..., Any], *args: Any) -> Task:
        task = Task(name, function, args)
        self.tasks.append(task)
        return task

    def run(self, word: str) -> None:
        """Run every task whose name holds ``word`` as far as it goes."""
        for task in self.tasks:
            if word in task.name:
                task.run()

    def run_spawned(self) -> None:
        """Run every task that is left to its end."""
        for task in [task for task in self.tasks if not task.ended]:
            assert task.join(), f"{task.name} waits for its queue"

    def step(self, word: str) -> int:
        """One round of the loop of that name, or else of those whose names hold it; returns how
        many there were."""
        rounds = 0
        named = [task for task in self.tasks if task.name == word]
        for task in named or [task for task in self.tasks if word in task.name]:
            loop = getattr(task.function, "__self__", None)
            if not loop.stopping.is_set():  # type: ignore[union-attr]
                loop._work()  # type: ignore[union-attr]
                rounds += 1
        return rounds

    def wait_for(self, done: Callable[[], bool], timeout: float | None, never: WouldBlock) -> None:
        """Let ``timeout`` seconds pass, or less if the world gets ``done`` first. Raises ``never``
        if there is neither."""
        if self.world is not None:
            self.world(done, timeout)
        elif timeout is None:
            raise never
        else:
            self.pass_time(timeout)

    def pass_time(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.world is not None:
            self.world(lambda: False, seconds)
        else:
            self.clock.advance(seconds)
        if self.on_sleep:
            self.on_sleep(seconds)

    def sleep(self, seconds: float) -> None:
        if not self.may_sleep:
            raise WouldBlock("a sleep in code that must not sleep")
        self.pass_time(seconds)

    def event(self) -> Event:
        return Event(self)

    def lock(self) -> Lock:
        return threading.RLock()

    def queue(self, maxsize: int = 0) -> Queue:
        return Queue(self, maxsize)

    def connect(self, host: str, port: int, timeout: float) -> Any:
        if self.open_socket is None:
            raise ConnectionRefusedError(f"{host}:{port}")
        return self.open_socket(host, port)

    def blocking(self, function: Callable[..., Any], *args: Any) -> Any:
        self.pooled.append(getattr(function, "__name__", ""))
        return function(*args)

    def close(self) -> None: ...
