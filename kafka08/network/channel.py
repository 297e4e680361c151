"""A blocking connection to a broker: requests out, responses in, in order.

Mirrors kafka.network.BlockingChannel. It does not retry: any failure closes the connection and is
raised; the next call connects again. Only one task may use a channel at a time, which the caller
ensures.
"""

from __future__ import annotations

import contextlib
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka08.errors import ProtocolError
from kafka08.protocol import negotiation, requests, schemas
from kafka08.protocol.registry import api_of
from kafka08.protocol.types import Struct
from kafka08.runtime import Connector, ThreadRuntime

# How to connect to the broker with an id.
Connectors = Callable[[int], Connector]

# 0.8.2.2 answers a failed ConsumerMetadata request with correlation id 0.
_MAY_ANSWER_ZERO = schemas.ConsumerMetadataResponse
_FIRST_READ_BYTES = 4 << 20


class _Pending(NamedTuple):
    correlation_id: int
    response: Struct


class Channel:
    """A connection to ``host:port``, opened on first use.

    ``timeout_ms`` bounds connecting and every wait for bytes. Failures raise OSError (the
    network) or ProtocolError (bytes that make no sense) and close the connection. With
    ``api_versions`` each connection first asks which versions the broker serves, and sends Produce,
    Fetch and ListOffsetsRequest in the highest ones (``protocol.negotiation``).
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str | None = "",
        timeout_ms: int = 30000,
        runtime: Connector | None = None,
        receive_buffer_bytes: int = 0,
        send_buffer_bytes: int = 0,
        api_versions: bool = False,
    ) -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self._timeout = timeout_ms / 1000
        self._runtime = runtime or ThreadRuntime()
        self._buffer_bytes = (
            (socket.SO_RCVBUF, receive_buffer_bytes),
            (socket.SO_SNDBUF, send_buffer_bytes),
        )
        self._socket: Any = None
        self._aborted = False
        self._correlation_id = 0
        self._pending: deque[_Pending] = deque()
        self._api_versions = api_versions
        self._versions: negotiation.Versions = {}

    @property
    def connected(self) -> bool:
        return self._socket is not None

    @property
    def in_flight(self) -> int:
        """Requests sent whose responses have not been received."""
        return len(self._pending)

    def connect(self) -> Any:
        """The connection's socket; opened unless it is open."""
        sock = self._socket
        if sock is None:
            self._check_aborted()
            sock = self._runtime.connect(self.host, self.port, self._timeout)
            for option, size in self._buffer_bytes:
                if size > 0:
                    sock.setsockopt(socket.SOL_SOCKET, option, size)
            self._socket = sock
            self._check_aborted()
            if self._api_versions:
                self._versions = self._ask_versions(sock)
        return sock

    def _ask_versions(self, sock: Any) -> negotiation.Versions:
        name = f"{self.host}:{self.port}"
        sock.sendall(negotiation.question(self.client_id))
        try:
            frame = self._read_frame()
        except ConnectionResetError as error:
            raise negotiation.closed(name) from error
        return negotiation.answered(frame, name)

    def _check_aborted(self) -> None:
        if self._aborted:
            self.close()
            raise ConnectionAbortedError(f"the connection to {self.host}:{self.port} was given up")

    def call(self, request: Any, version: int | None = None) -> Any:
        """Send ``request`` and return its response (None if there is none: acks 0)."""
        if self._pending:
            raise ProtocolError("call on a channel with responses outstanding")
        self.send(request, version)
        return self.receive() if _is_answered(request) else None

    def send(self, request: Any, version: int | None = None) -> int:
        """Write ``request``; returns its correlation id. Responses arrive in order. ``version`` is
        one that the caller knows to be served."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        correlation_id = self._correlation_id
        try:
            sock = self.connect()
            _, usual, response = api_of(request)
            if version is not None:
                usual, response = version, Struct(response.schema, version)
            elif self._versions:
                usual, response = self._versions.get(type(request), (usual, response))
            parts = requests.encode_request(request, correlation_id, self.client_id, usual)
            sock.sendall(parts[0] if len(parts) == 1 else b"".join(parts))
        except BaseException:
            self.close()
            raise
        if _is_answered(request):
            self._pending.append(_Pending(correlation_id, response))
        return correlation_id

    def receive(self) -> Any:
        """The response to the oldest request outstanding."""
        if not self._pending:
            raise ProtocolError("no response is outstanding")
        try:
            pending = self._pending.popleft()
            correlation_id, response = requests.decode_response(
                pending.response, memoryview(self._read_frame())
            )
            if correlation_id != pending.correlation_id and not (
                correlation_id == 0 and pending.response.schema is _MAY_ANSWER_ZERO
            ):
                raise ProtocolError(
                    f"{self.host}:{self.port} answered {correlation_id} "
                    f"where {pending.correlation_id} was due"
                )
            return response
        except BaseException:
            self.close()
            raise

    def _read_frame(self) -> bytearray:
        """A response without its size word."""
        size = int.from_bytes(self._read(4), "big", signed=True)
        if size < 4:
            raise ProtocolError(f"response of {size} bytes from {self.host}:{self.port}")
        return self._read(size)

    def _read(self, size: int) -> bytearray:
        # In growing pieces: the size may be invalid, such as text of another protocol.
        data = bytearray(min(size, _FIRST_READ_BYTES))
        done = 0
        while True:
            with memoryview(data) as view:
                while done < len(data):
                    sock = self._socket
                    # None: closed by another task between two reads.
                    count = 0 if sock is None else sock.recv_into(view[done:])
                    if not count:
                        raise ConnectionResetError(f"{self.host}:{self.port} closed the connection")
                    done += count
            if done == size:
                return data
            data.extend(bytes(min(size - done, 3 * done)))

    def close(self) -> None:
        """Close the connection; responses outstanding are forgotten.

        A greenlet that waits in ``receive`` wakes with ConnectionResetError. A thread may continue
        to wait, as the socket's number can be reused before its wait begins. Use ``abort`` there.
        """
        sock, self._socket = self._socket, None
        self._pending.clear()
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def abort(self) -> None:
        """Abort the connection, from any task: its user gets an OSError, now or later.

        ``close`` must still be called, when the channel is no longer in use.
        """
        self._aborted = True
        sock = self._socket
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _is_answered(request: Any) -> bool:
    return not (isinstance(request, schemas.ProduceRequest) and request.acks == 0)
