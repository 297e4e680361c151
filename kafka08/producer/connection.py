"""A pipelined connection: one task writes requests while another reads responses.

``network.channel`` waits for each answer. Here the reader always reads, so that a closed connection
is noticed at once, even if no request is outstanding. Does not know batches or retries: ``context``
is the caller's data of a request and is returned with the response.
"""

from __future__ import annotations

import contextlib
import socket
from collections import deque
from typing import Any, NamedTuple

from kafka08.errors import ProtocolError
from kafka08.network.channel import set_buffers
from kafka08.protocol import negotiation
from kafka08.protocol.framing import FrameDecoder
from kafka08.protocol.requests import decode_response, encode_request
from kafka08.protocol.types import Struct
from kafka08.runtime import Runtime

MAX_RESPONSE_BYTES = 16 << 20


class Outstanding(NamedTuple):
    """A request that awaits its response; ``sent`` in monotonic seconds."""

    correlation_id: int
    response: Struct
    context: Any
    sent: float


class PipelinedConnection:
    """Connects on creation. Failures raise OSError or ProtocolError; the caller then ends it.

    With ``api_versions`` it first asks which versions the broker serves, and sends requests in the
    highest ones (``protocol.negotiation``).
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        runtime: Runtime,
        client_id: str,
        timeout: float,
        send_buffer_bytes: int = 0,
        receive_buffer_bytes: int = 0,
        api_versions: bool = False,
    ) -> None:
        self.host = host
        self.port = port
        self.outstanding: deque[Outstanding] = deque()
        self.received = 0  # bytes of responses; the reader may set it back
        self._client_id = client_id
        self._clock = runtime.clock
        self._correlation_id = 0
        self._writing = runtime.lock()
        self._decoder = FrameDecoder(MAX_RESPONSE_BYTES)
        self._socket = runtime.connect(host, port, timeout)
        set_buffers(self._socket, receive_buffer_bytes, send_buffer_bytes)
        self._versions: negotiation.Versions = {}
        if api_versions:
            try:
                self._versions = self._ask_versions()
            except BaseException:
                self.close()
                raise

    def _ask_versions(self) -> negotiation.Versions:
        name = f"{self.host}:{self.port}"
        self._socket.sendall(negotiation.question(self._client_id))
        while True:
            try:
                count = self._socket.recv_into(self._decoder.get_buffer())
            except ConnectionResetError as error:
                raise negotiation.closed(name) from error
            if not count:
                raise negotiation.closed(name)
            frames = self._decoder.received(count)
            if frames:
                return negotiation.answered(frames[0], name)

    def encode(self, request: Any, context: Any, *, answered: bool = True) -> bytes:
        """The bytes to ``write``. From now on a response is expected, unless the request has none.

        Requests must be written in the order of the calls.
        """
        self._correlation_id = number = (self._correlation_id + 1) & 0x7FFFFFFF
        version, response = negotiation.chosen(request, self._versions)
        parts = encode_request(request, number, self._client_id, version)
        if answered:
            sent = self._clock.monotonic()
            self.outstanding.append(Outstanding(number, response, context, sent))
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def write(self, data: bytes) -> None:
        with self._writing:
            self._socket.sendall(data)

    def receive(self) -> list[tuple[Any, Outstanding]]:
        """Wait for the next responses. Each comes with its request, which stays in ``outstanding``
        until the caller removes it from the left."""
        while True:
            with contextlib.suppress(TimeoutError):
                count = self._socket.recv_into(self._decoder.get_buffer())
                self.received += count
                break
        if not count:
            raise ConnectionResetError(f"{self.host}:{self.port} closed the connection")
        frames = self._decoder.received(count)
        if len(frames) > len(self.outstanding):
            raise ProtocolError(f"{self.host}:{self.port} sent a response that was not requested")
        asked = [self.outstanding[index] for index in range(len(frames))]
        return [(_decoded(*pair), pair[1]) for pair in zip(frames, asked, strict=True)]

    def waiting_since(self) -> float | None:
        """The time when the oldest outstanding request was sent."""
        try:
            return self.outstanding[0].sent
        except IndexError:
            return None

    def abort(self) -> None:
        """End the connection, from any task: a task that writes or receives gets an error."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket. Only the reader calls it, at its end, as no task may use a socket whose
        number can be reused."""
        self.abort()
        with self._writing:
            self._socket.close()


def _decoded(frame: memoryview, asked: Outstanding) -> Any:
    correlation_id, response = decode_response(asked.response, frame)
    if correlation_id != asked.correlation_id:
        raise ProtocolError(f"answer {correlation_id} where {asked.correlation_id} was due")
    return response
