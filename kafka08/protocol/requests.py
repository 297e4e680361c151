"""Whole requests and responses: size word, header and body.

Does not know sockets; frames come from ``framing``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence, Sized
from typing import Any, Final

from kafka08.errors import ProtocolError
from kafka08.protocol.codec import Buffer, Decoder, Part, decoder, encode_parts, encoder
from kafka08.protocol.later_schemas import UnsupportedApiVersionsRequest
from kafka08.protocol.registry import (
    API_VERSIONS,
    APIS,
    ORIGINAL_APIS,
    Api,
    Apis,
    api_of,
    find_api,
)
from kafka08.protocol.schemas import (
    AnonymousHeader,
    ControlledShutdownRequest,
    FlexibleHeader,
    RequestHeader,
)
from kafka08.protocol.types import Schema, Struct

_KEY_AND_VERSION: Final = struct.Struct(">hh")
_KEY_AND_VERSION_BYTES: Final = _KEY_AND_VERSION.size
_CORRELATION_ID: Final = struct.Struct(">i")
_SIZE: Final = struct.Struct(">i")
_SIZE_AND_CORRELATION_ID: Final = struct.Struct(">ii")


class RequestDecoder:
    """Reads the requests of ``apis``."""

    def __init__(self, apis: Apis) -> None:
        self._apis = apis
        # The first four bytes of a frame -> the decoder of its header and body, and the elements
        # that it may have.
        self._decoders: dict[bytes, tuple[Decoder, int]] = {}

    def decode(self, frame: Buffer) -> tuple[RequestHeader, Any]:
        """Header and body of a frame (without its size word); bytes after the body are ignored.

        Message sets are slices of the frame. The version in the header is the one in which the
        body was read, and in which it must be answered. ControlledShutdown comes with client id
        None. Raises ProtocolError for what closes the connection.
        """
        view = frame if isinstance(frame, memoryview) else memoryview(frame)
        if len(view) < _KEY_AND_VERSION_BYTES:
            raise ProtocolError("a request without a header")
        known = self._decoders.get(bytes(view[:_KEY_AND_VERSION_BYTES]))
        if known is None:
            return self._decode_new(view)
        decode, most_elements = known
        header, request, _ = decode(view, 0, most_elements)
        return _named(header), request

    def _decode_new(self, view: memoryview) -> tuple[RequestHeader, Any]:
        key, version = _KEY_AND_VERSION.unpack_from(view)
        api = find_api(self._apis, key)
        if key == API_VERSIONS and version not in api.versions:
            header, _ = decoder(Struct(RequestHeader))(view, 0)
            return header._replace(api_version=0), UnsupportedApiVersionsRequest()
        read_as = api.version_read(version)
        decode = decoder(Struct(_header_of(api, read_as)), Struct(api.request, read_as))
        if read_as == version:
            self._decoders[_KEY_AND_VERSION.pack(key, version)] = decode, api.most_elements
        header, request, _ = decode(view, 0, api.most_elements)
        return _named(header)._replace(api_version=read_as), request


def _header_of(api: Api, version: int) -> Schema:
    if api.request is ControlledShutdownRequest:
        return AnonymousHeader
    return FlexibleHeader if version >= api.flexible else RequestHeader


def _named(header: RequestHeader | AnonymousHeader | FlexibleHeader) -> RequestHeader:
    """The header of any request as a RequestHeader."""
    if isinstance(header, RequestHeader):
        return header
    if isinstance(header, AnonymousHeader):
        return RequestHeader(*header, client_id=None)
    return RequestHeader(*header[:4])


decode_request = RequestDecoder(ORIGINAL_APIS).decode


def encode_request(
    request: object, correlation_id: int, client_id: str | None = "", version: int | None = None
) -> list[bytes | bytearray | memoryview]:
    """The chunks of a framed request in wire order. ProtocolError for values that do not fit.

    ``version`` is that of ``api_of`` unless given.
    """
    key, usual_version, _ = api_of(request)
    version = usual_version if version is None else version
    kind = _header_of(APIS[key], version)
    opening = (key, version, correlation_id)
    header = kind(*opening) if kind is AnonymousHeader else kind(*opening, client_id)
    parts: list[Any] = encoder(Struct(kind), Struct(type(request), version))(header, request)
    return _put_in_front(_SIZE.pack(_length(parts)), parts)


def encode_response(correlation_id: int, response: object, version: int = 0) -> list[Part]:
    """The chunks of a framed response in wire order; slices of log files are not read."""
    parts = encode_parts(response, version)
    return _put_in_front(_SIZE_AND_CORRELATION_ID.pack(_length(parts, 4), correlation_id), parts)


def decode_response(layout: Struct, frame: Buffer) -> tuple[int, Any]:
    """(correlation id, response) of a frame without its size word, or ProtocolError."""
    view = memoryview(frame)
    if len(view) < _CORRELATION_ID.size:
        raise ProtocolError("a response without a correlation id")
    response, _ = decoder(layout)(view, _CORRELATION_ID.size)
    return _CORRELATION_ID.unpack_from(view)[0], response


def _length(parts: Sequence[Sized], more: int = 0) -> int:
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
