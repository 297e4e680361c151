"""The library below zk.client.ZkClient, over the model of an ensemble: what kazoo is in production.

It behaves as kazoo 2 does where ZkClient can tell: the order of states, of errors of interrupted
requests and of watches that a lost connection ends; the hosts in random order, one after the other;
pings, and a connection given up when no answer to one comes; no request while there is no session.
So a simulated cluster runs ZkClient itself, with its repetitions after a lost answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from kazoo import exceptions as kazoo_errors
from kazoo.protocol.states import KazooState

from kafka08.runtime import Event, Runtime, TaskHandle
from tests.simulation.znode_tree import CHILD, DELETED, Happened, MakeOp, TreeOp
from tests.simulation.zookeeper import OF_THE_SESSION, Ensemble
from tests.simulation.zookeeper_links import (
    Connect,
    Connected,
    Connection,
    End,
    Ping,
    Reply,
    Request,
    Timer,
    ToClient,
)
from zk.client import CheckOp, DeleteOp, SetOp, Watch
from zk.handlers import Library

_LEAST_DELAY, _MOST_DELAY = 0.05, 1.0
_CLOSE_SECONDS = 10.0
"""At least so long a client waits for the end of its session."""


class WatchedEvent(NamedTuple):
    """The argument of a watch."""

    type: str
    path: str | None


class Pending:
    """A request as kazoo's async results show it."""

    def __init__(self, runtime: Runtime) -> None:
        self._done = runtime.event()
        self._value: object = None

    def ready(self) -> bool:
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> object:
        return self._done.wait(timeout)

    def get(self) -> object:
        self._done.wait()
        if isinstance(self._value, Exception):
            raise self._value
        return self._value

    def set(self, value: object) -> None:
        """The result, or an exception that ``get`` raises."""
        self._value = value
        self._done.set()

    set_exception = set


class SimulatedHandler:
    """The tasks of a runtime, as kazoo has them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.sleep_func = runtime.sleep

    def event_object(self) -> Event:
        return self._runtime.event()

    def async_result(self) -> Pending:
        return Pending(self._runtime)

    def spawn(self, function: Callable[[], object]) -> TaskHandle:
        return self._runtime.spawn("zookeeper-close", function)


class _Sent(NamedTuple):
    """A request on its way. ``answered`` makes the result of an answer that is not an error."""

    request: Request
    pending: Pending
    watch: Watch | None
    answered: Callable[[object], object]


Watchers = dict[str, dict[Watch, None]]


def library(ensemble: Ensemble, runtime: Runtime, host: str) -> Library:
    """For the clients of one process. ``host`` is where it runs, as the ensemble's cuts name it."""
    return Library(
        client=partial(SimulatedLibrary, ensemble, host),
        handler=lambda gevent, context: SimulatedHandler(runtime),
        clock=runtime.clock,
    )


class SimulatedLibrary:
    """One session and those that replace it. Of ``hosts`` only the chroot matters."""

    def __init__(
        self,
        ensemble: Ensemble,
        host: str,
        *,
        hosts: str,
        timeout: float,
        handler: SimulatedHandler,
        **_unused: object,
    ) -> None:
        self.host = host
        self.chroot = "".join(hosts.partition("/")[1:]).rstrip("/")
        self._ensemble = ensemble
        self._world = ensemble.world
        self._timeout = timeout
        self.handler = handler
        self._live = handler.event_object()
        self._ended = handler.event_object()
        self._is_stopped = False
        self._was_connected = False
        self._session = 0
        self._last_zxid = 0
        self._delay = _LEAST_DELAY
        self._to_try: list[int] = []
        self._connection: Connection | None = None
        self._timer: Timer | None = None
        self._ping_sent = False
        self._sent_at = 0.0
        self._queue: deque[_Sent] = deque()
        self._data_watches: Watchers = {}
        self._child_watches: Watchers = {}
        self._listeners: list[Callable[[str], object]] = []

    # Used by ZkClient besides requests

    def add_listener(self, listener: Callable[[str], object]) -> None:
        self._listeners.append(listener)

    @property
    def connected(self) -> bool:
        return self._live.is_set()

    @property
    def client_id(self) -> tuple[int, bytes] | None:
        return (self._session, b"") if self.connected else None

    def start_async(self) -> Event:
        """Begin to connect; the event is set while there is a connection."""
        self._ensemble.clients[self] = None
        self._try_next()
        return self._live

    def stop(self) -> None:
        """End the session, if there is a connection, and wait for that."""
        if self._is_stopped or self not in self._ensemble.clients:
            return
        self._is_stopped = True
        if self.connected:
            self._ask(Request("close"))
            self._ended.wait(max(self._timeout, _CLOSE_SECONDS))
        self.kill()
        self._fail_pending(kazoo_errors.ConnectionLoss())
        self._tell(KazooState.LOST)

    def close(self) -> None:
        """Nothing is left after ``stop``."""

    def kill(self) -> None:
        """End as a process that was killed: nothing is called any more."""
        self._is_stopped = True
        self._live.clear()
        self._ensemble.clients.pop(self, None)
        self._leave()

    # The connection

    def _set_timer(self, seconds: float, function: Callable[[], object]) -> None:
        self._cancel_timer()
        self._timer = self._world.schedule.call_later(seconds, function)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _leave(self) -> None:
        self._cancel_timer()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.leave()

    def _try_next(self) -> None:
        """The next server; after the last one a pause, and all again in a new order."""
        if self._is_stopped:
            return
        if not self._to_try:
            self._to_try = [server.number for server in self._ensemble.servers]
            self._world.random.shuffle(self._to_try)
        number = self._to_try.pop()
        self._connection = self._ensemble.connect(self, number)
        if self._connection is None:
            self._failed()
        else:
            self._set_timer(self._timeout / len(self._ensemble.servers), self._lost)
            self._connection.to_server.send(Connect(self._session, self._last_zxid, self._timeout))

    def _failed(self) -> None:
        if self._to_try:
            self._set_timer(self._world.random.uniform(*self._world.timing.latency), self._try_next)
            return
        pause = self._delay * self._world.random.uniform(0.6, 1.4)
        self._delay = min(2 * pause, _MOST_DELAY)
        self._set_timer(pause, self._try_next)

    def _lost(self) -> None:
        """The connection, or an attempt to get one, has ended."""
        was_connected = self.connected
        self._leave()
        if self._is_stopped:
            self._ended.set()
            return
        if was_connected:
            self._live.clear()
            self._fail_pending(kazoo_errors.ConnectionLoss())
            self._tell(KazooState.SUSPENDED)
            self._end_watches()
        self._failed()

    def _expired(self) -> None:
        self._leave()
        self._session = self._last_zxid = 0
        self._delay = _LEAST_DELAY
        self._tell(KazooState.LOST)
        self._fail_pending(kazoo_errors.SessionExpiredError())
        self._end_watches()
        self._failed()

    def _connected(self, session: int) -> None:
        self._session = session
        self._delay = _LEAST_DELAY
        self._ping_sent = False
        self._sent_at = self._world.schedule.now()
        queued = list(self._queue)
        self._live.set()
        self._tell(KazooState.CONNECTED)
        for sent in queued:
            self._send(sent)
        self._look_after()

    def _look_after(self) -> None:
        """Send a ping if nothing else was sent; without its answer the connection is lost."""
        now, period = self._world.schedule.now(), self._timeout / 3
        if now - self._sent_at >= period / 2:
            if self._ping_sent:
                self._lost()
                return
            if self._connection is not None:
                self._connection.to_server.send(Ping())
                self._ping_sent = True
                self._sent_at = now
        self._set_timer(period - self._world.random.uniform(0.0, period / 4), self._look_after)

    def _tell(self, state: str) -> None:
        for listener in self._listeners:
            listener(state)

    def _fail_pending(self, error: Exception) -> None:
        while self._queue:
            self._queue.popleft().pending.set(error)

    def _end_watches(self) -> None:
        armed = [*self._child_watches.values(), *self._data_watches.values()]
        self._child_watches, self._data_watches = {}, {}
        for watches in armed:
            _call(watches, WatchedEvent("NONE", None))

    # Messages

    def receive(self, connection: Connection, message: ToClient) -> None:
        if connection is not self._connection:
            return
        if isinstance(message, End):
            self._lost()
        elif isinstance(message, Connected):
            if message.session:
                self._connected(message.session)
            else:
                self._expired()
        elif isinstance(message, Happened):
            self._happened(message)
        elif isinstance(message, Reply):
            self._replied(message)
        else:
            self._ping_sent = False

    def _happened(self, event: Happened) -> None:
        watches: dict[Watch, None] = {}
        if event.kind != CHILD:
            watches.update(self._data_watches.pop(event.path, {}))
        if event.kind in (CHILD, DELETED):
            watches.update(self._child_watches.pop(event.path, {}))
        if not self._is_stopped:
            _call(watches, WatchedEvent(event.kind, self._outside(event.path)))

    def _replied(self, reply: Reply) -> None:
        sent = self._queue.popleft()
        self._last_zxid = reply.zxid
        if sent.request.kind == "close":
            self._lost()
            return
        is_error = isinstance(reply.answer, Exception)
        if sent.watch is not None and not is_error:
            is_child = sent.request.kind == "children"
            watches = self._child_watches if is_child else self._data_watches
            watches.setdefault(sent.request.path, {})[sent.watch] = None
        sent.pending.set(reply.answer if is_error else sent.answered(reply.answer))

    # Requests

    def _ask(
        self,
        request: Request,
        watch: Watch | None = None,
        answered: Callable[[object], object] = lambda answer: answer,
    ) -> Pending:
        pending = self.handler.async_result()
        if self._is_stopped and request.kind != "close":
            pending.set(kazoo_errors.ConnectionClosedError("Connection has been closed"))
            return pending
        sent = _Sent(request, pending, watch, answered)
        self._queue.append(sent)
        if self.connected:
            self._send(sent)
        return pending

    def _send(self, sent: _Sent) -> None:
        assert self._connection is not None
        self._connection.to_server.send(sent.request)
        self._sent_at = self._world.schedule.now()

    def _inside(self, path: str) -> str:
        """The path on the servers."""
        return self.chroot + path.rstrip("/") or "/"

    def _outside(self, path: object) -> str:
        text = str(path)
        if not self.chroot:
            return text
        return text[len(self.chroot) :] or "/"

    def _read(self, kind: str, path: str, watch: Watch | None) -> Pending:
        return self._ask(Request(kind, self._inside(path), watch is not None), watch)

    def get_async(self, path: str, watch: Watch | None = None) -> Pending:
        return self._read("get", path, watch)

    def exists_async(self, path: str, watch: Watch | None = None) -> Pending:
        return self._read("exists", path, watch)

    def get_children_async(self, path: str, watch: Watch | None = None) -> Pending:
        return self._read("children", path, watch)

    def create_async(
        self, path: str, value: bytes, acl: object, *, ephemeral: bool, sequence: bool
    ) -> Pending:
        op = self.made(path, value, ephemeral)._replace(sequence=sequence)
        return self._ask(Request("write", ops=(op,)), None, self._outside)

    def set_async(self, path: str, value: bytes, version: int = -1) -> Pending:
        return self._ask(Request("write", ops=(SetOp(self._inside(path), value, version),)))

    def delete_async(self, path: str, version: int = -1) -> Pending:
        return self._ask(Request("write", ops=(DeleteOp(self._inside(path), version),)))

    def sync_async(self, path: str) -> Pending:
        return self._ask(Request("sync", self._inside(path)), None, self._outside)

    def transaction(self) -> SimulatedTransaction:
        return SimulatedTransaction(self)

    def made(self, path: str, data: bytes, ephemeral: bool) -> MakeOp:
        return MakeOp(self._inside(path), data, OF_THE_SESSION if ephemeral else 0)

    def inside(self, op: TreeOp) -> TreeOp:
        return op._replace(path=self._inside(op.path))

    def ask_all(self, ops: Iterable[TreeOp]) -> Pending:
        """All of these or none."""

        def answered(results: object) -> object:
            assert isinstance(results, list)
            return [self._outside(each) if isinstance(each, str) else each for each in results]

        return self._ask(Request("multi", ops=tuple(ops)), None, answered)


class SimulatedTransaction:
    """Operations, collected as kazoo does it."""

    def __init__(self, owner: SimulatedLibrary) -> None:
        self._owner = owner
        self._ops: list[TreeOp] = []

    def create(self, path: str, value: bytes, acl: object, *, ephemeral: bool) -> None:
        self._ops.append(self._owner.made(path, value, ephemeral))

    def set_data(self, path: str, value: bytes, version: int) -> None:
        self._ops.append(self._owner.inside(SetOp(path, value, version)))

    def delete(self, path: str, version: int) -> None:
        self._ops.append(self._owner.inside(DeleteOp(path, version)))

    def check(self, path: str, version: int) -> None:
        self._ops.append(self._owner.inside(CheckOp(path, version)))

    def commit_async(self) -> Pending:
        return self._owner.ask_all(self._ops)


def _call(watches: dict[Watch, None], event: WatchedEvent) -> None:
    for watch in watches:
        watch(event)
