"""A blocking connection to a broker: a request out, its response in.

Mirrors kafka.network.BlockingChannel. It does not retry: any failure closes the connection and is
raised; the next call connects again. Only one task may use a channel at a time, which the caller
ensures.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from kafka08.errors import ProtocolError
from kafka08.protocol import negotiation, requests, schemas
from kafka08.protocol.codec import Buffer
from kafka08.protocol.types import Struct
from kafka08.runtime import Socket, SocketConnector, ThreadRuntime

# How to connect to the broker with an id.
Connectors = Callable[[int], SocketConnector]

# 0.8.2.2 answers a failed ConsumerMetadata request with correlation id 0.
_MAY_ANSWER_ZERO = schemas.ConsumerMetadataResponse
_FIRST_READ_BYTES = 4 << 20
_BUFFERS = (socket.SO_RCVBUF, socket.SO_SNDBUF)


class BrokerConnection(Protocol):
    """A connection to a broker, as clients, the controller and followers use it: ``Channel``."""

    host: str
    port: int
    client_id: str | None

    @property
    def connected(self) -> bool: ...
    def connect(self) -> object: ...
    def call(self, request: object, version: int | None = None) -> Any: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class Connect(Protocol):
    """Makes the connection to a broker, which opens on first use: ``Channel`` itself."""

    def __call__(
        self,
        host: str,
        port: int,
        *,
        client_id: str | None = "",
        timeout_ms: int = 30000,
        runtime: SocketConnector | None = None,
        receive_buffer_bytes: int = 0,
        send_buffer_bytes: int = 0,
        api_versions: bool = False,
    ) -> BrokerConnection: ...


class Encoded(NamedTuple):
    """A framed request, and what is known of its response."""

    correlation_id: int
    response: Struct
    data: bytes | bytearray | memoryview


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
        runtime: SocketConnector | None = None,
        receive_buffer_bytes: int = 0,
        send_buffer_bytes: int = 0,
        api_versions: bool = False,
    ) -> None:
        self.host = host
        self.port = port
        self.name = f"{host}:{port}"
        self.client_id = client_id
        self._timeout = timeout_ms / 1000
        self._runtime = runtime or ThreadRuntime()
        self._buffer_bytes = (receive_buffer_bytes, send_buffer_bytes)
        self._socket: Socket | None = None
        self._aborted = False
        self._correlation_id = 0
        self._api_versions = api_versions
        self._versions: negotiation.Versions = {}

    @property
    def connected(self) -> bool:
        return self._socket is not None

    def connect(self) -> Socket:
        """The connection's socket; opened unless it is open."""
        sock = self._socket
        if sock is None:
            self._check_aborted()
            sock = self._runtime.connect(self.host, self.port, self._timeout)
            self._socket = sock
            with contextlib.ExitStack() as unless_done:
                unless_done.callback(self.close)
                for option, size in zip(_BUFFERS, self._buffer_bytes, strict=True):
                    if size > 0:
                        sock.setsockopt(socket.SOL_SOCKET, option, size)
                self._check_aborted()
                if self._api_versions:
                    self._versions = self._ask_versions(sock)
                unless_done.pop_all()
        return sock

    def _ask_versions(self, sock: Socket) -> negotiation.Versions:
        sock.sendall(negotiation.question(self.client_id))
        try:
            frame = self._read_frame()
        except ConnectionResetError as error:
            raise negotiation.closed(self.name) from error
        return negotiation.answered(frame, self.name)

    def _check_aborted(self) -> None:
        if self._aborted:
            raise ConnectionAbortedError(f"the connection to {self.name} was given up")

    def call(self, request: object, version: int | None = None) -> Any:
        """Send ``request`` and return its response (None if there is none: acks 0). ``version`` is
        one that the caller knows to be served."""
        try:
            sock = self.connect()
            encoded = self.encode(request, version)
            sock.sendall(encoded.data)
            if not _is_answered(request):
                return None
            return self.decode(self._read_frame(), encoded.correlation_id, encoded.response)
        except BaseException:
            self.close()
            raise

    def encode(self, request: object, version: int | None = None) -> Encoded:
        """A request in ``version``, or in the one that the broker understands, once connected."""
        self._correlation_id = number = (self._correlation_id + 1) & 0x7FFFFFFF
        usual, response = negotiation.chosen(request, self._versions, version)
        parts = requests.encode_request(request, number, self.client_id, usual)
        return Encoded(number, response, parts[0] if len(parts) == 1 else b"".join(parts))

    def decode(self, frame: Buffer, due: int, layout: Struct) -> Any:
        """The response in a frame. Raises ProtocolError if its correlation id is not ``due``."""
        answered, response = requests.decode_response(layout, frame)
        if answered != due and not (answered == 0 and layout.schema is _MAY_ANSWER_ZERO):
            raise ProtocolError(f"{self.name} answered {answered} where {due} was due")
        return response

    def _read_frame(self) -> bytearray:
        """A response without its size word."""
        size = int.from_bytes(self._read(4), "big", signed=True)
        if size < 4:
            raise ProtocolError(f"response of {size} bytes from {self.name}")
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
                        raise ConnectionResetError(f"{self.name} closed the connection")
                    done += count
            if done == size:
                return data
            data.extend(bytes(min(size - done, 3 * done)))

    def close(self) -> None:
        """Close the connection.

        A greenlet that waits for a response wakes with ConnectionResetError. A thread may continue
        to wait, as the socket's number can be reused before its wait begins. Use ``abort`` there.
        """
        sock, self._socket = self._socket, None
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


def _is_answered(request: object) -> bool:
    return not (isinstance(request, schemas.ProduceRequest) and request.acks == 0)
