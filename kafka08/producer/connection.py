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
from kafka08.network.channel import Channel
from kafka08.protocol.framing import FrameDecoder
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
    """Connects ``channel`` on creation, and has it for itself from then on. Failures raise OSError
    or ProtocolError; the caller then ends it."""

    def __init__(self, channel: Channel, runtime: Runtime) -> None:
        self.outstanding: deque[Outstanding] = deque()
        self.received = 0  # bytes of responses; the reader may set it back
        self._channel = channel
        self._clock = runtime.clock
        self._writing = runtime.lock()
        self._decoder = FrameDecoder(MAX_RESPONSE_BYTES)
        self._socket = channel.connect()

    def encode(self, request: object, context: Any, *, answered: bool = True) -> bytes:
        """The bytes to ``write``. From now on a response is expected, unless the request has none.

        Requests must be written in the order of the calls.
        """
        number, response, data = self._channel.encode(request)
        if answered:
            sent = self._clock.monotonic()
            self.outstanding.append(Outstanding(number, response, context, sent))
        return bytes(data)

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
            raise ConnectionResetError(f"{self._channel.name} closed the connection")
        frames = self._decoder.received(count)
        if len(frames) > len(self.outstanding):
            raise ProtocolError(f"{self._channel.name} sent a response that was not requested")
        asked = [self.outstanding[index] for index in range(len(frames))]
        decode = self._channel.decode
        return [
            (decode(frame, each.correlation_id, each.response), each)
            for frame, each in zip(frames, asked, strict=True)
        ]

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
            self._channel.close()
