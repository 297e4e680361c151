"""Decodes bytes to values and encodes values, by the schema classes of the protocol.

``decoder`` and ``encoder`` return functions that walk the fields of the given layouts: schema
classes, each in one version. If it was built, ``kafka08._native.layout`` does the same in compiled
code. Message sets are not decoded. Does not know headers, frames or API keys.

A decoder does not read past the end of the buffer, does not begin an array whose elements cannot
fit in the remaining bytes or that exceeds the number of elements allowed, and raises only
ProtocolError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol, TypeVar

from kafka08._native import load
from kafka08.errors import ProtocolError
from kafka08.protocol.types import (
    COPY_BELOW,
    Array,
    Fixed,
    Kind,
    Records,
    Struct,
    Tags,
    Text,
    fields_of,
    minimum_size,
)

Buffer = bytes | bytearray | memoryview


class Slice(Protocol):
    """A part of a log file, from ``position`` on."""

    position: int

    def __len__(self) -> int: ...
    def fileno(self) -> int: ...
    def read(self) -> bytes: ...
    def read_to_page(self) -> bytes: ...


# A chunk of an encoded value.
Part = Buffer | Slice
T = TypeVar("T")
Decoder = Callable[..., tuple[Any, ...]]
Encoder = Callable[..., list[Part]]

ANY_NUMBER: Final = (1 << 63) - 1  # of elements


def decode(schema: type[T], buffer: Buffer, position: int = 0, version: int = 0) -> tuple[T, int]:
    """Read one ``schema`` at ``position``; returns the value and the position after it.

    Message sets are slices of ``buffer``, writable when it is. ProtocolError for bytes that are
    too short or break a rule of the schema.
    """
    value, end = decoder(Struct(schema, version))(memoryview(buffer), position)
    return value, end


def encode(value: object, version: int = 0) -> bytes:
    """The bytes of a schema value whose message sets are all bytes-like.

    ProtocolError for a value that does not fit its field, such as None for a string that cannot
    be null, or a string of more than 32767 bytes.
    """
    parts: list[Any] = encode_parts(value, version)
    return b"".join(parts)


def encode_parts(value: object, version: int = 0) -> list[Part]:
    """The same as chunks in wire order, without copying large message sets.

    A message set that is not bytes-like (a slice of a log file) becomes a chunk itself. An empty
    one adds only its length.
    """
    return _encoder_of(type(value), version)(value)


def plain_decoder(layouts: tuple[Struct, ...]) -> Decoder:
    """f(memoryview, position, elements) -> (value of each layout..., end), read back to back.

    All arrays together may have ``elements``; without it, any number.
    """

    def decode(buffer: memoryview, position: int, elements: int = ANY_NUMBER) -> tuple[object, ...]:
        values = []
        room = _Room(elements)
        for layout in layouts:
            value, position = _read(layout, buffer, position, room)
            values.append(value)
        return (*values, position)

    return decode


def plain_encoder(layouts: tuple[Struct, ...]) -> Encoder:
    """f(value of each layout...) -> chunks in wire order."""
    names = ", ".join(layout.schema.__name__ for layout in layouts)

    def encode(*values: object) -> list[Part]:
        out = _Chunks()
        try:
            for layout, value in zip(layouts, values, strict=True):
                _write(layout, value, out)
        except (struct.error, AttributeError, TypeError, ProtocolError) as error:
            raise ProtocolError(f"cannot encode {names}: {error}") from error
        out.cut()
        return out.parts

    return encode


native = load("layout")
_make_decoder = native.decoder if native else plain_decoder
_make_encoder = native.encoder if native else plain_encoder


# layout, ... -> its decoder or encoder, made once.
decoder: Callable[..., Decoder] = cache(lambda *layouts: _make_decoder(layouts))
encoder: Callable[..., Encoder] = cache(lambda *layouts: _make_encoder(layouts))
_encoder_of: Callable[[type, int], Encoder] = cache(lambda *layout: encoder(Struct(*layout)))


# The plain walk over a schema


class _Room:
    """How many elements the arrays of a value may still have."""

    def __init__(self, elements: int) -> None:
        self.elements = elements
        self._left = elements

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise ProtocolError(f"more than {self.elements} elements in its arrays")


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


def _unsigned_varint(buffer: memoryview, position: int) -> tuple[int, int]:
    """7 bits a byte, the lowest first; at most five bytes, as for an int32."""
    number = 0
    for shift in range(0, 35, 7):
        _need(1, buffer, position)
        byte = buffer[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise ProtocolError("a varint of more than five bytes")


def _length(kind: Text | Array | Records, buffer: memoryview, position: int) -> tuple[int, int]:
    if kind.compact:
        number, position = _unsigned_varint(buffer, position)
        return number - 1, position
    return _number("h" if isinstance(kind, Text) else "i", buffer, position)


def _read(kind: Kind, buffer: memoryview, position: int, room: _Room) -> tuple[object, int]:
    if isinstance(kind, Struct):
        return _read_struct(kind, buffer, position, room)
    if isinstance(kind, Fixed):
        number, position = _number("b" if kind.code == "?" else kind.code, buffer, position)
        if kind.code != "?":
            return number, position
        if number not in (0, 1):
            raise ProtocolError(f"{number} is not a boolean")
        return number == 1, position
    if isinstance(kind, Tags):
        return None, _skip_tags(buffer, position)
    size, position = _length(kind, buffer, position)
    if size < 0:
        return _absent(kind, size), position
    if isinstance(kind, Array):
        _need(size * minimum_size(kind.element), buffer, position)
        room.take(size)
        items = []
        for _ in range(size):
            item, position = _read(kind.element, buffer, position, room)
            items.append(item)
        return items, position
    _need(size, buffer, position)
    data = buffer[position : position + size]
    return data if isinstance(kind, Records) else str(data, "utf-8", "replace"), position + size


def _read_struct(
    kind: Struct, buffer: memoryview, position: int, room: _Room
) -> tuple[object, int]:
    fields = fields_of(*kind)
    names = kind.schema._fields
    values = [kind.schema._field_defaults.get(name) for name in names]
    for field in fields:
        if field.trailing and position == len(buffer):
            break  # the value is the default
        values[field.place], position = _read(field.kind, buffer, position, room)
    return kind.schema._make(values), position


def _absent(kind: Text | Array | Records, size: int) -> object:
    """The value for a negative length."""
    if kind.nullable:
        return None
    if isinstance(kind, Records) or kind.strict:
        raise ProtocolError(f"a length of {size}")
    return "" if isinstance(kind, Text) else []


def _skip_tags(buffer: memoryview, position: int) -> int:
    count, position = _unsigned_varint(buffer, position)
    _need(2 * count, buffer, position)
    for _ in range(count):
        _, position = _unsigned_varint(buffer, position)
        size, position = _unsigned_varint(buffer, position)
        _need(size, buffer, position)
        position += size
    return position


class _Chunks:
    """Collects encoded bytes in ``parts``."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._pending: list[Buffer] = []

    def put(self, data: Buffer) -> None:
        self._pending.append(data)

    def cut(self) -> None:
        """End the current chunk."""
        if self._pending:
            self.parts.append(b"".join(self._pending))
            self._pending.clear()


def _put_length(kind: Text | Array | Records, size: int, out: _Chunks) -> None:
    """``size`` -1 stands for null."""
    if not kind.compact:
        out.put(_codec("h" if isinstance(kind, Text) else "i").pack(size))
        return
    size += 1
    while size > 0x7F:
        out.put(bytes((size & 0x7F | 0x80,)))
        size >>= 7
    out.put(bytes((size,)))


def _write(kind: Kind, value: Any, out: _Chunks) -> None:
    if isinstance(kind, Struct):
        if not isinstance(value, tuple) or len(value) != len(kind.schema._fields):
            raise ProtocolError(f"{value!r} is not a {kind.schema.__name__}")
        for field in fields_of(*kind):
            _write(field.kind, value[field.place], out)
    elif isinstance(kind, Fixed):
        out.put(_codec(kind.code).pack(value))
    elif isinstance(kind, Tags):
        out.put(b"\0")
    elif value is None and kind.nullable:
        _put_length(kind, -1, out)
    elif isinstance(kind, Text):
        # A lone surrogate becomes "?", as in Java's getBytes.
        data = value.encode("utf-8", "replace")
        _put_length(kind, len(data), out)
        out.put(data)
    else:
        _put_length(kind, len(value), out)
        if isinstance(kind, Array):
            for item in value:
                _write(kind.element, item, out)
        elif isinstance(value, bytes | bytearray | memoryview) and len(value) < COPY_BELOW:
            out.put(value)
        elif len(value):
            out.cut()
            out.parts.append(value)
