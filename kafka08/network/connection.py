"""One client's connection: frames in, replies out, in order.

Requests that arrived together are served one after the other and answered with one write, unless
one of them waits (for bytes to fetch, for acks): then the replies before it are sent first. Short
replies are sent after the greenlets that the requests woke have run, as in the original: a waiting
consumer gets a message before its producer gets the answer. Replies are bytes or slices of a log
file; long slices go from the page cache to the socket by sendfile. Does not interpret requests.

A frame's memory belongs to the connection's receive buffer and is reused after ``handle``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextvars import ContextVar
from socket import MSG_MORE
from typing import Any

import gevent
from gevent import socket
from gevent.lock import RLock

from kafka08.network.memory import RequestMemory
from kafka08.protocol.framing import LARGEST_BUFFER, FrameDecoder

Handle = Callable[[memoryview, str], "list[Any] | None"]

# A connection that always has data would block all other greenlets. After this many requests, or
# bytes, in a row it lets the others run.
_TURN_REQUESTS = 8
_TURN_BYTES = 1 << 20
# After requests in a row for this long, the loop polls all sockets: the turns above only run
# greenlets that are ready already.
_TURN_SECONDS = 0.01
# Replies are not held together beyond this.
_HELD_BYTES = 64 * 1024
# Parts up to this size are copied (or read) and sent with the rest in one call.
_READ_BYTES = 16 * 1024
_PLAIN = (bytes, bytearray, memoryview)
# libev's EV_READ.
_READ = 1


class Peer:
    """The sender of the current request. ``has_ended`` is set when it has closed its connection,
    or its half of it. Code that waits on its behalf sets ``wake``, which is called then."""

    __slots__ = ("has_ended", "wake")

    def __init__(self) -> None:
        self.has_ended = False
        self.wake: Callable[[], object] | None = None

    def end(self) -> None:
        self.has_ended = True
        if self.wake is not None:
            self.wake()


# The peer of the greenlet's connection; unset in other greenlets.
current_peer: ContextVar[Peer | None] = ContextVar("current_peer", default=None)


class Connection:
    """A socket, its frames and replies, and the time of its last traffic (monotonic seconds).

    ``serving`` is true while a request is being handled.
    """

    __slots__ = (
        "_callback", "_decoder", "_held", "_held_bytes", "_holds", "_hub", "_lock", "_memory",
        "_readable", "_sock", "_writer", "address", "last_active", "peer", "serving",
    )  # fmt: skip

    def __init__(self, sock: Any, address: str, max_bytes: int, memory: RequestMemory) -> None:
        self.address = address
        self.last_active = time.monotonic()
        self.serving = False
        self.peer = Peer()
        self._memory = memory
        self._holds = False  # has memory for a large request
        self._sock = sock
        self._decoder = FrameDecoder(max_bytes)
        self._hub = gevent.get_hub()
        self._readable = self._hub.loop.io(sock.fileno(), _READ)
        self._lock = RLock()
        self._held: list[Any] = []
        self._held_bytes = 0
        self._callback: Any = None
        self._writer: Any = None  # the greenlet that sends the held replies while a request waits

    def fileno(self) -> int:
        descriptor: int = self._sock.fileno()
        return descriptor

    def run(self, handle: Handle) -> None:
        """Serve until the peer closes, violates the protocol, or ``handle`` raises.

        Replies to requests served before that are still sent.
        """
        current_peer.set(self.peer)
        try:
            self._serve(handle)
        finally:
            self.serving = False  # the remaining sends count as idle time
            self._memory.release(self)
            self._readable.close()
            try:
                self.flush()
            finally:
                if self._writer is not None:
                    self._writer.kill()

    def _serve(self, handle: Handle) -> None:
        receive, decoder, loop = self._sock.recv_into, self._decoder, self._hub.loop
        requests = read = 0
        drained = True
        looked = 0.0  # when all sockets were last polled
        while True:
            size = decoder.next_size
            if size > LARGEST_BUFFER:
                self._holds = True
                self._memory.hold(self, size)
            elif self._holds:
                self._holds = False
                self._memory.release(self)
            buffer = decoder.get_buffer()
            if drained:  # a read would most likely return no data
                self._hub.wait(self._readable)
                looked = time.monotonic()
            count = receive(buffer)
            if not count:
                return
            drained = count < len(buffer)
            self.last_active = time.monotonic()
            turn = loop.iteration
            for frame in decoder.received(count):
                if self._held:
                    self._flush_soon()
                if time.monotonic() - looked > _TURN_SECONDS:
                    socket.wait_write(self._sock.fileno())
                    looked = time.monotonic()
                self.serving = True
                reply = handle(frame, self.address)
                self.serving = False
                if reply is not None:
                    self._hold(reply)
                requests += 1
            if self._held:
                # If no request had to wait, the greenlets that they woke run before the replies.
                if drained and loop.iteration == turn and self._held_bytes <= _READ_BYTES:
                    self._flush_soon()
                else:
                    self.flush()
            read += count
            if requests >= _TURN_REQUESTS or read >= _TURN_BYTES:
                requests = read = 0
                gevent.sleep(0)

    def _hold(self, reply: list[Any]) -> None:
        self._held += reply
        for part in reply:
            self._held_bytes += len(part)
        if self._held_bytes > _HELD_BYTES:
            self.flush()

    def _flush_soon(self) -> None:
        """Let the loop send the replies, after the greenlets that the requests woke."""
        if self._callback is None:
            self._callback = self._hub.loop.run_callback(self._flush_while_waiting)

    def _flush_while_waiting(self) -> None:
        """Runs in the hub, which must not wait: sends what can be sent at once."""
        self._callback = None
        if not self._held or self._writer is not None:
            return
        if self._held_bytes > _READ_BYTES or not self._flush_at_once():
            self._writer = gevent.spawn(self._flush_quietly)

    def _flush_at_once(self) -> bool:
        """Send the held replies, which are short; False if some bytes must wait."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            data = b"".join([p if isinstance(p, _PLAIN) else p.read() for p in self._held])
            sent = os.write(self._sock.fileno(), data)
        except BlockingIOError:
            return False
        except Exception:
            self.shutdown()  # so that the connection's own greenlet gets the error
            return True
        finally:
            self._lock.release()
        self._held = [data[sent:]] if sent < len(data) else []
        self._held_bytes = len(data) - sent
        return sent == len(data)

    def _flush_quietly(self) -> None:
        try:
            while self._held:
                self.flush()
        except Exception:
            self.shutdown()  # the connection's own greenlet ends
        finally:
            self._writer = None

    def flush(self) -> None:
        """Send the replies that are held."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback.stop()
        with self._lock:
            held, self._held = self._held, []
            self._held_bytes = 0
            if held:
                self._write(held)

    def _write(self, parts: list[Any]) -> None:
        gathered: list[Any] = []
        for part in parts:
            plain = isinstance(part, _PLAIN)
            if len(part) <= _READ_BYTES:
                gathered.append(part if plain else part.read())
                continue
            if gathered:
                data = b"".join(gathered)
                sent = self._sock.send(data, MSG_MORE)
                if sent < len(data):
                    self._sock.sendall(data[sent:], MSG_MORE)
                gathered.clear()
            if plain:
                self._send(part)
            else:
                self._send_file(part)
        if gathered:
            self._send(gathered[0] if len(gathered) == 1 else b"".join(gathered))

    def _send(self, data: Any) -> None:
        """Send in one call without waiting: most replies fit the socket's buffer."""
        try:
            sent = os.write(self._sock.fileno(), data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._sock.sendall(memoryview(data)[sent:])

    def _send_file(self, part: Any) -> None:
        source, position, left = part.fileno(), part.position, len(part)
        target = self._sock.fileno()
        while left:
            try:
                sent = os.sendfile(target, source, position, left)
            except BlockingIOError:
                socket.wait_write(target)
                continue
            if not sent:
                raise OSError(f"{part} ends before its size")
            position += sent
            left -= sent

    def shutdown(self) -> None:
        """Wake the connection's greenlet wherever it waits; it then closes the connection."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
