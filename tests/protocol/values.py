"""Shared by the tests of schemas: values of any schema, and one check for all of them."""

from __future__ import annotations

import struct
from collections import namedtuple
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import strategies as st

from kafka08.errors import ProtocolError
from kafka08.protocol.codec import decode, encode
from kafka08.protocol.framing import FrameDecoder
from kafka08.protocol.registry import APIS
from kafka08.protocol.types import (
    Fixed,
    Kind,
    Records,
    Struct,
    Tags,
    Text,
    fields_of,
    minimum_size,
)

REQUESTS = [Struct(api.request, version) for api in APIS.values() for version in api.versions]
RESPONSES = [Struct(api.response, version) for api in APIS.values() for version in api.versions]

MAX_FRAME = 1 << 20


class FileOf:
    """Stands for a slice of a log file: it has a length, and nobody may ask for its bytes."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def values_of(kind: Kind) -> st.SearchStrategy[Any]:
    """Anything that the wire type can hold."""
    if isinstance(kind, Fixed):
        if kind.name == "boolean":
            return st.booleans()
        bits = 8 * struct.calcsize(">" + kind.code) - 1
        return st.integers(-(2**bits), 2**bits - 1)
    if isinstance(kind, Text):
        texts = st.text(max_size=8)
        return st.none() | texts if kind.nullable else texts
    if isinstance(kind, Tags):
        return st.none()
    if isinstance(kind, Struct):
        return values(*kind)
    items: st.SearchStrategy[Any] = (
        st.binary(max_size=40)
        if isinstance(kind, Records)
        else st.lists(values_of(kind.element), max_size=2)
    )
    return st.none() | items if kind.nullable else items


def smallest(kind: Kind) -> Any:
    """The value of the wire type with zeros, empty texts and empty arrays."""
    if isinstance(kind, Struct):
        return _make(kind.schema, {each.name: smallest(each.kind) for each in fields_of(*kind)})
    if isinstance(kind, Fixed):
        return kind.name != "boolean" and 0
    if isinstance(kind, Tags):
        return None
    return "" if isinstance(kind, Text) else b"" if isinstance(kind, Records) else []


def values(schema: Any, version: int = 0) -> st.SearchStrategy[Any]:
    """Values with anything in the fields of ``version``, and defaults in the others."""
    fields = {field.name: values_of(field.kind) for field in fields_of(schema, version)}
    return st.fixed_dictionaries(fields).map(partial(_make, schema))


def _make(schema: Any, fields: dict[str, Any]) -> Any:
    return schema(**fields)


def narrowed(value: Any, version: int) -> Any:
    """Schema values as named tuples of the fields of ``version`` alone, in wire order."""
    if isinstance(value, list):
        return [narrowed(item, version) for item in value]
    if not hasattr(value, "_fields"):
        return value
    narrow = _narrow_class(type(value), version)
    return narrow(*(narrowed(getattr(value, name), version) for name in narrow._fields))


@cache
def _narrow_class(schema: Any, version: int) -> Any:
    return namedtuple(schema.__name__, [field.name for field in fields_of(schema, version)])


def check_every_cut(schema: Any, data: bytes, version: int = 0) -> Any:
    """Decode ``data`` whole, cut at each byte, and with bytes behind it; returns the value.

    A cut in front of a trailing field leaves its default; each other one is an error.
    """
    value, end = decode(schema, data, version=version)
    assert type(value) is schema
    assert end == len(data)
    assert encode(value, version) == data
    trailing = [field for field in fields_of(schema, version) if field.trailing]
    for cut in range(len(data)):
        if cut + sum(minimum_size(field.kind) for field in trailing) == len(data) and trailing:
            defaults = {each.name: schema._field_defaults[each.name] for each in trailing}
            cut_value = value._replace(**defaults)
            assert decode(schema, data[:cut], version=version) == (cut_value, cut)
            continue
        with pytest.raises(ProtocolError):
            decode(schema, data[:cut], version=version)
    assert decode(schema, data + b"\xff\0\xff", version=version) == (value, end)
    assert decode(schema, b"\xff\0\xff" + data, 3, version) == (value, end + 3)
    return value


def receive(decoder: FrameDecoder, data: bytes) -> list[memoryview]:
    """One recv_into that finds ``data`` ready, or as much of it as the buffer takes."""
    buffer = decoder.get_buffer()
    assert not buffer.readonly
    assert len(buffer) >= len(data)
    buffer[: len(data)] = data
    return decoder.received(len(data))


def stream(decoder: FrameDecoder, data: bytes) -> list[bytes]:
    """As many full recv_into as it takes."""
    frames: list[bytes] = []
    while data:
        piece = data[: len(decoder.get_buffer())]
        frames += map(bytes, receive(decoder, piece))
        data = data[len(piece) :]
    return frames


def check_framing(frame: bytes) -> memoryview | bytes:
    """Cut a frame out of a stream whole, byte by byte, and with another behind it."""
    whole = stream(FrameDecoder(MAX_FRAME), frame)
    assert whole == [frame[4:]]
    slowly = FrameDecoder(MAX_FRAME)
    assert [stream(slowly, frame[i : i + 1]) for i in range(len(frame))][:-1] == [[]] * (
        len(frame) - 1
    )
    assert slowly.pending == 0
    followed = FrameDecoder(MAX_FRAME)
    assert stream(followed, frame + frame[:-1]) == whole
    assert followed.pending == len(frame) - 1
    assert stream(followed, frame[-1:]) == whole
    return whole[0]


def as_json(value: Any, version: int = 0) -> Any:
    """Schema values as dicts of the fields of ``version``, message sets as hex."""
    if hasattr(value, "_asdict"):
        names = [field.name for field in fields_of(type(value), version)]
        return {name: as_json(getattr(value, name), version) for name in names}
    if isinstance(value, list):
        return [as_json(inner, version) for inner in value]
    return value.hex() if isinstance(value, (bytes, memoryview)) else value
