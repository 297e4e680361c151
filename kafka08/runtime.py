"""Concurrency: clocks, tasks, events, locks, queues, sockets, blocking calls.

Other modules get these from a Runtime. So they run unchanged on greenlets (the broker), on plain
threads (clients in notebooks and Spark executors) and, with a fake, in tests that never sleep.
gevent is named only here, in ``network`` and in ``zk.client``, and imported on first use.
"""

from __future__ import annotations

import logging
import queue as stdlib_queue
import signal
import socket as stdlib_socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kafka08.errors import KafkaError

if TYPE_CHECKING:
    from ssl import SSLContext
    from types import TracebackType

T = TypeVar("T")
Empty = stdlib_queue.Empty
Full = stdlib_queue.Full
logger = logging.getLogger("kafka.utils.KafkaScheduler")


class Clock(Protocol):
    """A clock that can be passed as an argument (kafka.utils.Time)."""

    def millis(self) -> int:
        """Wall clock, ms since the epoch."""

    def monotonic(self) -> float:
        """Seconds of a monotonic clock."""


class SystemClock:
    """The machine's clocks."""

    def millis(self) -> int:
        return time.time_ns() // 1_000_000

    # Called several times per request: without a function of its own it takes half the time.
    monotonic = staticmethod(time.monotonic)


class Event(Protocol):
    def set(self) -> None: ...
    def clear(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Lock(Protocol):
    def __enter__(self) -> object: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...
    def acquire(self, blocking: bool = True) -> bool: ...
    def release(self) -> None: ...


class Queue(Protocol[T]):
    """``get`` raises Empty and ``put`` raises Full once the timeout (seconds) has passed."""

    def put(self, item: T, block: bool = True, timeout: float | None = None) -> None: ...
    def get(self, block: bool = True, timeout: float | None = None) -> T: ...
    def empty(self) -> bool: ...
    def qsize(self) -> int: ...


class TaskHandle(Protocol):
    """A spawned thread or greenlet. Its owner joins it."""

    name: str

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if ``timeout`` seconds passed first."""


class Socket(Protocol):
    """A connected socket that blocks, plain or with TLS; its methods raise OSError."""

    def sendall(self, data: bytes | bytearray | memoryview, /) -> None: ...
    def recv(self, size: int, /) -> bytes: ...
    def recv_into(self, buffer: bytearray | memoryview, /) -> int: ...
    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...
    def shutdown(self, how: int, /) -> None: ...
    def close(self) -> None: ...


class SocketConnector(Protocol):
    """Makes connections."""

    def connect(self, host: str, port: int, timeout: float) -> Socket:
        """A connected TCP socket with TCP_NODELAY and that timeout. Raises OSError."""


class Runtime(SocketConnector, Protocol):
    """The interface that the broker and clients run on."""

    clock: Clock

    def spawn(self, name: str, function: Callable[..., object], *args: object) -> TaskHandle: ...
    def sleep(self, seconds: float) -> None: ...
    def event(self) -> Event: ...
    def lock(self) -> Lock:
        """Re-entrant."""

    def queue(self, maxsize: int = 0) -> Queue[T]: ...
    def secured(self, sock: Any, context: SSLContext, host: str) -> Socket:
        """A socket for TLS over a connected one, with the same timeout; ``host`` is the name that
        the server must have. Raises OSError."""

    def blocking(self, function: Callable[..., T], *args: object) -> T:
        """Run a call that blocks a whole thread (fsync, recovery) without stalling others."""

    def close(self) -> None:
        """Release the runtime's own threads."""


def _connect(
    create_connection: Callable[[tuple[str, int], float], Socket],
    host: str,
    port: int,
    timeout: float,
) -> Socket:
    # The original's brokers and clients also take an IPv6 address in brackets.
    sock = create_connection((host.removeprefix("[").removesuffix("]"), port), timeout)
    sock.setsockopt(stdlib_socket.IPPROTO_TCP, stdlib_socket.TCP_NODELAY, 1)
    return sock


class _ThreadTask:
    def __init__(
        self, name: str, function: Callable[..., object], args: tuple[object, ...]
    ) -> None:
        self.name = name
        self._thread = threading.Thread(target=function, args=args, name=name, daemon=True)
        self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()


class ThreadRuntime:
    """Plain threads: the default of clients."""

    def __init__(self) -> None:
        self.clock: Clock = SystemClock()

    def spawn(self, name: str, function: Callable[..., object], *args: object) -> TaskHandle:
        return _ThreadTask(name, function, args)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def event(self) -> Event:
        return threading.Event()

    def lock(self) -> Lock:
        return threading.RLock()

    def queue(self, maxsize: int = 0) -> Queue[T]:
        return stdlib_queue.Queue(maxsize)

    def connect(self, host: str, port: int, timeout: float) -> Socket:
        return _connect(stdlib_socket.create_connection, host, port, timeout)

    def secured(self, sock: Any, context: SSLContext, host: str) -> Socket:
        return context.wrap_socket(sock, server_hostname=host)

    def blocking(self, function: Callable[..., T], *args: object) -> T:
        return function(*args)

    def close(self) -> None:
        """Nothing is kept."""


class _GreenletTask:
    def __init__(self, name: str, greenlet: Any) -> None:
        self.name = name
        self._greenlet = greenlet

    def join(self, timeout: float | None = None) -> bool:
        self._greenlet.join(timeout)
        return bool(self._greenlet.dead)


def _outcome(
    function: Callable[..., T], args: tuple[object, ...]
) -> tuple[T | None, BaseException | None]:
    """(result, None) or (None, the exception)."""
    try:
        return function(*args), None
    except BaseException as error:
        return None, error


class GeventRuntime:
    """Greenlets: the runtime of the broker. Blocking calls run on ``threads`` real threads."""

    def __init__(self, threads: int = 10) -> None:
        import gevent
        import gevent.event
        import gevent.lock
        import gevent.queue
        import gevent.socket
        import gevent.threadpool

        self._gevent = gevent
        self._pool = gevent.threadpool.ThreadPool(threads)
        self.clock: Clock = SystemClock()

    def spawn(self, name: str, function: Callable[..., object], *args: object) -> TaskHandle:
        greenlet = self._gevent.spawn(function, *args)
        greenlet.name = name
        return _GreenletTask(name, greenlet)

    def sleep(self, seconds: float) -> None:
        self._gevent.sleep(seconds)

    def event(self) -> Event:
        event: Event = self._gevent.event.Event()
        return event

    def lock(self) -> Lock:
        lock: Lock = self._gevent.lock.RLock()
        return lock

    def queue(self, maxsize: int = 0) -> Queue[T]:
        queue: Queue[T] = self._gevent.queue.Queue(maxsize or None)
        return queue

    def connect(self, host: str, port: int, timeout: float) -> Socket:
        return _connect(self._gevent.socket.create_connection, host, port, timeout)

    def secured(self, sock: Any, context: SSLContext, host: str) -> Socket:
        import gevent.ssl

        secured: Socket = gevent.ssl.SSLSocket(sock=sock, server_hostname=host, _context=context)
        return secured

    def blocking(self, function: Callable[..., T], *args: object) -> T:
        # Errors are passed as values: gevent prints raised ones on stderr, with a traceback.
        result, error = self._pool.apply(_outcome, (function, args))
        if error is not None:
            try:
                raise error
            finally:
                del error  # else it and this frame would hold each other
        return result  # type: ignore[no-any-return]

    def signals(self) -> Queue[int]:
        """The numbers of TERM, INT and HUP, as they come."""
        received: Queue[int] = self.queue()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._gevent.signal_handler(number, received.put, number)
        return received

    def close(self) -> None:
        self._pool.kill()


class Loop:
    """One named background loop with an owner. It is started once.

    ``work`` is called repeatedly until ``stop``. It should return within a second or two,
    or wait on ``stopping``. An exception is logged and the loop continues after ``backoff_ms``
    (kafka.utils.ShutdownableThread ends instead). ``stop`` joins.
    """

    def __init__(
        self, runtime: Runtime, name: str, work: Callable[[], object], *, backoff_ms: int = 1000
    ) -> None:
        self.name = name
        self.stopping = runtime.event()
        self._runtime = runtime
        self._work = work
        self._backoff = backoff_ms / 1000
        self._task: TaskHandle | None = None

    def start(self) -> Loop:
        self._task = self._runtime.spawn(self.name, self._run)
        return self

    def _run(self) -> None:
        while not self.stopping.is_set():
            try:
                self._work()
            except KafkaError as error:  # such as the loss of ZooKeeper or of a peer
                logger.error("Uncaught error in %s: %s", self.name, error)
                self.stopping.wait(self._backoff)
            except Exception:
                logger.exception("Uncaught error in %s", self.name)
                self.stopping.wait(self._backoff)

    def stop(self, timeout: float | None = None) -> bool:
        """Ask the loop to end and wait for it; False if it did not within ``timeout`` s."""
        self.stopping.set()
        return self._task is None or self._task.join(timeout)


class Tasks:
    """Tasks that come and go by themselves, with an owner that waits for the last ones."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._handles: dict[object, TaskHandle] = {}

    def begin(self, name: str, function: Callable[..., object], *args: object) -> None:
        key = object()

        def work() -> None:
            try:
                function(*args)
            finally:
                self._handles.pop(key, None)

        self._handles[key] = self._runtime.spawn(name, work)

    def join(self, timeout: float | None = None) -> None:
        """Wait for those there are, for at most ``timeout`` seconds in all."""
        clock = self._runtime.clock
        until = None if timeout is None else clock.monotonic() + timeout
        for handle in list(self._handles.values()):
            handle.join(None if until is None else max(until - clock.monotonic(), 0))


class Scheduler:
    """Periodic jobs, each on a task of its own (kafka.utils.KafkaScheduler)."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loops: list[Loop] = []

    def every(
        self, name: str, period_ms: int, function: Callable[[], object], *, delay_ms: int = 0
    ) -> Loop:
        """Call ``function`` after ``delay_ms`` and then each ``period_ms``; it never overlaps."""
        first = True

        def work() -> None:
            nonlocal first
            pause = delay_ms if first else period_ms
            first = False
            # Timers beyond some 24 days overflow in places; such periods mean "never".
            if not loop.stopping.wait(min(pause / 1000, 2_000_000.0)):
                function()

        loop = Loop(self._runtime, name, work, backoff_ms=0)
        self._loops.append(loop.start())
        return loop

    def stop(self, timeout: float | None = None) -> None:
        """Wait for all jobs to end, for at most ``timeout`` seconds each."""
        for loop in self._loops:
            loop.stopping.set()
        for loop in self._loops:
            loop.stop(timeout)
        self._loops.clear()
