"""The client's side of the login at the beginning of a connection (SaslClientAuthenticator).

Names a mechanism with SaslHandshake 1 and sends its tokens in SaslAuthenticate 0, which brokers
since Kafka 1.0 understand. Does not know settings.
"""

from __future__ import annotations

from collections.abc import Callable
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
from kafka08.runtime import Connector
from kafka08.security.mechanisms import LoginRefusedError, Side


class LoginError(ConnectionRefusedError):
    """A broker refused the login, or is not one that the client may believe."""


class SaslConnector:
    """Connects through ``connector`` and logs in. ``make`` gives the client's side of a login."""

    def __init__(
        self, connector: Connector, mechanism: str, make: Callable[[], Side], client_id: str = ""
    ) -> None:
        self._connector = connector
        self._mechanism = mechanism
        self._make = make
        self._client_id = client_id

    def connect(self, host: str, port: int, timeout: float) -> Any:
        """A connected socket on which requests may be sent. Raises OSError."""
        sock = self._connector.connect(host, port, timeout)
        try:
            log_in(self._mechanism, self._make(), self._client_id, sock.sendall, _frames_of(sock))
        except (LoginRefusedError, ProtocolError) as error:
            sock.close()
            raise LoginError(f"login at {host}:{port} with {self._mechanism}: {error}") from error
        except BaseException:
            sock.close()
            raise
        return sock


def _frames_of(sock: Any) -> Callable[[], bytes]:
    def read(size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = sock.recv(size - len(data))
            if not more:
                raise ProtocolError("the broker closed the connection")
            data += more
        return data

    def receive() -> bytes:
        size = int.from_bytes(read(4), "big", signed=True)
        if not 4 <= size <= LARGEST_BEFORE_LOGIN:
            raise ProtocolError(f"a response of {size} bytes")
        return read(size)

    return receive


def log_in(
    mechanism: str,
    side: Side,
    client_id: str | None,
    send: Callable[[bytes], object],
    receive: Callable[[], bytes | bytearray],
) -> None:
    """Log in on a new connection. ``send`` takes bytes, ``receive`` gives a frame without its size
    word. Raises LoginRefusedError, which says what the broker said, and what the two raise."""

    def ask(request: Any, correlation_id: int, response: type[Any], version: int) -> Any:
        send(b"".join(encode_request(request, correlation_id, client_id, version)))
        answered, answer = decode_response(Struct(response, version), receive())
        if answered != correlation_id:
            raise ProtocolError(f"answered {answered} where {correlation_id} was due")
        return answer

    handshake = ask(SaslHandshakeRequest(mechanism), 0, SaslHandshakeResponse, 1)
    if handshake.error != NO_ERROR:
        offered = ", ".join(handshake.mechanisms) or "no mechanism"
        raise LoginRefusedError(f"sasl.mechanism is {mechanism}, and the broker offers {offered}")
    token = side.answer(b"")
    number = 0
    while token is not None:
        number += 1
        answer = ask(SaslAuthenticateRequest(token), number, SaslAuthenticateResponse, 0)
        if answer.error != NO_ERROR:
            raise LoginRefusedError(answer.error_message or f"code {answer.error}")
        token = side.answer(bytes(answer.auth_bytes))
