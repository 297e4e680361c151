"""Messages of formats 1 and 2 as readers see them: true offsets, timestamps and headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import InvalidMessageError, InvalidRecordError
from kafka08.message.batch import CONTROL, LOG_APPEND_TIME
from kafka08.message.entry import encode_entry, key_and_value
from kafka08.message.sets import iter_messages
from kafka08.message.timed_messages import timed_messages
from tests.message import batches
from tests.message.batches import batch, golden, simple, timed, timed_wrapper

TIMES = (1000, 1001, 1002)
PAIRS = [(b"k%d" % n, b"v%d" % n) for n in range(3)]


def seen(data: bytes) -> list[tuple]:
    return [(m.offset, m.value, m.timestamp, m.timestamp_type) for m in iter_messages(data)]


@given(st.lists(batches.records, min_size=1, max_size=8), st.sampled_from([0, 1, 2, 3, 4]))
def test_records_of_a_batch(records: list[batches.Record], codec: int) -> None:
    deltas = [2 * number for number in range(len(records))]  # as compaction leaves them
    data = batch(records, 50, codec, deltas=deltas, time=0)
    found = list(iter_messages(data))
    assert [(m.offset, m.key, m.value, m.timestamp) for m in found] == [
        (50 + delta, key, value, time)
        for delta, (key, value, time, _) in zip(deltas, records, strict=True)
    ]
    assert [m.headers for m in found] == [
        tuple((name.decode(errors="replace"), value) for name, value in headers)
        for _, _, _, headers in records
    ]
    assert {(m.magic, m.codec, m.timestamp_type) for m in found} <= {(2, codec, 0)}


def test_the_brokers_time_is_that_of_all_records() -> None:
    data = batch(simple(b"a", b"b"), attributes=LOG_APPEND_TIME, max_timestamp=77)
    assert seen(data) == [(0, b"a", 77, 1), (1, b"b", 77, 1)]


def test_control_batches_have_no_messages() -> None:
    marker = batch([(b"\0\0\0\1", b"\0\0\0\0\0\0", 0, [])], 2, attributes=CONTROL)
    data = batch(simple(b"a", b"b")) + marker + batch(simple(b"c"), 3)
    assert [(offset, value) for offset, value, *_ in seen(data)] == [
        (0, b"a"),
        (1, b"b"),
        (3, b"c"),
    ]


def test_plain_messages_of_format_1() -> None:
    data = timed(PAIRS, 5) + encode_entry(None, None, 8, timestamp=9, stamped=True)
    expected = [(5 + n, b"v%d" % n, TIMES[n], 0) for n in range(3)]
    assert seen(data) == [*expected, (8, None, 9, 1)]
    first = next(iter_messages(data))
    assert (first.key, first.headers, first.magic, first.codec) == (b"k0", (), 1, 0)


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_wrappers_of_format_1(codec: int) -> None:
    data = timed_wrapper(timed(PAIRS), codec, offset=12, time=1002)
    assert seen(data) == [(10 + n, b"v%d" % n, TIMES[n], 0) for n in range(3)]
    assert {(m.magic, m.codec) for m in iter_messages(data)} == {(1, codec)}


def test_relative_offsets_with_gaps_and_those_that_do_not_rise() -> None:
    inner = timed(PAIRS[:1], 0) + timed(PAIRS[1:2], 4)
    assert [m.offset for m in iter_messages(timed_wrapper(inner, 1, offset=14))] == [10, 14]
    inner = timed(PAIRS[:1], 0) + timed(PAIRS[1:2], 0)
    assert [m.offset for m in iter_messages(timed_wrapper(inner, 1, offset=14))] == [13, 14]


def test_the_brokers_time_of_a_wrapper_overrides_those_inside() -> None:
    packed = timed_wrapper(timed(PAIRS), 1, offset=2)
    _, value = key_and_value(packed, 0, len(packed))
    stamped = encode_entry(None, packed[slice(*value)], 2, 1, timestamp=88, stamped=True)
    assert seen(stamped) == [(n, b"v%d" % n, 88, 1) for n in range(3)]


@pytest.mark.scenario("modern-8")
@pytest.mark.parametrize(
    "name",
    [
        "fetch v4 of four magic-2 batches from 0",
        "fetch v4 of t-f1",
        "fetch v10 of zstd",
        "fetch v2 of LogAppendTime",
        "fetch v4 of LogAppendTime",
        "disk1 LogAppendTime fetch v2",
        "disk1 LogAppendTime fetch v4",
    ],
)
def test_what_3_9_1_sent(name: str) -> None:
    wanted = [(*message, [])[:5] for message in batches.GOLDEN[name]["messages"]]
    assert wanted
    assert [
        (m.offset, m.timestamp, text(m.key), text(m.value), [[k, text(v)] for k, v in m.headers])
        for m in iter_messages(golden(name))
    ] == wanted
    assert {m.timestamp_type for m in iter_messages(golden(name))} == {"LogAppend" in name}


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def test_damage() -> None:
    whole = bytearray(batch(simple(b"a")))
    whole[-1] ^= 1
    with pytest.raises(InvalidMessageError):
        list(iter_messages(whole))
    emptied = batch([], last_delta=3)
    assert list(timed_messages(emptied, 0, len(emptied))) == []
    entry = batch(simple(b"a"))
    with pytest.raises(InvalidRecordError):
        list(timed_messages(entry, 0, len(entry) - 1))
