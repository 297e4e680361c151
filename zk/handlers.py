"""The library below a session: kazoo, and the tasks and sockets that it uses.

These are threads or greenlets, and TLS if the session has it. Tests have another library.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler

from kafka08.runtime import Clock, SystemClock

Context = Callable[[], ssl.SSLContext]
Sockets = Sequence[socket.socket]
Ready = tuple[Sockets, Sockets, Sockets]
Resolve = Callable[..., Any]


def handler(gevent: bool, context: Context | None = None) -> Any:
    """A handler for one client."""
    kind = _over_addresses(_greenlets() if gevent else SequentialThreadingHandler, gevent)
    return kind() if context is None else _with_tls(kind, context, gevent)


def _over_addresses(kind: Any, gevent: bool) -> Any:
    resolve = _resolver(gevent)

    class AddressesHandler(kind):  # type: ignore[misc]
        def create_connection(
            self,
            address: tuple[str, int],
            hostname: str = "",
            timeout: float | None = None,
            **_: object,
        ) -> socket.socket:
            """Connected to the address, or else to another one of the host. Raises OSError.

            kazoo warns of each failure. That nobody listens on ::1 is none, if 127.0.0.1 answers
            for localhost.
            """
            connect: Callable[..., socket.socket] = super().create_connection
            end = None if timeout is None else time.monotonic() + timeout
            try:
                return connect(address, timeout=timeout)
            except OSError:
                for other in _others(resolve, hostname, address):
                    left = None if end is None else end - time.monotonic()
                    with contextlib.suppress(OSError):
                        return connect(other, timeout=left)
                raise

    return AddressesHandler


def _resolver(gevent: bool) -> Resolve:
    if not gevent:
        return socket.getaddrinfo
    from gevent.socket import getaddrinfo

    return getaddrinfo  # type: ignore[no-any-return]


def _others(resolve: Resolve, host: str, address: tuple[str, int]) -> list[tuple[str, int]]:
    """The addresses of ``host`` beside ``address``."""
    try:
        found = resolve(host, address[1], type=socket.SOCK_STREAM) if host else []
    except OSError:
        return []
    every = [(str(each[4][0]), int(each[4][1])) for each in found]
    return [each for each in every if each != tuple(address)]


def _greenlets() -> Any:
    from kazoo.handlers.gevent import SequentialGeventHandler

    class GreenletHandler(SequentialGeventHandler):  # type: ignore[misc]
        """Asks the kernel first which sockets are ready.

        kazoo selects twice per request, and gevent creates a new selector each time, which takes
        half the time of reading many nodes. The number of ready sockets is bounded by the requests
        in flight, so other greenlets get their turn.
        """

        def select(
            self, rlist: Sockets, wlist: Sockets, xlist: Sockets, timeout: float | None = None
        ) -> Ready:
            if not wlist and not xlist:
                poll = select.poll()
                for each in rlist:
                    poll.register(each, select.POLLIN)
                ready = {fd for fd, _ in poll.poll(0)}
                if ready:
                    return [each for each in rlist if each.fileno() in ready], [], []
            selected: Ready = super().select(rlist, wlist, xlist, timeout)
            return selected

    return GreenletHandler


def _with_tls(kind: Any, context: Context, gevent: bool) -> Any:
    secured = _greenlet_socket if gevent else _thread_socket

    class TlsHandler(kind):  # type: ignore[misc]
        def create_connection(
            self,
            address: tuple[str, int],
            hostname: str = "",
            timeout: float | None = None,
            **_: object,
        ) -> socket.socket:
            """Connected, after the handshake. Raises OSError."""
            sock = super().create_connection(address, hostname, timeout)
            try:
                return secured(sock, context(), hostname)
            except (OSError, ValueError) as error:
                sock.close()
                why = getattr(error, "verify_message", None) or getattr(error, "reason", None)
                text = f"TLS handshake with {hostname}:{address[1]} failed: {why or error}"
                # kazoo logs the text of errors that have a number.
                raise OSError(errno.ECONNABORTED, text) from error

        def select(
            self, rlist: Sockets, wlist: Sockets, xlist: Sockets, timeout: float | None = None
        ) -> Ready:
            """No poll announces bytes that are decrypted already."""
            ready = [each for each in rlist if hasattr(each, "pending") and each.pending()]
            return (ready, [], []) if ready else super().select(rlist, wlist, xlist, timeout)

    return TlsHandler()


def _thread_socket(sock: socket.socket, context: ssl.SSLContext, host: str) -> socket.socket:
    return context.wrap_socket(sock, server_hostname=host)


def _greenlet_socket(sock: socket.socket, context: ssl.SSLContext, host: str) -> socket.socket:
    from gevent.ssl import SSLSocket

    secured: socket.socket = SSLSocket(sock=sock, server_hostname=host, _context=context)
    return secured


class Library(NamedTuple):
    """``client`` is called as KazooClient is, with the handler that ``handler(gevent, context)``
    made; ``clock`` times the calls."""

    client: Callable[..., Any] = KazooClient
    handler: Callable[[bool, Context | None], Any] = handler
    clock: Clock = SystemClock()


KAZOO = Library()
