"""One client's connection: frames in, replies out, in order.

Requests that arrived together are served one after the other and answered with one write, as
long as none of them has to wait: a request that waits (for bytes to fetch, for acks) lets the
replies before it go first. Replies are bytes or slices of a log file; those that are long travel
from the page cache to the socket by sendfile. Knows nothing of what a request means.

A frame's memory belongs to the connection's receive buffer and is reused after ``handle``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from socket import MSG_MORE
from typing import Any

import gevent
from gevent import socket
from gevent.lock import RLock

from kafka08.protocol.framing import FrameDecoder

Handle = Callable[[memoryview, str], "list[Any] | None"]

# A connection that always has data would keep every other greenlet waiting: after this many
# requests, or bytes, in a row it lets the others run.
_TURN_REQUESTS = 8
_TURN_BYTES = 1 << 20
# Replies are not held together beyond this.
_HELD_BYTES = 64 * 1024
# Slices of files up to this size are read and go with the rest: one call instead of three.
_READ_BYTES = 16 * 1024


class Connection:
    """A socket, its frames and replies, and when it was last heard (monotonic seconds).

    ``serving`` while a request is in work.
    """

    __slots__ = (
        "_callback", "_decoder", "_held", "_held_bytes", "_lock", "_loop", "_sock",
        "address", "last_active", "serving",
    )  # fmt: skip

    def __init__(self, sock: Any, address: str, max_bytes: int) -> None:
        self.address = address
        self.last_active = time.monotonic()
        self.serving = False
        self._sock = sock
        self._decoder = FrameDecoder(max_bytes)
        self._loop = gevent.get_hub().loop
        self._lock = RLock()
        self._held: list[Any] = []
        self._held_bytes = 0
        self._callback: Any = None

    def run(self, handle: Handle) -> None:
        """Serve until the peer closes, the protocol is broken or ``handle`` raises.

        Replies to requests served before that are sent all the same.
        """
        try:
            self._serve(handle)
        finally:
            self.serving = False  # what is left may idle out like anything else
            self.flush()

    def _serve(self, handle: Handle) -> None:
        receive, decoder = self._sock.recv_into, self._decoder
        requests = octets = 0
        while True:
            count = receive(decoder.get_buffer())
            if not count:
                return
            self.last_active = time.monotonic()
            for frame in decoder.received(count):
                if self._held and self._callback is None:
                    self._callback = self._loop.run_callback(self._flush_while_waiting)
                self.serving = True
                reply = handle(frame, self.address)
                self.serving = False
                if reply is not None:
                    self._hold(reply)
                requests += 1
            if self._held:
                self.flush()
            octets += count
            if requests >= _TURN_REQUESTS or octets >= _TURN_BYTES:
                requests = octets = 0
                gevent.sleep(0)

    def _hold(self, reply: list[Any]) -> None:
        self._held += reply
        for part in reply:
            self._held_bytes += len(part)
        if self._held_bytes > _HELD_BYTES:
            self.flush()

    def _flush_while_waiting(self) -> None:
        """The loop got to run, so a request waits: send what is ready (in the hub: no waiting)."""
        self._callback = None
        if self._held:
            gevent.spawn(self._flush_quietly)

    def _flush_quietly(self) -> None:
        try:
            self.flush()
        except OSError:
            pass  # the connection's own greenlet will find out

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
            if isinstance(part, (bytes, bytearray, memoryview)):
                gathered.append(part)
                continue
            if len(part) <= _READ_BYTES:
                gathered.append(part.read())
                continue
            if gathered:
                self._sock.sendall(b"".join(gathered), MSG_MORE)
                gathered.clear()
            self._send_file(part)
        if gathered:
            self._send(gathered[0] if len(gathered) == 1 else b"".join(gathered))

    def _send(self, data: Any) -> None:
        """Most replies fit the socket's buffer: one call that need not wait sends them."""
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
        """Wake the connection's greenlet wherever it waits; closing is its own business."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
