"""Decodes bytes to values and encodes values, by the schema classes of the protocol.

``decoder`` and ``encoder`` return functions that walk the fields of the given schemas. If it was
built, ``kafka08._native.layout`` does the same in compiled code. Message sets are not decoded.
Does not know headers, frames or API keys.

A decoder does not read past the end of the buffer, does not begin an array whose elements cannot
fit in the remaining bytes, and raises only ProtocolError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from kafka08.errors import ProtocolError
from kafka08.protocol.types import (
    COPY_BELOW,
    Array,
    Fixed,
    Kind,
    Records,
    Struct,
    Text,
    fields_of,
    minimum_size,
)

Buffer = bytes | bytearray | memoryview
Schema = TypeVar("Schema")
Decoder = Callable[..., Any]
Encoder = Callable[..., Any]


def decode(schema: type[Schema], buffer: Buffer, position: int = 0) -> tuple[Schema, int]:
    """Read one ``schema`` at ``position``; returns the value and the position after it.

    Message sets are slices of ``buffer``, writable when it is. ProtocolError for bytes that are
    too short or break a rule of the schema.
    """
    value, end = decoder(schema)(memoryview(buffer), position)
    return value, end


def encode(value: Any) -> bytes:
    """The bytes of a schema value whose message sets are all bytes-like.

    ProtocolError for a value that does not fit its field, such as None for a string that cannot
    be null, or a string of more than 32767 bytes.
    """
    return b"".join(encode_parts(value))


def encode_parts(value: Any) -> list[Any]:
    """The same as chunks in wire order, without copying large message sets.

    A message set that is not bytes-like (a slice of a log file) becomes a chunk itself. An empty
    one adds only its length.
    """
    parts: list[Any] = encoder(type(value))(value)
    return parts


def plain_decoder(schemas: tuple[Any, ...]) -> Decoder:
    """f(memoryview, position) -> (value of each schema..., end), read back to back."""
    kinds = [Struct(schema) for schema in schemas]

    def decode(buffer: memoryview, position: int) -> tuple[Any, ...]:
        values = []
        for kind in kinds:
            value, position = _read(kind, buffer, position)
            values.append(value)
        return (*values, position)

    return decode


def plain_encoder(schemas: tuple[Any, ...]) -> Encoder:
    """f(value of each schema...) -> chunks in wire order."""
    kinds = [Struct(schema) for schema in schemas]
    names = ", ".join(schema.__name__ for schema in schemas)

    def encode(*values: Any) -> list[Any]:
        out = _Chunks()
        try:
            for kind, value in zip(kinds, values, strict=True):
                _write(kind, value, out)
        except (struct.error, AttributeError, TypeError, ProtocolError) as error:
            raise ProtocolError(f"cannot encode {names}: {error}") from error
        out.cut()
        return out.parts

    return encode


try:
    native: Any = import_module("kafka08._native.layout")
except ImportError:
    native = None
_make_decoder = native.decoder if native else plain_decoder
_make_encoder = native.encoder if native else plain_encoder


# schema, ... -> its decoder or encoder, made once.
decoder: Callable[..., Decoder] = cache(lambda *schemas: _make_decoder(schemas))
encoder: Callable[..., Encoder] = cache(lambda *schemas: _make_encoder(schemas))


# The plain walk over a schema


@cache
def _codec(code: str) -> struct.Struct:
    return struct.Struct(">" + code)


def _need(size: int, buffer: memoryview, position: int) -> None:
    if size > len(buffer) - position:
        raise ProtocolError(f"{size - len(buffer) + position} bytes are missing")


def _number(code: str, buffer: memoryview, position: int) -> tuple[int, int]:
    codec = _codec(code)
    _need(codec.size, buffer, position)
    return codec.unpack_from(buffer, position)[0], position + codec.size


def _read(kind: Kind, buffer: memoryview, position: int) -> tuple[Any, int]:
    if isinstance(kind, Struct):
        values = []
        for field in fields_of(kind.schema):
            value, position = _read(field.kind, buffer, position)
            values.append(value)
        return kind.schema._make(values), position
    if isinstance(kind, Fixed):
        number, position = _number("b" if kind.code == "?" else kind.code, buffer, position)
        if kind.code != "?":
            return number, position
        if number not in (0, 1):
            raise ProtocolError(f"{number} is not a boolean")
        return number == 1, position
    size, position = _number("h" if isinstance(kind, Text) else "i", buffer, position)
    if size < 0 and (isinstance(kind, Records) or kind.strict):
        raise ProtocolError(f"a length of {size}")
    if isinstance(kind, Array):
        _need(size * minimum_size(kind.element), buffer, position)
        items = []
        for _ in range(size):
            item, position = _read(kind.element, buffer, position)
            items.append(item)
        return items, position
    if isinstance(kind, Text) and size < 0:
        return (None if kind.nullable else ""), position
    _need(size, buffer, position)
    data = buffer[position : position + size]
    return data if isinstance(kind, Records) else str(data, "utf-8", "replace"), position + size


class _Chunks:
    """Collects encoded bytes in ``parts``."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self._pending: list[Any] = []

    def put(self, data: Any) -> None:
        self._pending.append(data)

    def cut(self) -> None:
        """End the current chunk."""
        if self._pending:
            self.parts.append(b"".join(self._pending))
            self._pending.clear()


def _write(kind: Kind, value: Any, out: _Chunks) -> None:
    if isinstance(kind, Struct):
        fields = fields_of(kind.schema)
        if not isinstance(value, tuple) or len(value) != len(fields):
            raise ProtocolError(f"{value!r} is not a {kind.schema.__name__}")
        for field, item in zip(fields, value, strict=True):
            _write(field.kind, item, out)
    elif isinstance(kind, Fixed):
        out.put(_codec(kind.code).pack(value))
    elif isinstance(kind, Text):
        if value is None and kind.nullable:
            out.put(_codec("h").pack(-1))
            return
        # A lone surrogate becomes "?", as in Java's getBytes.
        data = value.encode("utf-8", "replace")
        out.put(_codec("h").pack(len(data)) + data)
    else:
        out.put(_codec("i").pack(len(value)))
        if isinstance(kind, Array):
            for item in value:
                _write(kind.element, item, out)
        elif isinstance(value, bytes | bytearray | memoryview) and len(value) < COPY_BELOW:
            out.put(value)
        elif len(value):
            out.cut()
            out.parts.append(value)
