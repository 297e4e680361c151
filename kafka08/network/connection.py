"""One client's connection: frames in, replies out, in order.

``serve`` is a turn of the connection: it reads once, unless ``read_ahead`` has done it, handles the
requests that are whole then, and sends their replies with one write. If a request waits (for bytes
to fetch, for acks), the replies before it are sent meanwhile. Short replies are sent after the
turns of the other connections that are ready, and after the greenlets that the requests woke have
run, as in the original: a waiting consumer gets a message before its producer gets the answer.
Replies are bytes or slices of a log file (``network.sending``). Does not interpret requests, and
does not know who calls ``serve``.

A frame's memory belongs to the connection's receive buffer and is reused after ``handle``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import gevent
from gevent import socket
from gevent.lock import Semaphore

from kafka08.errors import ProtocolError
from kafka08.network.memory import RequestMemory
from kafka08.network.peer import Peer, current_peer, record_sent
from kafka08.network.receiving import Receiver
from kafka08.network.sending import READ_BYTES, joined, send_parts
from kafka08.network.transport import PlainSocket, TlsSocket
from kafka08.network.workers import END, MORE, REST, WAIT, WATCHED, Watcher
from kafka08.protocol.codec import Part
from kafka08.protocol.framing import LARGEST_BEFORE_LOGIN

Handle = Callable[[memoryview, str], "list[Part] | None"]
# Replies are not held together beyond this.
_HELD_BYTES: Final = 64 * 1024
_READ: Final = 1  # libev's EV_READ


class Connection:
    """A socket that does not block, its frames and replies, and the time of its last traffic
    (monotonic seconds).

    ``hello`` goes on with the handshake before anything is read, until it returns true; it raises
    OSError. ``serving`` is true while a request is being handled. ``handle`` gets each frame and
    the address, and returns the parts of the reply, or None if there is none. Frames are limited to
    ``LARGEST_BEFORE_LOGIN`` bytes until the peer is admitted.
    """

    __slots__ = (
        "_callback", "_handle", "_has_waited", "_held", "_held_bytes", "_hello", "_is_shut",
        "_lock", "_loop", "_receiver", "_resting", "_sending", "_sock", "_writer", "address",
        "is_unwatched", "last_active", "peer", "serving", "state", "watcher",
    )  # fmt: skip

    def __init__(
        self,
        sock: PlainSocket | TlsSocket,
        peer: Peer,
        max_bytes: int,
        memory: RequestMemory,
        handle: Handle,
        hello: Callable[[], bool] | None = None,
    ) -> None:
        self.address = peer.address
        self.last_active = time.monotonic()
        self.serving = False
        self.peer = peer
        self._handle = handle
        self._hello = hello
        self._sock = sock
        self._receiver = Receiver(sock, max_bytes, memory)
        if not peer.is_admitted:
            self._receiver.limit(min(max_bytes, LARGEST_BEFORE_LOGIN))
            peer.admitted = partial(self._receiver.limit, max_bytes)
        self._is_shut = False
        self._loop = gevent.get_hub().loop
        self.watcher: Watcher = self._loop.io(sock.fileno(), _READ)
        self.state = WATCHED
        self.is_unwatched = False
        self._has_waited = False  # in this turn
        self._lock = Semaphore()
        self._sending = False  # some greenlet sends, and may wait
        self._held: list[Part] = []
        self._held_bytes = 0
        self._callback: Any = None
        # Of a rest: its timer, and what is to be called at its end.
        self._resting: tuple[Watcher, Callable[[], object]] | None = None
        # Sends the held replies while a request waits.
        self._writer: gevent.Greenlet | None = None

    def fileno(self) -> int:
        return self._sock.fileno()

    def serve(self, until: float) -> int:
        """A turn: see ``workers.Served``. Raises ProtocolError and what ``handle`` raises."""
        self._has_waited = False
        if self._hello is not None:
            if self._is_shut:
                return END
            if not self._hello():
                return WAIT
            self._hello = None
        receiver = self._receiver
        if receiver.frames:
            self.peer.begun_at = time.monotonic()
        elif not self._read():
            return END
        self._serve(until)
        if self._held:
            # Sent together, the replies of several connections to one process wake it up once.
            if not self._has_waited and self._held_bytes <= READ_BYTES:
                self._flush_soon()
            else:
                self.flush()
        if not receiver.frames:
            receiver.give_memory_back(self)
        if self.peer.mute_seconds:
            if not self._is_shut and not self.peer.has_ended:
                return REST
            self.peer.mute_seconds = 0.0  # it is to end, and does not rest before
        is_drained = not receiver.frames and receiver.is_drained and not receiver.has_failed
        return WAIT if is_drained else MORE

    def read_ahead(self) -> None:
        """Read for the next turn, unless this could wait. An end or an error is left to the turn,
        which finds it again; so is the rest of a frame."""
        if self._receiver.frames or self._hello is not None or not self._receiver.is_short:
            return
        try:
            self._read()
        except (OSError, ProtocolError):
            pass

    def rest(self, rested: Callable[[], object]) -> None:
        """Call ``rested`` after the time for which the peer is muted, or once it has closed."""
        seconds, self.peer.mute_seconds = self.peer.mute_seconds, 0.0
        timer: Watcher = self._loop.timer(seconds)
        self._resting = timer, rested
        self.peer.wake = self._end_rest
        timer.start(self._end_rest)

    def _end_rest(self) -> None:
        resting, self._resting = self._resting, None
        if resting is not None:
            timer, rested = resting
            self.peer.wake = None
            timer.stop()
            timer.close()
            rested()

    def _read(self) -> bool:
        """Read what there is, as far as there is room; False at the end."""
        if self._is_shut:
            return False
        try:
            if not self._receiver.read(self):
                return False
        except BlockingIOError:
            return True
        self.peer.read_at = self.peer.begun_at = self.last_active = time.monotonic()
        return True

    def _serve(self, until: float) -> None:
        """Handle the frames that were read, but only some of them if time is over."""
        frames, self._receiver.frames = self._receiver.frames, []
        if not frames:
            return
        current_peer.set(self.peer)
        for number, frame in enumerate(frames):
            if number:
                if self._has_waited and self._held:
                    self._flush_soon()
                now = time.monotonic()
                if now >= until or self.peer.mute_seconds:
                    self._receiver.frames = frames[number:]
                    return
                self.peer.begun_at = now
            self.serving = True
            reply = self._handle(frame, self.address)
            self.serving = False
            if reply is not None:
                self.hold(reply)

    def waits(self) -> None:
        """Runs in the hub when ``serve`` has begun to wait: replies do not wait with it."""
        self._has_waited = True
        self._flush_while_waiting()

    def close(self) -> None:
        """Send the replies that are held, and close the socket."""
        self.serving = False  # the remaining sends count as idle time
        try:
            self.watcher.close()
            self._receiver.release(self)
            self.flush()
        finally:
            if self._writer is not None:
                self._writer.kill()
            self._sock.close()

    def hold(self, reply: Sequence[Part]) -> None:
        """Have the parts of a reply sent after those before it."""
        self._held += reply
        for part in reply:
            self._held_bytes += len(part)
        if self._held_bytes > _HELD_BYTES:
            self.flush()

    def _flush_soon(self) -> None:
        """Let the loop send the replies, after the greenlets that the requests woke."""
        if self._callback is None:
            self._callback = self._loop.run_callback(self._flush_while_waiting)

    def _flush_while_waiting(self) -> None:
        """Runs in the hub, which must not wait: sends what can be sent at once."""
        self._callback = None
        if not self._held or self._writer is not None:
            return
        try:
            is_sent = self._flush_at_once(time.monotonic() if self.peer.unsent else 0.0)
        except Exception:
            self.shutdown()  # so that the next turn is the last
            return
        if not is_sent:
            self._writer = gevent.spawn(self._flush_quietly)

    def _flush_at_once(self, began: float) -> bool:
        """Send the held replies if they are short; False if some bytes must wait. It is the time
        ``began``, which is only used if there are requests to be recorded."""
        if self._sending or self._held_bytes > READ_BYTES:
            return False
        data = joined(self._held)
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            self._held = [data]  # TLS needs the same bytes again
            return False
        self._held = [data[sent:]] if sent < len(data) else []
        self._held_bytes = len(data) - sent
        if self._held:
            return False
        if self.peer.unsent:
            record_sent(self.peer.unsent, began)
        return True

    def _flush_quietly(self) -> None:
        try:
            while self._held:
                self.flush()
        except Exception:
            self.shutdown()  # the next turn is the last
        finally:
            self._writer = None

    def flush(self) -> None:
        """Send the replies that are held; may wait."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback.stop()
        unsent = self.peer.unsent
        # A clock is not read for this: the last request was handled a moment ago.
        if not self._sending and (
            not self._held or self._flush_at_once(unsent[-1][4] if unsent else 0.0)
        ):
            return
        with self._lock:
            held, self._held = self._held, []
            self._held_bytes = 0
            self._sending = True
            unsent, self.peer.unsent = self.peer.unsent, []
            began = time.monotonic() if unsent else 0.0
            try:
                send_parts(self._sock, held)
                if unsent:
                    record_sent(unsent, began)
            finally:
                self._sending = False

    @property
    def backlog(self) -> tuple[int, int, bool]:
        """Requests to be handled, replies to be sent, and whether some are being sent."""
        return len(self._receiver.frames), len(self.peer.unsent), self._sending

    def shutdown(self) -> None:
        """Make the next turn the last one, and have it soon; wakes who waits to send."""
        self._is_shut = True
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._end_rest()
