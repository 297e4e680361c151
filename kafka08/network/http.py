"""Serves a WSGI application over HTTP/1.1 on one listener, with bounds on what clients may take.

``gevent.pywsgi`` parses requests and writes answers. It has no limits of its own, so this module
adds them: a request must be there as a whole, with its body, within the deadline; every 64 KiB of
an answer must be taken within it; connections, headers and bodies are bounded; ``Host`` must be a
known name, as pages of other sites could reach a loopback listener by a name of theirs (DNS
rebinding).
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket as stdlib_socket
from collections.abc import Callable, Collection, Iterable
from http.client import HTTPException
from io import BytesIO
from typing import Any

import gevent
import gevent.pool
import gevent.ssl
from gevent import pywsgi, socket

from kafka08.common import bare
from kafka08.errors import KafkaError
from kafka08.network.hosts import first_address
from kafka08.network.tls import Tls

logger = logging.getLogger("kafka.network.HttpServer")

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]
"""A WSGI application. ``wsgi.input`` has the whole body, and ``CONTENT_LENGTH`` is its size. It is
called on greenlets, several at a time, so it must not keep a request in a thread's variable."""

CONNECTIONS = 50
DEADLINE_MS = 10_000
_HEAD_BYTES = 16 * 1024
_PIECE_BYTES = 64 * 1024
_ANY = "*"
_BODY = b"%s\n"
_ANSWER = (
    b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s"
)
_BAD = "400 Bad Request"
_MISDIRECTED = "421 Misdirected Request"
_TOO_LARGE = "413 Content Too Large"


class _RefusedError(ValueError):
    """A request that is answered without the application. ``status``: code and reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status

    @property
    def answer(self) -> tuple[str, bytes]:
        body = _BODY % str(self).encode()
        return self.status, _ANSWER % (self.status.encode(), len(body), body)


class _PeerGoneError(ConnectionResetError):
    """An answer could not be sent, or not in time."""


class _ApplicationError(Exception):
    """Hides errors of the application that would be taken for those of the connection."""


class Hosts:
    """The values of ``Host`` that are served: addresses, names of this machine's loopback, and
    ``names``; ``*`` among these stands for all."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = {"localhost", *(_plain(name) for name in names)}

    def __contains__(self, host: str) -> bool:
        """``host``: the value of the header, with or without a port."""
        name = host.rpartition(":")[0] if _has_port(host) else host
        return _ANY in self._names or _is_address(bare(name)) or _plain(name) in self._names


def _has_port(host: str) -> bool:
    before, colon, port = host.rpartition(":")
    return bool(colon) and not port.strip("0123456789") and (":" not in before or "]" in before)


def _plain(name: str) -> str:
    return bare(name).rstrip(".").lower()


def _is_address(name: str) -> bool:
    """Whether it is an IP address, to which no foreign page can be bound by a name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class HttpServer:
    """One listener. Raises KafkaError if the port cannot be bound; serves from ``start`` on.

    ``connections``: so many at a time; further ones wait to be accepted. ``deadline_ms``: see the
    module's docstring; it also ends connections that wait for their next request. The application
    itself may take any time. ``allowed_hosts``: names to accept in ``Host`` beside ``host`` and the
    loopback's, ``*`` for all. ``body_bytes``: larger bodies are refused with 413. ``name`` is for
    the log.
    """

    def __init__(
        self,
        host: str,
        port: int,
        application: Application,
        *,
        name: str,
        connections: int = CONNECTIONS,
        deadline_ms: int = DEADLINE_MS,
        allowed_hosts: Collection[str] = (),
        body_bytes: int = 0,
        tls: Tls | None = None,
    ) -> None:
        self._name = name
        self._host = host
        sock = _bound(name, host, port)
        self.port: int = sock.getsockname()[1]
        self._server = _WsgiServer(
            sock,
            application,
            gevent.pool.Pool(connections),
            deadline_ms / 1000,
            Hosts([host, *allowed_hosts]),
            body_bytes,
            tls,
        )

    def start(self) -> None:
        self._server.start()
        logger.info("%s: awaiting HTTP requests on %s:%d.", self._name, self._host, self.port)

    def stop(self, grace_ms: int = 1_000) -> None:
        """Close the listener and idle connections; requests in progress have ``grace_ms``."""
        self._server.close()
        for task in list(self._server.idle):
            task.kill(block=False)
        self._server.stop(grace_ms / 1000)


def _bound(name: str, host: str, port: int) -> Any:
    sock = None
    try:
        if not 0 <= port < 1 << 16:
            raise OverflowError("no such port")
        family, address = first_address(host, port)
        sock = socket.socket(family, stdlib_socket.SOCK_STREAM)
        sock.setsockopt(stdlib_socket.SOL_SOCKET, stdlib_socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(128)
    except (OSError, OverflowError) as error:
        if sock is not None:
            sock.close()
        reason = getattr(error, "strerror", None) or error
        raise KafkaError(f"{name}: cannot listen on {host}:{port}: {reason}.") from error
    return sock


class _Handler(pywsgi.WSGIHandler):  # type: ignore[misc]
    """One connection."""

    def __init__(self, sock: Any, address: Any, server: _WsgiServer) -> None:
        super().__init__(sock, address, server)
        self._reading: Any = gevent.Timeout(None)

    def handle_one_request(self) -> Any:
        server, task = self.server, gevent.getcurrent()
        self._reading = reading = gevent.Timeout.start_new(server.deadline)
        server.idle.add(task)
        try:
            answer = super().handle_one_request()
            return None if answer is True and server.closed else answer
        except _RefusedError as refused:
            return refused.answer
        except gevent.Timeout as timeout:
            if timeout is not reading:
                raise
            logger.debug("No whole request in time from %s", self.client_address)
            return None
        finally:
            reading.close()
            server.idle.discard(task)

    def MessageClass(self, rfile: Any, *_: Any) -> Any:
        """Read the headers."""
        self.server.idle.discard(gevent.getcurrent())
        head = bytearray()
        while True:
            line = rfile.readline(_HEAD_BYTES)
            head += line
            if len(head) > _HEAD_BYTES:
                raise _RefusedError("431 Request Header Fields Too Large", "the headers are long")
            if line in (b"\r\n", b"\n"):
                break
            if not line:
                raise _RefusedError(_BAD, "the headers have no end")
        try:
            headers = pywsgi.headers_factory(BytesIO(head))
        except HTTPException as error:
            raise _RefusedError(_BAD, "too many headers") from error
        _check_framing(headers)
        return headers

    def read_request(self, raw_requestline: str) -> Any:
        is_read = super().read_request(raw_requestline)
        if not self.path.startswith("/"):
            raise _RefusedError(_BAD, "the target must begin with /")
        if self.request_version not in ("HTTP/1.0", "HTTP/1.1"):
            raise _RefusedError("505 HTTP Version Not Supported", "only HTTP/1.0 and 1.1")
        hosts = self.headers.get_all("host") or []
        if len(hosts) > 1 or (not hosts and self.request_version == "HTTP/1.1"):
            raise _RefusedError(_BAD, "one Host header is needed")
        if hosts and hosts[0].strip() not in self.server.hosts:
            raise _RefusedError(_MISDIRECTED, "this Host is not served here")
        return is_read

    def get_environ(self) -> Environ:
        """With the body, which is read before the application is called."""
        environ: Environ = super().get_environ()
        limit = self.server.body_bytes
        if (self.content_length or 0) > limit:
            raise _RefusedError(_TOO_LARGE, f"the body may have {limit} bytes")
        try:
            body = self.wsgi_input.read(limit + 1) if self._has_body(environ) else b""
        except OSError as error:
            raise _RefusedError(_BAD, "the body is not whole") from error
        if len(body) > limit:
            raise _RefusedError(_TOO_LARGE, f"the body may have {limit} bytes")
        self._reading.close()
        environ["wsgi.input"] = BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        return environ

    def _has_body(self, environ: Environ) -> bool:
        return bool(self.content_length) or "HTTP_TRANSFER_ENCODING" in environ

    def run_application(self) -> None:
        try:
            super().run_application()
        except _PeerGoneError:
            raise
        except OSError as error:
            raise _ApplicationError(str(error)) from error

    def finalize_headers(self) -> None:
        super().finalize_headers()
        if self.command == "HEAD":
            self.response_use_chunked = False

    def _write(self, data: bytes, *_: Any) -> None:
        if self.command != "HEAD":
            super()._write(data)

    def _sendall(self, data: Any) -> None:
        left = memoryview(data)
        try:
            while left:
                super()._sendall(left[:_PIECE_BYTES])
                left = left[_PIECE_BYTES:]
        except OSError as error:  # a TimeoutError too: sockets have the deadline as their timeout
            raise _PeerGoneError(errno.ECONNRESET, str(error)) from error

    def _handle_client_error(self, ex: Exception) -> tuple[str, bytes]:
        logger.debug("Bad request from %s: %s", self.client_address, ex)
        return ex.answer if isinstance(ex, _RefusedError) else _RefusedError(_BAD, "bad").answer

    def _log_error(self, t: Any, v: Any, tb: Any) -> None:
        if issubclass(t, Exception):
            line = self.requestline.split("?")[0]  # what is asked for may be secret
            logger.error("Error while answering %s", line, exc_info=(t, v, tb))


def _check_framing(headers: Any) -> None:
    """Refuse headers that leave doubt about where the request ends."""
    lengths = headers.get_all("content-length") or []
    codings = headers.get_all("transfer-encoding") or []
    if headers.defects or headers.get_payload():
        raise _RefusedError(_BAD, "a header line is malformed")
    if len(lengths) + len(codings) > 1:
        raise _RefusedError(_BAD, "more than one length")
    for length in lengths:
        if not (length.strip().isascii() and length.strip().isdigit()) or len(length) > 18:
            raise _RefusedError(_BAD, "Content-Length is not a number")
    for coding in codings:
        if coding.strip().lower() != "chunked":
            raise _RefusedError("501 Not Implemented", "the only transfer encoding is chunked")


class _WsgiServer(pywsgi.WSGIServer):  # type: ignore[misc]
    """``deadline`` in seconds. ``idle``: the greenlets that wait for a request's first line."""

    handler_class = _Handler

    def __init__(
        self,
        sock: Any,
        application: Application,
        pool: Any,
        deadline: float,
        hosts: Hosts,
        body_bytes: int,
        tls: Tls | None,
    ) -> None:
        self.deadline = deadline
        self.hosts = hosts
        self.body_bytes = body_bytes
        self.idle: set[Any] = set()
        self._tls = tls
        host, port = sock.getsockname()[:2]
        environ = {
            "wsgi.url_scheme": "http" if tls is None else "https",
            "SERVER_NAME": host,
            "SERVER_PORT": str(port),
        }
        super().__init__(sock, application, spawn=pool, log=None, error_log=None, environ=environ)

    def handle(self, sock: Any, address: Any) -> None:
        sock.settimeout(self.deadline)
        sock.setsockopt(stdlib_socket.IPPROTO_TCP, stdlib_socket.TCP_NODELAY, 1)
        try:
            if self._tls is not None:
                with gevent.Timeout(self.deadline, TimeoutError("no handshake in time")):
                    context = self._tls.context
                    sock = gevent.ssl.SSLSocket(sock=sock, server_side=True, _context=context)
            _Handler(sock, address, self).handle()
        except OSError as error:
            logger.debug("Connection to %s ended: %s", address, error)
