"""Serves a WSGI application over HTTP/1.1 on one listener, with bounds on what clients may take.

``h11`` parses requests and frames answers. A request must be there as a whole, with its body,
within the deadline, or it is answered with 408; every 64 KiB of an answer must be taken within it;
connections, headers and bodies are bounded; ``Host`` must be a known name, as pages of other sites
could reach a loopback listener by a name of theirs (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import logging
import re
import socket as stdlib_socket
import sys
import time
from collections.abc import Callable, Collection, Iterable
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import unquote

import gevent
import gevent.pool
import gevent.server
import gevent.ssl
import h11
from gevent import socket

from kafka08.common import bare
from kafka08.errors import KafkaError
from kafka08.network.hosts import Address, bound_socket, first_address
from kafka08.network.tls import Tls

logger = logging.getLogger("kafka.network.HttpServer")

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
"""A WSGI application. ``wsgi.input`` has the whole body, and ``CONTENT_LENGTH`` is its size. It is
called on greenlets, several at a time, so it must not keep a request in a thread's variable."""

_LINE_BYTES = 8 * 1024
_HEAD_BYTES = 16 * 1024
_HEADERS = 100
_PIECE_BYTES = 64 * 1024
_LINGER_SECONDS = 1.0
_ANY = "*"
_DATE = "%a, %d %b %Y %H:%M:%S GMT"
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_LENGTHS = (b"content-length", b"transfer-encoding")
_BAD, _TOO_LARGE = "400 Bad Request", "413 Content Too Large"
_TOO_SLOW, _FULL = "408 Request Timeout", "503 Service Unavailable"
_OTHER_VERSION = "505 HTTP Version Not Supported"


Refusal = Callable[[int, str], tuple[str, bytes]]
"""The type and the body of an answer without the application, of its status and reason."""


def plain_text(status: int, reason: str) -> tuple[str, bytes]:
    return "text/plain", f"{reason}\n".encode()


class _RefusedError(ValueError):
    """A request that is answered without the application. ``status``: code and reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _PeerGoneError(OSError):
    """An answer could not be sent, or not in time."""


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


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener on ``host``."""
    name = bare(host)
    return ipaddress.ip_address(name).is_loopback if _is_address(name) else name == "localhost"


def _is_address(name: str) -> bool:
    """Whether it is an IP address, to which no foreign page can be bound by a name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Bounds(NamedTuple):
    """Limits of what clients may take. ``connections``: this many at once; others wait to be
    accepted. ``deadline_ms``: see the module's docstring; it also ends connections that wait for
    their next request. ``body_bytes``: larger bodies are refused with 413. ``bodies_bytes``: this
    many of all bodies at once, if it is given; others are refused with 503."""

    connections: int = 50
    deadline_ms: int = 10_000
    body_bytes: int = 0
    bodies_bytes: int | None = None


DEFAULT_BOUNDS = Bounds()


class _Bodies:
    """The bytes of the bodies that all connections hold, of which there may be ``limit``."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._now = 0

    def take(self, count: int) -> None:
        """Raises _RefusedError."""
        if self._limit is not None and self._now + count > self._limit:
            raise _RefusedError(_FULL, f"all bodies together may have {self._limit} bytes now")
        self._now += count

    def give_back(self, count: int) -> None:
        self._now -= count


class HttpServer:
    """One listener. Raises KafkaError if the port cannot be bound; serves from ``start`` on.

    ``allowed_hosts``: names to accept in ``Host`` beside ``host`` and the loopback's, ``*`` for
    all. The application may take any time. ``name`` is for the log. ``refusal`` makes the answers
    to requests that are refused before the application is called.
    """

    def __init__(
        self,
        host: str,
        port: int,
        application: Application,
        *,
        name: str,
        bounds: Bounds = DEFAULT_BOUNDS,
        allowed_hosts: Collection[str] = (),
        tls: Tls | None = None,
        refusal: Refusal = plain_text,
    ) -> None:
        self._name = name
        self._host = host
        sock = _bound(name, host, port)
        address: str = sock.getsockname()[0]
        self.port: int = sock.getsockname()[1]
        self._application = application
        self._deadline = bounds.deadline_ms / 1000
        self._hosts = Hosts([host, *allowed_hosts])
        self._body_bytes = bounds.body_bytes
        self._bodies = _Bodies(bounds.bodies_bytes)
        self._tls = tls
        self._refusal = refusal
        self._environ = _server_environ("http" if tls is None else "https", address, self.port)
        self._idle: set[gevent.Greenlet] = set()  # the greenlets that wait for a request
        pool = gevent.pool.Pool(bounds.connections)
        self._server = gevent.server.StreamServer(sock, self._serve, spawn=pool)

    def start(self) -> None:
        self._server.start()
        logger.info("%s: awaiting HTTP requests on %s:%d.", self._name, self._host, self.port)

    def stop(self, grace_ms: int = 1_000) -> None:
        """Close the listener and idle connections; requests in progress have ``grace_ms``."""
        self._server.close()
        for task in list(self._idle):
            task.kill(block=False)
        self._server.stop(grace_ms / 1000)

    def _serve(self, sock: socket.socket, address: Address) -> None:
        """The requests of one connection, one after the other."""
        sock.settimeout(self._deadline)
        sock.setsockopt(stdlib_socket.IPPROTO_TCP, stdlib_socket.TCP_NODELAY, 1)
        try:
            if self._tls is not None:
                with gevent.Timeout(self._deadline, TimeoutError("no handshake in time")):
                    context = self._tls.context
                    sock = gevent.ssl.SSLSocket(sock=sock, server_side=True, _context=context)
            exchange = _Exchange(sock, b"", self._refusal)
            while self._serve_request(exchange, address) and not self._server.closed:
                exchange = _Exchange(sock, exchange.rest, self._refusal)
        except OSError as error:
            logger.debug("Connection to %s ended: %s", address, error)
        finally:
            sock.close()

    def _serve_request(self, exchange: _Exchange, address: Address) -> bool:
        """Whether the connection is to be kept. Raises OSError."""
        try:
            environ = self._read(exchange, address)
            return environ is not None and exchange.answer(self._application, environ)
        finally:
            self._bodies.give_back(exchange.body_bytes)

    def _read(self, exchange: _Exchange, address: Address) -> Environ | None:
        """The next request; None without one, and for one that was refused. Raises OSError."""
        try:
            with gevent.Timeout(self._deadline, TimeoutError("no whole request in time")):
                request = self._read_head(exchange)
                if request is None:
                    return None
                body = exchange.read_body(self._body_bytes, self._bodies)
        except (_RefusedError, h11.RemoteProtocolError) as error:
            logger.debug("Bad request from %s: %s", address, error)
            exchange.refuse(error)
            return None
        except TimeoutError as error:
            if not exchange.is_begun:
                raise
            logger.debug("Slow request from %s: %s", address, error)
            exchange.refuse(
                _RefusedError(_TOO_SLOW, "the request was not there as a whole in time")
            )
            return None
        return {
            **self._environ,
            "REMOTE_ADDR": str(address[0]),
            "REMOTE_PORT": str(address[1]),
            **_request_environ(request, body),
        }

    def _read_head(self, exchange: _Exchange) -> h11.Request | None:
        task = gevent.getcurrent()
        self._idle.add(task)
        try:
            request = exchange.read_head()
        finally:
            self._idle.discard(task)
        if request is not None:
            if request.http_version not in (b"1.0", b"1.1"):
                raise _RefusedError(_OTHER_VERSION, "only HTTP/1.0 and 1.1")
            if not request.target.startswith(b"/"):
                raise _RefusedError(_BAD, "the target must begin with /")
            hosts = [value.decode("latin-1") for name, value in request.headers if name == b"host"]
            if hosts and hosts[0] not in self._hosts:
                raise _RefusedError("421 Misdirected Request", "this Host is not served here")
        return request


def _bound(name: str, host: str, port: int) -> socket.socket:
    try:
        if not 0 <= port < 1 << 16:
            raise OverflowError("no such port")
        return bound_socket(*first_address(host, port), backlog=128)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise KafkaError(f"{name}: cannot listen on {host}:{port}: {reason}.") from error


def _server_environ(scheme: str, address: str, port: int) -> Environ:
    return {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SCRIPT_NAME": "",
        "SERVER_NAME": address,
        "SERVER_PORT": str(port),
        "SERVER_SOFTWARE": "kafka08",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scheme,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }


def _request_environ(request: h11.Request, body: bytes) -> Environ:
    path, _, query = request.target.decode("latin-1").partition("?")
    environ: Environ = {
        "REQUEST_METHOD": request.method.decode("latin-1"),
        "PATH_INFO": unquote(path, "latin-1"),
        "QUERY_STRING": query,
        "SERVER_PROTOCOL": f"HTTP/{request.http_version.decode('latin-1')}",
        "wsgi.input": BytesIO(body),
    }
    for name, value in request.headers:
        key, text = name.decode("latin-1").replace("-", "_").upper(), value.decode("latin-1")
        if b"_" in name:
            continue  # it would pass for another one with -
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            key = f"HTTP_{key}"
        before = environ.get(key)
        separator = "; " if key == "HTTP_COOKIE" else ","
        environ[key] = text if before is None else f"{before}{separator}{text}"
    environ["CONTENT_LENGTH"] = str(len(body))
    return environ


class _Exchange:
    """One request on a connection, and its answer. ``received``: bytes that came with the request
    before; ``rest``: those that have come with this one. ``body_bytes``: those of the body that
    were taken from the server's."""

    def __init__(self, sock: socket.socket, received: bytes, refusal: Refusal) -> None:
        self._sock = sock
        self._received = bytearray(received)
        self._refusal = refusal
        self._http = h11.Connection(h11.SERVER)
        self._request: h11.Request | None = None
        self._answer: tuple[str, list[tuple[str, str]]] | None = None  # status and headers
        self._began = False
        self.body_bytes = 0

    @property
    def is_begun(self) -> bool:
        """Whether any of the request has come."""
        return bool(self._received)

    @property
    def rest(self) -> bytes:
        return self._http.trailing_data[0]

    # The request

    def read_head(self) -> h11.Request | None:
        """None if the client closed the connection before it began a request. Raises _RefusedError,
        RemoteProtocolError and OSError."""
        searched = 0
        while (end := _END_OF_HEAD.search(self._received, searched)) is None:
            _check_sizes(self._received)
            searched = max(len(self._received) - 2, 0)
            piece = self._sock.recv(_HEAD_BYTES)
            if not piece:
                if self._received:
                    raise _RefusedError(_BAD, "the headers have no end")
                return None
            self._received += piece
        _check_head(self._received[: end.end()])
        self._http.receive_data(bytes(self._received))
        request = self._http.next_event()
        assert isinstance(request, h11.Request)  # with less than a head there is an error
        self._request = request
        return request

    def read_body(self, limit: int, bodies: _Bodies) -> bytes:
        """Raises RemoteProtocolError, OSError, and _RefusedError if it has more than ``limit``, or
        all ``bodies`` have too many."""
        assert self._request is not None
        lengths = [int(value) for name, value in self._request.headers if name == _LENGTHS[0]]
        body = bytearray()
        while max(*lengths, len(body), 0) <= limit:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    leave = h11.InformationalResponse(
                        status_code=100, headers=[], reason=b"Continue"
                    )
                    self._send(leave)
                self._http.receive_data(self._sock.recv(_PIECE_BYTES))
            elif isinstance(event, h11.Data):
                bodies.take(len(event.data))
                self.body_bytes += len(event.data)
                body += event.data
            else:
                return bytes(body)
        raise _RefusedError(_TOO_LARGE, f"the body may have {limit} bytes")

    # The answer

    def answer(self, application: Application, environ: Environ) -> bool:
        """Whether the connection can be kept. Raises OSError if the client is gone."""
        try:
            self._run(application, environ)
        except _PeerGoneError:
            raise
        except (Exception, gevent.GreenletExit) as error:
            if not isinstance(error, gevent.GreenletExit):
                # The query is left out: it may be secret.
                where = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
                logger.exception("Error while answering %s", where)
            if not self._began:
                self._end("500 Internal Server Error", "text/plain", b"Internal Server Error")
            return False
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    def _run(self, application: Application, environ: Environ) -> None:
        result = application(environ, self._start_response)
        try:
            for piece in result:
                if piece:
                    self._write(piece, result)
            self._write(b"", result)
            self._send(h11.EndOfMessage())
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], exc_info: Any = None
    ) -> Callable[[bytes], None]:
        if exc_info is not None and self._began:
            raise exc_info[1]
        self._answer = status, headers
        return self._write

    def _write(self, data: bytes, result: Any = None) -> None:
        """``result``: all of the body, where the application has returned it."""
        if not self._began:
            if self._answer is None:
                raise AssertionError("the application did not call start_response()")
            size = sum(map(len, result)) if hasattr(result, "__len__") else None
            self._send(_response(*self._answer, size))
        if data and self._request is not None and self._request.method != b"HEAD":
            self._send(h11.Data(data=data))

    def _send(self, event: h11.Event) -> None:
        """Raises _PeerGoneError, and LocalProtocolError for an answer that is not valid."""
        self._send_bytes(self._http.send(event) or b"")
        self._began |= not isinstance(event, h11.InformationalResponse)

    def _send_bytes(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                self._sock.sendall(left[:_PIECE_BYTES])
                left = left[_PIECE_BYTES:]
        except OSError as error:  # a TimeoutError too: sockets have the deadline as their timeout
            raise _PeerGoneError(str(error)) from error

    # An answer without the application

    def refuse(self, error: _RefusedError | h11.RemoteProtocolError) -> None:
        """Answer a bad request, and wait a moment for the client to read that. Raises OSError."""
        if isinstance(error, _RefusedError):
            status, reason = error.status, str(error)
        elif error.error_status_hint == 501:
            status, reason = "501 Not Implemented", "the only transfer encoding is chunked"
        else:
            status, reason = _BAD, "bad"
        self._end(status, *self._refusal(int(status.split()[0]), reason))
        self._sock.shutdown(stdlib_socket.SHUT_WR)
        # Closing with bytes that were not read would have the client lose the answer.
        with gevent.Timeout(_LINGER_SECONDS, False):
            while self._sock.recv(_PIECE_BYTES):
                pass

    def _end(self, status: str, media: str, body: bytes) -> None:
        """The whole answer, after which the connection is closed."""
        head = f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: {media}\r\n"
        self._send_bytes(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def _check_sizes(head: bytes | bytearray) -> None:
    """Raises _RefusedError for a head, or a part of one, that is too large."""
    line = head.find(b"\n")
    if line >= _LINE_BYTES or (line < 0 and len(head) >= _LINE_BYTES):
        raise _RefusedError("414 URI Too Long", "the request line is long")
    if len(head) - line > _HEAD_BYTES + 1:
        raise _RefusedError("431 Request Header Fields Too Large", "the headers are long")


def _check_head(head: bytes | bytearray) -> None:
    """Refuse a head that is too large, or leaves doubt about where the request ends."""
    _check_sizes(head)
    line, *lines = head.split(b"\n")[:-2]
    if len(line.split()) == 2:
        raise _RefusedError(_OTHER_VERSION, "only HTTP/1.0 and 1.1")
    if len(lines) > _HEADERS:
        raise _RefusedError(_BAD, "too many headers")
    names = [each.partition(b":")[0].strip().lower() for each in lines]
    if sum(map(names.count, _LENGTHS)) > 1:
        raise _RefusedError(_BAD, "more than one length")


def _response(status: str, headers: list[tuple[str, str]], size: int | None) -> h11.Response:
    """``size``: of the body, if it is known."""
    code, _, reason = status.partition(" ")
    names = {name.lower() for name, _ in headers}
    if size is not None and "content-length" not in names and code not in ("204", "304"):
        headers = [*headers, ("Content-Length", str(size))]
    if "date" not in names:
        headers = [*headers, ("Date", time.strftime(_DATE, time.gmtime()))]
    return h11.Response(
        status_code=int(code),
        headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        reason=reason.encode("latin-1"),
    )
