"""Sends parts of replies: bytes, and slices of log files, which go from the page cache to the
socket by sendfile if they are long."""

from __future__ import annotations

from functools import partial
from socket import MSG_MORE
from typing import Any, Final

from gevent import socket

from kafka08.network.transport import PlainSocket, TlsSocket

# Parts up to this size are copied (or read) and sent with the rest in one call.
READ_BYTES: Final = 16 * 1024
_PLAIN = (bytes, bytearray, memoryview)


def joined(parts: list[Any]) -> bytes:
    """The parts in one piece. Raises as ``FileSlice.read`` does."""
    if len(parts) == 1 and isinstance(parts[0], bytes):
        whole: bytes = parts[0]
        return whole
    return b"".join([part if isinstance(part, _PLAIN) else part.read() for part in parts])


def send_parts(sock: PlainSocket | TlsSocket, parts: list[Any]) -> None:
    """Send the parts of replies in order; the greenlet may wait. Raises OSError."""
    gathered: list[Any] = []
    for part in parts:
        plain = isinstance(part, _PLAIN)
        if len(part) <= READ_BYTES:
            gathered.append(part if plain else part.read())
            continue
        # sendfile gives 16 pages at a time to TCP. From a page on, 64 KB go there at once;
        # otherwise the last bytes wait where the kernel paces connections (BBR).
        first = b"" if plain else part.read_to_page()
        if first:
            gathered.append(first)
        if gathered:
            _send(sock, b"".join(gathered), MSG_MORE)
            gathered.clear()
        if plain:
            _send(sock, part)
        else:
            _send_file(sock, part, len(first))
    if gathered:
        _send(sock, gathered[0] if len(gathered) == 1 else b"".join(gathered))


def _send(sock: PlainSocket | TlsSocket, data: Any, flags: int = 0) -> None:
    left = memoryview(data)
    while left:
        try:
            sent = sock.send(left, flags)
        except BlockingIOError:
            socket.wait_write(sock.fileno())
            continue
        left = left[sent:]


def _send_file(sock: PlainSocket | TlsSocket, part: Any, sent: int) -> None:
    """Send a slice of a file without its first bytes, which were sent."""
    wait = partial(socket.wait_write, sock.fileno())
    sock.send_file(part.fileno(), part.position + sent, len(part) - sent, wait)
