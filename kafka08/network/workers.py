"""Greenlets that serve the connections with bytes to read.

A connection has no greenlet of its own: an idle one costs its buffers and a watcher. The hub
collects the connections whose sockets have become readable, and a worker serves one after the
other, each for one turn. A worker whose request waits (for acks, for bytes to fetch, for a peer
that reads slowly) stays with its connection, and another worker serves the others meanwhile. So
there are as many workers as requests that wait, and a few more.

The connections next in line are read from together, before the first of them is served: with the
code of one step in the processor's cache, many small requests take a twentieth less CPU.

Does not know sockets or requests.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

import gevent
from gevent import GreenletExit
from greenlet import getcurrent, greenlet

# The outcomes of a turn: wait until the socket is readable, put the connection behind the others
# that are ready, end it, or let it rest.
WAIT: Final = 0
MORE: Final = 1
END: Final = 2
REST: Final = 3
# The states of a connection: waited for, ready for a turn, having one.
WATCHED: Final = 0
READY: Final = 1
SERVED: Final = 2
# Connections are served for this long before the sockets of all are looked at again.
_TURN_SECONDS: Final = 0.01
# So many connections are read from together.
_AHEAD: Final = 32
# Workers without work that are kept.
_MOST_IDLE = 16


class Watcher(Protocol):
    """Calls a function in the hub whenever a socket is readable, between start and stop."""

    def start(self, function: Callable[..., None], *args: object) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class Served(Protocol):
    """A connection. ``watcher`` is a started or stopped io watcher of its socket.

    The other two attributes belong to ``Workers``: ``state`` is WATCHED at first; ``is_unwatched``
    is true while the watcher is stopped because the connection is being served or muted.
    """

    watcher: Watcher
    state: int
    is_unwatched: bool

    def serve(self, until: float) -> int:
        """Read once and serve what has arrived, until that time (monotonic seconds) if it is
        much; WAIT, MORE, END or REST. May wait, and may raise what ends the connection."""

    def read_ahead(self) -> None:
        """Called when ``serve`` will follow soon. Must neither wait nor raise."""

    def waits(self) -> None:
        """Called in the hub when ``serve`` has begun to wait."""

    def rest(self, rested: Callable[[], object]) -> None:
        """Called after REST: ``rested`` is due when the connection is to be served again."""


C = TypeVar("C", bound=Served)


class Workers(Generic[C]):
    """``ended(connection, error)`` is called by a worker once a connection's last turn is over."""

    def __init__(self, ended: Callable[[C, BaseException | None], None]) -> None:
        self._ended = ended
        self._hub = gevent.get_hub()
        self._loop = self._hub.loop
        self._after_poll = self._loop.timer(0)
        self._ready: deque[C] = deque()
        self._ahead = 0  # so many of them, the first ones, have been read from
        self._is_due = False  # another task will call _dispatch
        self._active: greenlet | None = None  # the worker that _dispatch has given the turn
        self._serving: C | None = None  # the connection it serves
        # When the sockets are looked at again; not before those that were ready had their turn.
        self._until = 0.0
        self._turns = 0
        self._workers: set[greenlet] = set()
        self._idle: list[greenlet] = []
        self._is_over = False

    def watch(self, connection: C) -> None:
        """Serve the connection from now on."""
        connection.watcher.start(self._readable, connection)

    def kill(self) -> None:
        """End all workers, in the middle of a request too. No connection is served any more."""
        self._is_over = True
        self._idle.clear()
        for worker in list(self._workers):
            self._loop.run_callback(worker.throw, GreenletExit)

    def _readable(self, connection: C) -> None:
        """Runs in the hub."""
        if connection.state == WATCHED:
            self._put(connection)
        elif connection.state == SERVED:
            # Its request waits. The watcher would call again and again.
            connection.is_unwatched = True
            connection.watcher.stop()

    def _put(self, connection: C) -> None:
        connection.state = READY
        self._ready.append(connection)
        if not self._is_due and self._active is None:
            self._is_due = True
            self._loop.run_callback(self._dispatch)

    def _dispatch(self) -> None:
        """Runs in the hub: have workers serve all connections that are ready."""
        self._is_due = False
        self._until = time.monotonic() + _TURN_SECONDS
        self._turns = len(self._ready)
        while self._ready and not self._is_over:
            if self._is_time_over():
                self._is_due = True
                self._after_poll.start(self._dispatch)
                return
            self._active = worker = self._idle.pop() if self._idle else self._new_worker()
            worker.switch()  # comes back when the worker waits, for whatever
            self._active = None
            connection, self._serving = self._serving, None
            if connection is not None:
                connection.waits()

    def _is_time_over(self) -> bool:
        return self._turns <= 0 and time.monotonic() >= self._until

    def _new_worker(self) -> greenlet:
        worker = greenlet(self._work, self._hub)
        self._workers.add(worker)
        return worker

    def _work(self) -> None:
        me = getcurrent()
        try:
            while True:
                # A worker that has waited goes on with its own connection alone.
                while self._active is me and self._ready and not self._is_time_over():
                    self._turns -= 1
                    if not self._ahead:
                        self._read_ahead()
                    self._ahead -= 1
                    # No variable here: an idle worker must not keep an ended connection's memory.
                    self._serve(self._ready.popleft())
                    if self._active is me:
                        self._serving = None
                if len(self._idle) >= _MOST_IDLE or self._is_over:
                    return
                self._idle.append(me)
                self._hub.switch()
        except GreenletExit:
            pass
        finally:
            self._workers.discard(me)

    def _read_ahead(self) -> None:
        self._ahead = min(len(self._ready), _AHEAD)
        if self._ahead > 1:
            for number in range(self._ahead):
                self._ready[number].read_ahead()

    def _serve(self, connection: C) -> None:
        self._serving = connection
        connection.state = SERVED
        try:
            left = connection.serve(self._until)
        except BaseException as error:
            # No other variable may keep the error: its traceback has this frame, and with the
            # frame the connection's memory, until the garbage collector finds the circle.
            self._ended(connection, error)
            return
        if left == END:
            self._ended(connection, None)
            return
        if left == REST:
            connection.watcher.stop()
            connection.is_unwatched = True
            connection.rest(partial(self._rested, connection))
            return
        self._watch_again(connection)
        if left == MORE:
            self._put(connection)
        else:
            connection.state = WATCHED

    def _rested(self, connection: C) -> None:
        self._watch_again(connection)
        self._put(connection)

    def _watch_again(self, connection: C) -> None:
        if connection.is_unwatched:
            connection.is_unwatched = False
            connection.watcher.start(self._readable, connection)
