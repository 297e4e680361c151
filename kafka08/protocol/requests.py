"""Whole requests and responses: size word, header and body.

Does not know sockets; frames come from ``framing``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from kafka08.errors import ProtocolError
from kafka08.protocol.codec import Buffer, decoder, encode_parts, encoder
from kafka08.protocol.registry import api_of, request_schema
from kafka08.protocol.schemas import (
    AnonymousHeader,
    ControlledShutdownRequest,
    RequestHeader,
)

Response = TypeVar("Response")

_KEY_AND_VERSION = struct.Struct(">hh")
_CORRELATION_ID = struct.Struct(">i")
_SIZE = struct.Struct(">i")
_SIZE_AND_CORRELATION_ID = struct.Struct(">ii")


def decode_request(frame: Buffer) -> tuple[RequestHeader, Any]:
    """Header and body of a frame (without its size word); bytes after the body are ignored.

    Message sets are slices of the frame. ControlledShutdown comes with client id None. Raises
    ProtocolError where 0.8.2.2 closes the connection.
    """
    view = memoryview(frame)
    if len(view) < _KEY_AND_VERSION.size:
        raise ProtocolError("a request without a header")
    header, request, _ = _decoder(view[: _KEY_AND_VERSION.size].tobytes())(view, 0)
    if isinstance(header, AnonymousHeader):
        header = RequestHeader(*header, client_id=None)
    return header, request


@lru_cache(maxsize=64)
def _decoder(key_and_version: bytes) -> Callable[..., Any]:
    """The decoder of header and body of such requests."""
    schema = request_schema(*_KEY_AND_VERSION.unpack(key_and_version))
    anonymous = schema is ControlledShutdownRequest
    return decoder(AnonymousHeader if anonymous else RequestHeader, schema)


def encode_request(
    request: Any, correlation_id: int, client_id: str | None = ""
) -> list[bytes | bytearray | memoryview]:
    """The chunks of a framed request in wire order. ProtocolError for values that do not fit."""
    key, version, _ = api_of(request)
    header: RequestHeader | AnonymousHeader
    if isinstance(request, ControlledShutdownRequest):
        header = AnonymousHeader(key, version, correlation_id)
    else:
        header = RequestHeader(key, version, correlation_id, client_id)
    parts: list[Any] = encoder(type(header), type(request))(header, request)
    return _put_in_front(_SIZE.pack(_length(parts)), parts)


def encode_response(correlation_id: int, response: Any) -> list[Any]:
    """The chunks of a framed response in wire order; slices of log files are not read."""
    parts = encode_parts(response)
    return _put_in_front(_SIZE_AND_CORRELATION_ID.pack(_length(parts, 4), correlation_id), parts)


def decode_response(schema: type[Response], frame: Buffer) -> tuple[int, Response]:
    """(correlation id, response) of a frame without its size word, or ProtocolError."""
    view = memoryview(frame)
    if len(view) < _CORRELATION_ID.size:
        raise ProtocolError("a response without a correlation id")
    response, _ = decoder(schema)(view, _CORRELATION_ID.size)
    return _CORRELATION_ID.unpack_from(view)[0], response


def _length(parts: list[Any], more: int = 0) -> int:
    size = more
    for part in parts:
        size += len(part)
    if size > 0x7FFFFFFF:
        raise ProtocolError(f"{size} bytes are too many for a frame")
    return size


def _put_in_front(prefix: bytes, parts: list[Any]) -> list[Any]:
    # The first chunk is never a message set: every schema has fields before it.
    parts[0] = prefix + parts[0]
    return parts
