"""Columns against the reader of single messages, over sets of every shape."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

import pyarrow as pa

from kafka08.errors import InvalidMessageError
from kafka08.message.sets import encode_set, iter_messages
from kafka08.spark.planner import Range
from kafka08.spark.structured.columns import SCHEMA, SCHEMA_WITH_HEADERS, record_batch
from tests.message.batches import batch, simple, timed, timed_wrapper

TIME = datetime(2015, 10, 2, 12, 30, 1, 234000, timezone.utc)
MOMENT = int(TIME.timestamp() * 1000)
EVERYTHING = Range("t", 3, 0, 1 << 60)
cells = st.none() | st.binary(max_size=40)
runs = st.builds(lambda pair, count: [pair] * count, st.tuples(cells, cells), st.integers(1, 40))
pieces = st.lists(st.tuples(runs, st.sampled_from([0, 0, 1, 2, 3])), max_size=6)


def stored(parts: list[tuple[list[tuple[bytes | None, bytes | None]], int]], base: int) -> bytes:
    data = b""
    for messages, codec in parts:
        data += encode_set(messages, codec, base)
        base += len(messages) + 2
    return data


def rows(data: bytes, wanted: Range = EVERYTHING) -> list[tuple[object, ...]]:
    batch, _ = record_batch(data, wanted, MOMENT)
    if batch is None:
        return []
    batch.validate(full=True)
    assert batch.schema.equals(SCHEMA)
    return [tuple(row.values()) for row in batch.to_pylist()]


@given(pieces, st.integers(0, 100), st.integers(0, 60), st.integers(0, 60), st.integers(0, 30))
def test_columns_hold_what_messages_do(parts, base, low, length, cut) -> None:
    data = stored(parts, base)
    data = data[: max(len(data) - cut, 0)]
    wanted = Range("t", 3, base + low, base + low + length)
    messages = list(iter_messages(data))
    expected = [
        (each.key, each.value, "t", 3, each.offset, TIME, -1)
        for each in messages
        if wanted.start <= each.offset < wanted.end
    ]
    assert rows(bytearray(data), wanted) == expected
    _, following = record_batch(data, wanted, MOMENT)
    assert following == (messages[-1].offset + 1 if messages else None)


def test_long_runs_in_one_size_and_in_two() -> None:
    messages = [(b"k%04d" % number, b"v" * 100) for number in range(3000)]
    messages += [(None, b"%d" % number) for number in range(500)]
    found = rows(encode_set(messages, 0, 7))
    assert [(key, value) for key, value, *_ in found] == messages
    assert [row[4] for row in found] == list(range(7, 3507))


def test_same_size_but_other_lengths() -> None:
    messages = [(b"a" * (number % 3), b"b" * (2 - number % 3)) for number in range(100)]
    assert [row[:2] for row in rows(encode_set(messages))] == messages


@pytest.mark.parametrize("codec", [0, 1, 2, 3])
@pytest.mark.parametrize("count", [3, 300])
def test_a_flipped_bit_is_found(codec: int, count: int) -> None:
    data = bytearray(encode_set([(None, b"value")] * count, codec))
    data[-1] ^= 1
    with pytest.raises(InvalidMessageError):
        record_batch(data, EVERYTHING, MOMENT)


def timed_rows(data: bytes, wanted: Range = EVERYTHING) -> list[tuple[Any, ...]]:
    """Rows of a batch with headers."""
    batch, _ = record_batch(data, wanted, MOMENT, headers=True)
    assert batch is not None
    batch.validate(full=True)
    assert batch.schema.equals(SCHEMA_WITH_HEADERS)
    names = ("key", "value", "offset", "timestamp", "timestampType", "headers")
    return [tuple(row[name] for name in names) for row in batch.to_pylist()]


def expected(data: bytes) -> list[tuple[Any, ...]]:
    found = []
    for m in iter_messages(data):
        time = datetime.fromtimestamp(m.timestamp / 1000, timezone.utc)
        headers = [{"key": name, "value": value} for name, value in m.headers] or None
        known = m.timestamp >= 0
        found.append((m.key, m.value, m.offset, time if known else TIME, m.timestamp_type, headers))
    return found


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_timestamps_and_headers_beside_messages_without(codec: int) -> None:
    first = batch([(b"k", b"a", 5, [(b"h", b"1"), (b"h", None)]), (None, None, 0, [])], 0, codec)
    data = first + encode_set([(b"old", b"b")], 0, 2) + timed([(b"k", b"c")], 3, time=2000)
    data += batch(simple(b"d", b"e"), 4, codec, attributes=8, max_timestamp=77000)
    if codec in (1, 2, 3):
        data += timed_wrapper(timed([(b"k", b"f"), (b"k", b"g")]), codec, offset=7)
    assert timed_rows(data) == expected(data)
    assert rows(data) == [
        (key, value, "t", 3, offset, time, kind)
        for key, value, offset, time, kind, _ in expected(data)
    ]
    inside = Range("t", 3, 1, 5)
    assert timed_rows(data, inside) == expected(data)[1:5]


def test_records_without_a_timestamp_and_with_an_absurd_one() -> None:
    record = (b"k", b"v", 0, [])
    (row,) = timed_rows(batch([record], time=-1))
    assert row[3] == TIME
    found, _ = record_batch(batch([record], time=(1 << 63) - 1), EVERYTHING, MOMENT)
    assert found is not None
    assert found.column("timestamp").cast(pa.int64()).to_pylist() == [
        ((1 << 63) - 1) // 1000 * 1000
    ]


def test_control_records_are_passed_over() -> None:
    marker = batch([(b"\0\0\0\1", b"\0" * 6, 0, [])], 0, attributes=0x20)
    assert record_batch(marker, EVERYTHING, MOMENT) == (None, 1)
    assert [row[2] for row in timed_rows(marker + batch(simple(b"a"), 1))] == [1]
