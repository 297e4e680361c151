"""A runtime that tests drive: time stands still unless they move it, waiting moves it."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any


class FakeClock:
    """kafka08.runtime.Clock; ``now`` in seconds."""

    def __init__(self, now: float = 1_400_000_000.0) -> None:
        self.now = now

    def millis(self) -> int:
        return round(self.now * 1000)

    def monotonic(self) -> float:
        return self.now


class FakeEvent:
    """An event nobody else can set while we wait: waiting runs ``while_waiting``, else time."""

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
            assert timeout is not None, "waits without a timeout, and nobody will set the event"
            self._runtime.clock.now += timeout
        return self._flag


class FakeTask:
    def __init__(self, name: str) -> None:
        self.name = name

    def join(self, timeout: float | None = None) -> bool:
        return True


class FakeRuntime:
    """kafka08.runtime.Runtime on one thread. Spawned functions are kept in ``spawned``;
    ``while_waiting`` holds what happens, one call at a time, while somebody waits."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.spawned: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = []
        self.while_waiting: list[Callable[[], Any]] = []

    def spawn(self, name: str, function: Callable[..., Any], *args: Any) -> FakeTask:
        self.spawned.append((name, function, args))
        return FakeTask(name)

    def run_spawned(self) -> None:
        """Run what was spawned so far, to its end."""
        spawned, self.spawned = self.spawned, []
        for _, function, args in spawned:
            function(*args)

    def sleep(self, seconds: float) -> None:
        self.clock.now += seconds

    def event(self) -> FakeEvent:
        return FakeEvent(self)

    def lock(self) -> Any:
        import threading

        return threading.RLock()

    def queue(self, maxsize: int = 0) -> Any:
        return FakeQueue(self, maxsize)

    def connect(self, host: str, port: int, timeout: float) -> Any:
        raise ConnectionRefusedError(f"{host}:{port}")

    def blocking(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def close(self) -> None:
        pass


class FakeQueue(queue.Queue[Any]):
    """``get`` never waits: an empty queue is Empty at once, and the timeout has passed."""

    def __init__(self, runtime: FakeRuntime, maxsize: int) -> None:
        super().__init__(maxsize)
        self._fake_runtime = runtime

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if self.empty() and timeout is not None:
            self._fake_runtime.clock.now += timeout
        return super().get(block=False)
