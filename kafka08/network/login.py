"""The server's side of the login at the beginning of a connection (SaslServerAuthenticator).

A client may ask for ApiVersions, names a mechanism with SaslHandshake, and sends the mechanism's
tokens: after SaslHandshake 0 as frames of their own, after version 1 in SaslAuthenticate. No other
request is served before that. Where sessions have a lifetime (KIP-368), the client logs in again on
the same connection before the session is over, or the next request closes the connection. The
mechanisms themselves are in ``security``. Does not know settings, files or ZooKeeper.
"""

from __future__ import annotations

import enum
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka08.errors import NO_ERROR, LaterCode, ProtocolError
from kafka08.network.connection import Handle
from kafka08.network.peer import Peer, Session
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.codec import Part
from kafka08.protocol.later_schemas import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    ServedVersions,
    UnsupportedApiVersionsRequest,
)
from kafka08.protocol.registry import API_VERSIONS, APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE, Apis
from kafka08.protocol.requests import RequestDecoder, encode_response
from kafka08.protocol.schemas import RequestHeader
from kafka08.security.mechanisms import LoginRefusedError, Side

LOGIN_APIS: Apis = {key: APIS[key] for key in (SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE)}
OWN_VERSIONS = [ServedVersions(api.key, 0, api.last) for api in LOGIN_APIS.values()]

_DECODER = RequestDecoder(LOGIN_APIS)
_KEYS = {key.to_bytes(2, "big") for key in LOGIN_APIS}
_HANDSHAKE_KEY = SASL_HANDSHAKE.to_bytes(2, "big")
# A client may begin a further login so often.
_AGAIN_SECONDS = 1.0
_CREDENTIALS = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"
)
_AGAIN = "SaslAuthenticate request received after successful authentication"

Mechanisms = Mapping[str, Callable[[], Side]]
"""The makers of the server's side of a login, by mechanism, in the order of the offer."""


class LoginFailed(ConnectionClosed):
    """Closes the connection. The log has a line of its own for failed logins. ``response`` becomes
    the last reply."""

    level = logging.DEBUG

    def __init__(self, reason: str, response: object = None) -> None:
        super().__init__(reason)
        self.response = response


class SessionOver(ConnectionClosed):
    """The peer has not logged in again in time."""

    level = logging.DEBUG


class _State(enum.Enum):
    """The expectation of the next frame."""

    START = "ApiVersions or SaslHandshake"
    HANDSHAKE = "SaslHandshake"
    TOKEN = "a token without a header"
    AUTHENTICATE = "SaslAuthenticate"
    DONE = "any request"


class ServerLogin:
    """The login of one connection, and the requests of the login's APIs after it.

    ``handle`` takes each frame of the connection, and passes the requests of the user on to
    ``serve``. A failed login raises LoginFailed. ``versions`` are those of the other APIs at the
    moment. ``lifetimes_ms``: of a session, by mechanism; 0 or absent: it has no end.
    """

    def __init__(
        self,
        peer: Peer,
        serve: Handle,
        mechanisms: Mechanisms,
        versions: Callable[[], Sequence[ServedVersions]],
        lifetimes_ms: Mapping[str, int] | None = None,
    ) -> None:
        self._peer = peer
        self._serve = serve
        self._mechanisms = mechanisms
        self._versions = versions
        self._state = _State.START
        self._mechanism = ""
        self._side: Side | None = None
        self._lifetimes_ms = lifetimes_ms or {}
        self._lifetime_ms = 0  # of the present session
        self._over_at = math.inf  # of the clock of ``Peer.begun_at``
        self._again_at = -math.inf  # the last time that a further login began

    def handle(self, frame: memoryview, address: str) -> list[Part] | None:
        """The parts of the answer to a frame. Raises LoginFailed and SessionOver."""
        if self._state is _State.DONE:
            key = bytes(frame[:2])
            if self._peer.begun_at > self._over_at and not (
                key == _HANDSHAKE_KEY and self._may_log_in_again
            ):
                raise SessionOver(f"the session of {self._peer.principal} is over")
            if key not in _KEYS:
                return self._serve(frame, address)
        if self._state is _State.TOKEN:
            return self._raw_token(frame)
        header, request = self._decode(frame)
        answer = _ANSWERS.get((self._state, type(request)))
        if answer is None:
            raise LoginFailed(_unexpected(LOGIN_APIS[header.api_key].name, self._state))
        try:
            response = answer(self, header, request)
        except LoginFailed as failed:
            if failed.response is not None:
                failed.reply = _encoded(header, failed.response)
            raise
        return _encoded(header, response)

    def _decode(self, frame: memoryview) -> tuple[RequestHeader, Any]:
        try:
            return _DECODER.decode(frame)
        except ProtocolError as error:
            api = APIS.get(int.from_bytes(frame[:2], "big"))
            name = str(error) if api is None or api.key in LOGIN_APIS else api.name
            raise LoginFailed(_unexpected(name, self._state)) from None

    def _answer_versions(
        self, header: RequestHeader, request: ApiVersionsRequest | UnsupportedApiVersionsRequest
    ) -> ApiVersionsResponse:
        versions = sorted([*self._versions(), *OWN_VERSIONS])
        if isinstance(request, UnsupportedApiVersionsRequest):
            return ApiVersionsResponse(LaterCode.UNSUPPORTED_VERSION, versions)
        self._peer.introduce(request.client_software_name, request.client_software_version)
        if self._state is _State.START:
            self._state = _State.HANDSHAKE
        return ApiVersionsResponse(NO_ERROR, versions)

    def _begin(self, header: RequestHeader, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        names = list(self._mechanisms)
        make = self._mechanisms.get(request.mechanism)
        if make is None:
            raise LoginFailed(
                f"Unsupported SASL mechanism {request.mechanism}",
                SaslHandshakeResponse(LaterCode.UNSUPPORTED_SASL_MECHANISM, names),
            )
        response = SaslHandshakeResponse(NO_ERROR, names)
        if self._peer.session and request.mechanism != self._mechanism:
            raise LoginFailed(
                f"SASL mechanism '{request.mechanism}' requested by client is not supported for "
                f"re-authentication of mechanism '{self._mechanism}'",
                response,
            )
        self._mechanism, self._side = request.mechanism, make()
        self._state = _State.AUTHENTICATE if header.api_version else _State.TOKEN
        return response

    @property
    def _may_log_in_again(self) -> bool:
        return self._over_at != math.inf and self._peer.begun_at - self._again_at >= _AGAIN_SECONDS

    def _begin_again(
        self, header: RequestHeader, request: SaslHandshakeRequest
    ) -> SaslHandshakeResponse:
        if not self._may_log_in_again:
            return SaslHandshakeResponse(LaterCode.ILLEGAL_SASL_STATE, [])
        self._again_at = self._peer.begun_at
        return self._begin(header, request)

    def _raw_token(self, frame: memoryview) -> list[Part]:
        try:
            answer = self._next(bytes(frame))
        except LoginRefusedError as error:
            raise LoginFailed(f"{self._mechanism}: {error}") from None
        return [len(answer).to_bytes(4, "big") + answer]

    def _authenticate(
        self, header: RequestHeader, request: SaslAuthenticateRequest
    ) -> SaslAuthenticateResponse:
        try:
            token = self._next(bytes(request.auth_bytes))
            lifetime_ms = self._lifetime_ms if self._state is _State.DONE else 0
            return SaslAuthenticateResponse(NO_ERROR, "", token, lifetime_ms)
        except LoginRefusedError as error:
            text = str(error) if error.reveal else _CREDENTIALS.format(self._mechanism)
            raise LoginFailed(
                f"{self._mechanism}: {error}",
                SaslAuthenticateResponse(LaterCode.SASL_AUTHENTICATION_FAILED, text, b""),
            ) from None

    def _next(self, token: bytes) -> bytes:
        side = self._side
        assert side is not None
        answer = side.answer(token) or b""
        if side.is_done:
            self._side = None
            self._begin_session(side.user)
        return answer

    def _begin_session(self, user: str) -> None:
        peer, session = self._peer, Session(self._mechanism, user)
        if peer.session is None:
            peer.admit(f"User:{user}")
        elif peer.session != session:
            raise LoginRefusedError(
                "Cannot change principals during re-authentication from "
                f"User.{peer.session.user}: User.{user}",
                reveal=True,
            )
        peer.session = session
        self._state = _State.DONE
        self._lifetime_ms = self._lifetimes_ms.get(self._mechanism, 0)
        if self._lifetime_ms:
            self._over_at = peer.begun_at + self._lifetime_ms / 1000

    def _refuse_token(self, header: RequestHeader, _: object) -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(LaterCode.ILLEGAL_SASL_STATE, _AGAIN, b"")


def _encoded(header: RequestHeader, response: object) -> list[Part]:
    return encode_response(header.correlation_id, response, header.api_version)


def _unexpected(name: str, state: _State) -> str:
    return f"Unexpected Kafka request of type {name} during SASL handshake, expected {state.value}"


_Answer = Callable[[ServerLogin, RequestHeader, Any], object]
_ANSWERS: dict[tuple[_State, type], _Answer] = {
    (_State.START, ApiVersionsRequest): ServerLogin._answer_versions,
    (_State.START, UnsupportedApiVersionsRequest): ServerLogin._answer_versions,
    (_State.START, SaslHandshakeRequest): ServerLogin._begin,
    (_State.HANDSHAKE, SaslHandshakeRequest): ServerLogin._begin,
    (_State.AUTHENTICATE, SaslAuthenticateRequest): ServerLogin._authenticate,
    (_State.DONE, ApiVersionsRequest): ServerLogin._answer_versions,
    (_State.DONE, UnsupportedApiVersionsRequest): ServerLogin._answer_versions,
    (_State.DONE, SaslHandshakeRequest): ServerLogin._begin_again,
    (_State.DONE, SaslAuthenticateRequest): ServerLogin._refuse_token,
}
