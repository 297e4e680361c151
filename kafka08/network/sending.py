"""Sends parts of replies: bytes, and slices of log files, which go from the page cache to the
socket by sendfile if they are long."""

from __future__ import annotations

from functools import partial
from socket import MSG_MORE
from typing import Final

from gevent import socket

from kafka08.network.transport import PlainSocket, TlsSocket
from kafka08.protocol.codec import Buffer, Part, Slice

# Parts up to this size are copied (or read) and sent with the rest in one call.
READ_BYTES: Final = 16 * 1024
_PLAIN = (bytes, bytearray, memoryview)


def joined(parts: list[Part]) -> bytes:
    """The parts in one piece. Raises as ``FileSlice.read`` does."""
    if len(parts) == 1 and isinstance(whole := parts[0], bytes):
        return whole
    return b"".join([part if isinstance(part, _PLAIN) else part.read() for part in parts])


def send_parts(sock: PlainSocket | TlsSocket, parts: list[Part]) -> None:
    """Send the parts of replies in order; the greenlet may wait. Raises OSError."""
    gathered: list[Buffer] = []
    for part in parts:
        if len(part) <= READ_BYTES:
            gathered.append(part if isinstance(part, _PLAIN) else part.read())
            continue
        # sendfile gives 16 pages at a time to TCP. From a page on, 64 KB go there at once;
        # otherwise the last bytes wait where the kernel paces connections (BBR).
        first = b"" if isinstance(part, _PLAIN) else part.read_to_page()
        if first:
            gathered.append(first)
        if gathered:
            _send(sock, b"".join(gathered), MSG_MORE)
            gathered.clear()
        if isinstance(part, _PLAIN):
            _send(sock, part)
        else:
            _send_file(sock, part, len(first))
    if gathered:
        _send(sock, gathered[0] if len(gathered) == 1 else b"".join(gathered))


def _send(sock: PlainSocket | TlsSocket, data: Buffer, flags: int = 0) -> None:
    left = memoryview(data)
    while left:
        try:
            sent = sock.send(left, flags)
        except BlockingIOError:
            socket.wait_write(sock.fileno())
            continue
        left = left[sent:]


def _send_file(sock: PlainSocket | TlsSocket, part: Slice, sent: int) -> None:
    """Send a slice of a file without its first bytes, which were sent."""
    wait = partial(socket.wait_write, sock.fileno())
    sock.send_file(part.fileno(), part.position + sent, len(part) - sent, wait)
