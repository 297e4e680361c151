"""The plain walk of ``codec`` and the machine code of ``layout`` do the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import ProtocolError
from kafka08.protocol import codec
from kafka08.protocol import group_schemas as g
from kafka08.protocol import schemas as s
from kafka08.protocol.types import Struct
from tests.protocol.values import REQUESTS, RESPONSES, values

pytestmark = pytest.mark.skipif(
    codec.native is None, reason="kafka08._native is not built: there is no C compiler"
)

layouts = st.sampled_from([*REQUESTS, *RESPONSES, Struct(s.RequestHeader), Struct(s.OffsetValue)])


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except ProtocolError:
        return ProtocolError


@given(data=st.data())
def test_they_write_the_same_chunks(data: st.DataObject) -> None:
    layout = data.draw(layouts)
    value = data.draw(values(*layout))
    chunks = codec.native.encoder((layout,))(value)
    assert chunks == codec.plain_encoder((layout,))(value)


@given(data=st.data())
def test_they_read_damaged_bytes_alike(data: st.DataObject) -> None:
    layout = data.draw(layouts)
    damaged = bytearray(codec.encode(data.draw(values(*layout)), layout.version))
    for _ in range(data.draw(st.integers(0, 3)) if damaged else 0):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    del damaged[data.draw(st.integers(0, len(damaged))) :]
    frame = memoryview(damaged)
    walked = outcome(codec.native.decoder((layout,)), frame, 0)
    assert walked == outcome(codec.plain_decoder((layout,)), frame, 0)


@given(data=st.data(), elements=st.integers(0, 4))
def test_they_count_the_elements_of_all_arrays_alike(data: st.DataObject, elements: int) -> None:
    layout = data.draw(layouts)
    frame = memoryview(codec.encode(data.draw(values(*layout)), layout.version))
    walked = outcome(codec.native.decoder((layout,)), frame, 0, elements)
    assert walked == outcome(codec.plain_decoder((layout,)), frame, 0, elements)


@pytest.mark.parametrize("value", [("g",), ("g", 1, "m", None, 2), None, 7])
def test_what_is_no_such_structure_is_refused(value: Any) -> None:
    with pytest.raises(ProtocolError, match="cannot encode HeartbeatRequest"):
        codec.native.encoder((Struct(g.HeartbeatRequest),))(value)


@pytest.mark.parametrize("number", [2**15, -(2**15) - 1, 2**64, 1.5, "1", None])
def test_numbers_that_do_not_fit_are_refused(number: Any) -> None:
    with pytest.raises(ProtocolError, match="cannot encode HeartbeatResponse"):
        codec.native.encoder((Struct(g.HeartbeatResponse),))(g.HeartbeatResponse(number))


def test_the_ends_of_a_range_fit() -> None:
    for number in (-(2**15), -1, 0, 2**15 - 1):
        chunks = codec.native.encoder((Struct(g.HeartbeatResponse),))(g.HeartbeatResponse(number))
        assert chunks == [number.to_bytes(2, "big", signed=True)]
