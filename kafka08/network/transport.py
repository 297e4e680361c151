"""Sockets that do not block, plain and with TLS, which a connection uses in one way.

``recv_into`` returns fewer bytes than there is room only if no more are there. ``send`` and
``recv_into`` raise BlockingIOError where they would have to wait; with TLS ``send`` must be given
the same bytes then, and perhaps more behind them. ``send_file`` waits by calling ``wait_write``.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from typing import Any

# As much of a file is read and encrypted at a time.
_PIECE_BYTES = 128 * 1024


class PlainSocket(socket.socket):
    __slots__ = ()

    def send_file(
        self, source: int, position: int, size: int, wait_write: Callable[[], object]
    ) -> None:
        """Send ``size`` bytes of the file, from the page cache. Raises OSError."""
        target = self.fileno()
        while size:
            try:
                sent = os.sendfile(target, source, position, size)
            except BlockingIOError:
                wait_write()
                continue
            if not sent:
                raise OSError("the file ends before its size")
            position += sent
            size -= sent


# The reasons of OpenSSL for first bytes that are not TLS, or of a peer that has gone.
_NO_TLS = {
    "BAD_RECORD_TYPE",
    "HTTPS_PROXY_REQUEST",
    "HTTP_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_TOO_LONG",
    "UNEXPECTED_EOF_WHILE_READING",
    "UNKNOWN_PROTOCOL",
    "WRONG_VERSION_NUMBER",
}


class HandshakeError(OSError):
    """A handshake that was begun and has failed."""


class TlsSocket(ssl.SSLSocket):
    """The server's side of TLS. ``handshake`` comes first."""

    def handshake(self) -> bool:
        """Go on with the handshake; False if more bytes are needed. Raises OSError."""
        try:
            self.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLWantWriteError as error:
            raise ConnectionAbortedError("the peer does not read in a handshake") from error
        except ssl.SSLError as error:
            if error.reason is None or error.reason in _NO_TLS:
                raise
            why = getattr(error, "verify_message", None) or error.reason
            raise HandshakeError(f"SSL handshake failed: {why}") from error
        return True

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        view, done = memoryview(buffer), 0
        while done < len(view):
            try:
                count: int = self.read(len(view) - done, view[done:])  # type: ignore[assignment]
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if not done:
                    raise BlockingIOError from None
                break
            if not count:
                break  # the next call returns 0
            done += count
        return done

    def send(self, data: Any, flags: int = 0) -> int:
        try:
            return super().send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def send_file(
        self, source: int, position: int, size: int, wait_write: Callable[[], object]
    ) -> None:
        while size:
            piece = memoryview(os.pread(source, min(size, _PIECE_BYTES), position))
            if not piece:
                raise OSError("the file ends before its size")
            position += len(piece)
            size -= len(piece)
            while piece:
                try:
                    piece = piece[self.send(piece) :]
                except BlockingIOError:
                    wait_write()

    def shutdown(self, how: int) -> None:
        # SSLSocket's forgets the TLS state, and what is sent then goes out as plain bytes.
        socket.socket.shutdown(self, how)

    def close(self) -> None:
        try:
            state = vars(self).get("_sslobj")
            if state is not None:
                state.shutdown()  # shows the peer that nothing was cut off
        except (OSError, ValueError):
            pass
        super().close()
