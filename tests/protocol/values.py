"""Shared by the tests of schemas: values of any schema, and one check for all of them."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import strategies as st

from kafka08.errors import ProtocolError
from kafka08.protocol.codec import decode, encode
from kafka08.protocol.framing import FrameDecoder
from kafka08.protocol.registry import APIS
from kafka08.protocol.types import Array, Fixed, Kind, Records, Text, fields_of

REQUESTS = [classes[0] for api in APIS.values() for classes in api.versions.values()]
RESPONSES = list({classes[1] for api in APIS.values() for classes in api.versions.values()})

MAX_FRAME = 1 << 20


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
    if isinstance(kind, Records):
        return st.binary(max_size=40)
    if isinstance(kind, Array):
        return st.lists(values_of(kind.element), max_size=2)
    return values(kind.schema)


def values(schema: Any) -> st.SearchStrategy[Any]:
    return st.tuples(*(values_of(field.kind) for field in fields_of(schema))).map(schema._make)


def check_every_cut(schema: Any, data: bytes) -> Any:
    """Decode ``data`` whole, cut at each byte, and with bytes behind it; returns the value."""
    value, end = decode(schema, data)
    assert type(value) is schema
    assert end == len(data)
    assert encode(value) == data
    for cut in range(len(data)):
        with pytest.raises(ProtocolError):
            decode(schema, data[:cut])
    assert decode(schema, data + b"\xff\0\xff") == (value, end)
    assert decode(schema, b"\xff\0\xff" + data, 3) == (value, end + 3)
    return value


def check_framing(frame: bytes) -> memoryview | bytes:
    """Cut a frame out of a stream whole, byte by byte, and with another behind it."""
    whole = FrameDecoder(MAX_FRAME).feed(frame)
    assert whole == [frame[4:]]
    slowly = FrameDecoder(MAX_FRAME)
    assert [slowly.feed(frame[i : i + 1]) for i in range(len(frame))][:-1] == [[]] * (
        len(frame) - 1
    )
    assert slowly.pending == 0
    followed = FrameDecoder(MAX_FRAME)
    assert followed.feed(frame + frame[:-1]) == whole
    assert followed.pending == len(frame) - 1
    assert followed.feed(frame[-1:]) == whole
    return whole[0]


def as_json(value: Any) -> Any:
    """Schema values as dicts, message sets as hex."""
    if hasattr(value, "_asdict"):
        return {name: as_json(inner) for name, inner in value._asdict().items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    return value.hex() if isinstance(value, (bytes, memoryview)) else value
