"""Accepts connections, and closes them (kafka.network.SocketServer).

Does not interpret requests: ``handle`` gets the bytes of one frame and returns the parts of the
reply, or None if the request has no answer; see ``connection``. ``workers`` has the greenlets that
serve.
"""

from __future__ import annotations

import errno
import logging
import select
import socket as stdlib_socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

import gevent
from gevent import socket
from gevent.event import Event
from gevent.server import StreamServer

from kafka08.common import PLAINTEXT, bare
from kafka08.errors import KafkaError, ProtocolError
from kafka08.network.connection import Connection, Handle
from kafka08.network.connection_limits import ConnectionLimits
from kafka08.network.failures import Failures
from kafka08.network.half_open import HalfOpen
from kafka08.network.hosts import Address, bound_socket, first_address
from kafka08.network.memory import UNBOUNDED, RequestMemory
from kafka08.network.peer import Peer, Session
from kafka08.network.tls import Tls, principal
from kafka08.network.transport import HandshakeError, PlainSocket, TlsSocket
from kafka08.network.workers import Workers
from kafka08.protocol.codec import Part
from kafka08.runtime import SystemClock

logger = logging.getLogger("kafka.network.Acceptor")
processor_logger = logging.getLogger("kafka.network.Processor")

# How often connections with a waiting request are checked for a peer that has closed.
_LOOK_SECONDS = 1
# On systems other than Linux only peers that closed both halves are noticed.
_HUNG_UP = getattr(select, "POLLRDHUP", 0)
# How long a request being served may take at shutdown before its greenlet is killed.
STOP_SECONDS = 2
_ALL = "0.0.0.0"
_BACKLOG = 4096


class ConnectionClosed(KafkaError):
    """Raised by ``handle`` to close the connection, after the parts of a last reply. ``level`` is
    that of the line in the log."""

    level: ClassVar[int] = logging.INFO
    reply: Sequence[Part] = ()


Login = Callable[[Peer, Handle], Handle]
"""Makes the handler of a new connection, which gets the frames of the login first, and passes
requests on once the peer is known."""


class Listener(NamedTuple):
    """Where to listen. Without a ``host`` that is every interface, IPv4 and IPv6. With ``tls``
    everything is inside TLS; ``name_of`` makes user names of the subjects of certificates."""

    host: str | None
    port: int
    name: str = PLAINTEXT
    tls: Tls | None = None
    name_of: Callable[[str], str] = str


class _Acceptor(StreamServer):  # type: ignore[misc]
    """Accepts, and leaves the sockets open. ``wait`` says for how many seconds it may not."""

    def __init__(
        self, sock: socket.socket, accept: Callable[..., None], wait: Callable[[], float]
    ) -> None:
        self._wait = wait
        super().__init__(sock, accept, spawn=None)

    def full(self) -> bool:
        """Called before each accept; if true, none until the next check."""
        seconds = self._wait()
        if seconds:
            self._next_look = self.loop.timer(seconds)
            self._next_look.start(self._start_accepting_if_started)
        return seconds > 0

    def do_close(self, *_: object) -> None:
        """Connections close their sockets."""


class Server:
    """The listening sockets and their connections.

    ``limits``: the numbers of connections, and how fast they may come. ``idle_ms`` closes
    connections without traffic for that long, unless a request of theirs is being served. (0.8.2.2
    never closes one that has not sent a request; here it counts as idle.) ``queued_max_bytes``
    limits large requests in memory, see ``memory``. ``failures`` are logged from here.
    """

    def __init__(
        self,
        listeners: Sequence[Listener],
        *,
        max_request_bytes: int,
        send_buffer_bytes: int = 0,
        receive_buffer_bytes: int = 0,
        limits: ConnectionLimits | None = None,
        idle_ms: int = 600_000,
        queued_max_bytes: int = UNBOUNDED,
        failures: Failures | None = None,
    ) -> None:
        self._failures = failures or Failures(SystemClock())
        self.memory = RequestMemory(queued_max_bytes)
        self._max_request_bytes = max_request_bytes
        self._buffers = (
            (stdlib_socket.SO_SNDBUF, send_buffer_bytes),
            (stdlib_socket.SO_RCVBUF, receive_buffer_bytes),
        )
        self._limits = limits or ConnectionLimits(SystemClock())
        self._idle = idle_ms / 1000
        self._connections: set[Connection] = set()
        self._half_open = HalfOpen()
        self._sockets: list[tuple[Listener, socket.socket]] = []
        self._logins: Mapping[str, Login] = {}
        self._none_left = Event()
        self._workers: Workers[Connection] | None = None
        self._acceptors: list[_Acceptor] = []
        self._tasks: list[gevent.Greenlet] = []
        # Before anything is announced, so that a taken port fails the start.
        for listener in listeners:
            self._sockets.append((listener, self._listen(listener)))

    def _listen(self, listener: Listener) -> socket.socket:
        host, port = bare(listener.host or ""), listener.port
        try:
            if host:
                return bound_socket(*first_address(host, port), _BACKLOG, self._buffers)
            return self._bound_everywhere(port)
        except OSError as error:
            for _, sock in self._sockets:
                sock.close()
            raise KafkaError(
                f"Socket server failed to bind to {host or _ALL}:{port}: {error.strerror}."
            ) from error

    def _bound_everywhere(self, port: int) -> socket.socket:
        """One socket for both families; for IPv4 where the machine has no IPv6."""
        try:
            return bound_socket(stdlib_socket.AF_INET6, ("::", port), _BACKLOG, self._buffers)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise
            return bound_socket(stdlib_socket.AF_INET, (_ALL, port), _BACKLOG, self._buffers)

    @property
    def ports(self) -> list[int]:
        """The bound ports (chosen by the system when 0 was asked for), in the listeners' order."""
        return [sock.getsockname()[1] for _, sock in self._sockets]

    @property
    def connections(self) -> int:
        return len(self._connections)

    def backlog(self) -> tuple[int, int, int]:
        """Requests that wait to be handled, replies that wait to be sent, and connections on which
        one is half sent."""
        found = [each.backlog for each in self._connections]
        frames = sum(each[0] for each in found)
        return frames, sum(each[1] for each in found), sum(each[2] for each in found)

    def start(self, handle: Handle, logins: Mapping[str, Login] | None = None) -> None:
        """Serve with ``handle`` from now on: see the module's docstring.

        ``logins``: the login of a listener, by its name. The requests of other listeners are served
        at once.
        """
        self._logins = logins or {}
        self._workers = Workers(self._ended)
        for listener, sock in self._sockets:
            accept = partial(self._accept, listener, handle, self._workers)
            acceptor = _Acceptor(sock, accept, partial(self._limits.wait, listener.name))
            acceptor.start()
            self._acceptors.append(acceptor)
        self._tasks = [gevent.spawn(self._look)]
        if self._idle > 0:
            self._tasks.append(gevent.spawn(self._reap))
        for (listener, _), port in zip(self._sockets, self.ports, strict=True):
            host = bare(listener.host or "") or _ALL
            logger.info("Awaiting socket connections on %s:%d.", host, port)

    def stop(self) -> None:
        """Stop accepting, end every connection, wait for those whose requests are being served."""
        for task in self._tasks:
            task.kill()
        for acceptor in self._acceptors:
            acceptor.stop()
        for connection in list(self._connections):
            connection.shutdown()
        assert self._workers is not None
        self._wait_for_ends()
        self._workers.kill()
        self._wait_for_ends()

    def _wait_for_ends(self) -> None:
        if self._connections:
            self._none_left.clear()
            self._none_left.wait(STOP_SECONDS)

    def _accept(
        self,
        listener: Listener,
        handle: Handle,
        workers: Workers[Connection],
        accepted: socket.socket,
        address: Address,
    ) -> None:
        """Runs in the hub."""
        host = address[0].removeprefix("::ffff:")  # IPv4 on a socket for both families
        sock = PlainSocket(fileno=accepted.detach())
        rejection = self._limits.rejection(host)
        if rejection:
            self._failures.rejected(host, rejection)
            sock.close()
            return
        sock.setblocking(False)
        peer = Peer(f"{host}:{address[1]}", listener=listener.name)
        login = self._logins.get(listener.name)
        peer.is_admitted = login is None and listener.tls is None
        if login is not None:
            handle = login(peer, handle)
        try:
            sock.setsockopt(stdlib_socket.IPPROTO_TCP, stdlib_socket.TCP_NODELAY, 1)
            connection = self._connection(sock, peer, listener, handle)
        except OSError as error:
            processor_logger.debug("Connection to %s ended: %s", host, error)
            sock.close()
            return
        if self._limits.add(host, listener.name):
            self._make_room()
        self._connections.add(connection)
        if not peer.is_admitted:
            self._half_open.add(connection)
        workers.watch(connection)

    def end_sessions(self, over: Collection[Session]) -> None:
        """Close the connections whose peers have one of these logins."""
        for connection in list(self._connections):
            session = connection.peer.session
            if session in over:
                processor_logger.info(
                    "Closing socket connection to %s: the credential of its login has changed",
                    connection.address,
                )
                connection.shutdown()

    def _make_room(self) -> None:
        """Close the connection of a client that has been idle for the longest."""
        exempt = self._limits.exempt
        clients = [each for each in self._connections if each.peer.listener != exempt]
        if clients:
            min(clients, key=lambda each: (each.serving, each.last_active)).shutdown()

    def _connection(
        self, sock: PlainSocket, peer: Peer, listener: Listener, handle: Handle
    ) -> Connection:
        made = self._max_request_bytes, self.memory, handle
        if listener.tls is None:
            return Connection(sock, peer, *made)
        wrapped = listener.tls.accepted(sock)
        has_login = listener.name in self._logins
        return Connection(wrapped, peer, *made, partial(_greet, wrapped, peer, listener, has_login))

    def _ended(self, connection: Connection, error: BaseException | None) -> None:
        """A connection has ended by itself or by an error: close it."""
        host = connection.peer.host
        if isinstance(error, ConnectionClosed):
            connection.hold(error.reply)
        try:
            connection.close()
        except Exception as unsent:
            error = error or unsent
        finally:
            self._connections.discard(connection)
            self._half_open.discard(connection)
            self._limits.discard(host, connection.peer.listener)
            if not self._connections:
                self._none_left.set()
        if isinstance(error, ConnectionClosed):
            processor_logger.log(error.level, "Closing socket connection to %s: %s", host, error)
        elif isinstance(error, ProtocolError):
            # Strangers do not fill the log.
            level = logging.ERROR if connection.peer.is_admitted else logging.DEBUG
            processor_logger.log(level, "Closing socket for %s because of error: %s", host, error)
        elif isinstance(error, HandshakeError):
            self._failures.login_failed(host, str(error))
        elif isinstance(error, OSError):
            processor_logger.debug("Connection to %s ended: %s", host, error)
        elif isinstance(error, Exception):
            processor_logger.error("Closing socket for %s because of error", host, exc_info=error)

    def _look(self) -> None:
        """Check for peers that have closed: a connection whose request waits is not read from.
        Close connections whose peers are not admitted in time, however much they send."""
        while True:
            gevent.sleep(_LOOK_SECONDS)
            self._failures.flush()
            for late in self._half_open.check():
                processor_logger.debug("No handshake or login in time from %s", late.address)
            waiting = {each.fileno(): each for each in self._connections if each.peer.wake}
            poll = select.poll()
            for descriptor in waiting:
                poll.register(descriptor, _HUNG_UP)
            for descriptor, _ in poll.poll(0):
                waiting[descriptor].peer.end()

    def _reap(self) -> None:
        while True:
            gevent.sleep(min(max(self._idle / 10, 0.05), 30))
            oldest = time.monotonic() - self._idle
            for connection in list(self._connections):
                if connection.last_active < oldest and not connection.serving:
                    processor_logger.debug("Closing idle connection to %s", connection.address)
                    connection.shutdown()


def _greet(sock: TlsSocket, peer: Peer, listener: Listener, has_login: bool) -> bool:
    """Go on with the handshake; true when it is over. The certificate says who the peer is, unless
    it has to log in."""
    if not sock.handshake():
        return False
    if not has_login:
        peer.admit(principal(sock, listener.name_of))
    return True
