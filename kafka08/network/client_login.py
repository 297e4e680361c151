"""The client's side of the login at the beginning of a connection (SaslClientAuthenticator).

Names a mechanism with SaslHandshake 1 and sends its tokens in SaslAuthenticate 0, which brokers
since Kafka 1.0 understand. Does not know settings.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from kafka08.errors import NO_ERROR, ProtocolError
from kafka08.protocol.framing import LARGEST_BEFORE_LOGIN
from kafka08.protocol.later_schemas import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka08.protocol.requests import decode_response, encode_request
from kafka08.protocol.types import Struct
from kafka08.runtime import Socket, SocketConnector
from kafka08.security.mechanisms import LoginRefusedError, Side


class LoginError(ConnectionRefusedError):
    """A broker refused the login, or is not one that the client may believe."""


class SaslConnector:
    """Connects through ``connector`` and logs in. ``make`` gives the client's side of a login."""

    def __init__(
        self, connector: SocketConnector, mechanism: str, make: Callable[[], Side]
    ) -> None:
        self._connector = connector
        self._mechanism = mechanism
        self._make = make

    def connect(self, host: str, port: int, timeout: float) -> Socket:
        """A connected socket on which requests may be sent. Raises OSError."""
        sock = self._connector.connect(host, port, timeout)
        with ExitStack() as unless_done:
            unless_done.callback(sock.close)
            try:
                _log_in(sock, self._mechanism, self._make())
            except (LoginRefusedError, ProtocolError) as error:
                text = f"login at {host}:{port} with {self._mechanism}: {error}"
                raise LoginError(text) from error
            unless_done.pop_all()
        return sock


def _log_in(sock: Socket, mechanism: str, side: Side) -> None:
    """Raises LoginRefusedError, which says what the broker said, ProtocolError and OSError."""
    handshake = _ask(sock, SaslHandshakeRequest(mechanism), 0, Struct(SaslHandshakeResponse, 1))
    if handshake.error != NO_ERROR:
        offered = ", ".join(handshake.mechanisms) or "no mechanism"
        raise LoginRefusedError(f"sasl.mechanism is {mechanism}, and the broker offers {offered}")
    number = 0
    token = side.answer(b"")
    while token is not None:
        number += 1
        request = SaslAuthenticateRequest(token)
        answer = _ask(sock, request, number, Struct(SaslAuthenticateResponse))
        if answer.error != NO_ERROR:
            raise LoginRefusedError(answer.error_message or f"code {answer.error}")
        token = side.answer(bytes(answer.auth_bytes))


def _ask(sock: Socket, request: object, correlation_id: int, layout: Struct) -> Any:
    """The response to a request in the version of ``layout``."""
    sock.sendall(b"".join(encode_request(request, correlation_id, version=layout.version)))
    size = int.from_bytes(_read(sock, 4), "big", signed=True)
    if not 4 <= size <= LARGEST_BEFORE_LOGIN:
        raise ProtocolError(f"a response of {size} bytes")
    answered, answer = decode_response(layout, _read(sock, size))
    if answered != correlation_id:
        raise ProtocolError(f"answered {answered} where {correlation_id} was due")
    return answer


def _read(sock: Socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ProtocolError("the broker closed the connection")
        data += more
    return data
