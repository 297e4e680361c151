"""The columns of ``runs`` and the compiled loops of ``rows`` do the same to a run."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.message import runs
from kafka08.message.message_set import encode_set

native = pytest.mark.skipif(runs.native is None, reason="kafka08.message.rows is not compiled")


def run_of(rows: int, value: bytes, tail: bytes = b"") -> bytearray:
    return bytearray(encode_set([(None, value)] * rows, 0, 7) + tail)


def stamp(data: bytearray, first: int) -> tuple[int, bytes]:
    size = int.from_bytes(data[8:12], "big")
    taken = runs.stamp_run(memoryview(data), 0, len(data), size, first)
    return taken, bytes(data) if taken else b""


def plain(data: bytearray) -> bytes | None:
    size = int.from_bytes(data[8:12], "big")
    table = runs.plain_run(memoryview(data), 0, len(data), size, check_crc=True)
    return None if table is None else bytes(table)


@native
@given(
    rows=st.integers(1, 60),
    value=st.binary(max_size=40),
    tail=st.binary(max_size=60),
    first=st.integers(0, 2**62),
    flips=st.lists(st.integers(0, 60 * 66 * 8 - 1), max_size=3),
)
def test_machine_code_and_columns_agree(
    rows: int, value: bytes, tail: bytes, first: int, flips: list[int]
) -> None:
    data = run_of(rows, value, tail)
    for bit in flips:
        data[bit // 8 % len(data)] ^= 1 << bit % 8
    if len(data) < 12:
        return
    with mock.patch.object(runs, "native", None):
        wanted = stamp(data[:], first), plain(data[:])
    # a compressed row ends a run for the one and keeps the other from beginning
    if data[17 :: 26 + len(value)].count(0) == len(data[17 :: 26 + len(value)]):
        assert (stamp(data[:], first), plain(data[:])) == wanted
    else:
        taken, _ = stamp(data[:], first)
        assert taken >= wanted[0][0]


def test_a_compressed_row_is_never_taken() -> None:
    data = run_of(30, b"abc")
    data[20 * 29 + 17] = 1
    taken, _ = stamp(data, 0)
    assert taken in (0, 20 * 29)


def test_a_wrong_crc_is_found_in_any_row() -> None:
    for row in range(20):
        data = run_of(20, b"abc")
        data[row * 29 + 28] ^= 4
        assert stamp(data, 0) == (0, b"")
        assert plain(data) is None


def test_rows_are_numbered_and_all_else_stays() -> None:
    data = run_of(20, b"abc")
    assert stamp(data[:], 1000) == (len(data), encode_set([(None, b"abc")] * 20, 0, 1000))
