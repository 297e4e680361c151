"""The first message since a time, in entries of all formats, against a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import InvalidRecordError
from kafka08.message.batch import LOG_APPEND_TIME
from kafka08.message.compression import InflatesTooFarError
from kafka08.message.entry import encode_entry
from kafka08.message.times import Found, first_since
from tests.message.batches import batch, timed, timed_wrapper
from tests.message.sets import plain

times = st.integers(0, 30)


@st.composite
def entries(draw):
    """(bytes of an entry, the timestamps of its messages; -1 for none) at any offset."""
    kind = draw(st.sampled_from(["old", "timed", "wrapper", "stamped", "batch", "stamped batch"]))
    codec = draw(st.sampled_from([0, 1, 2]))
    found = draw(st.lists(times, min_size=1, max_size=4))

    def encode(base: int) -> bytes:
        last = base + len(found) - 1
        if kind == "old":
            return plain([(b"k", b"v")] * len(found), base)
        if kind == "timed":
            each = enumerate(found)
            return b"".join(encode_entry(b"k", b"v", base + i, timestamp=t) for i, t in each)
        if "batch" in kind:
            records = [(b"k", b"v", t - found[0], []) for t in found]
            stamped = LOG_APPEND_TIME if kind == "stamped batch" else 0
            most = 17 if stamped else max(found)
            return batch(
                records, base, codec, time=found[0], attributes=stamped, max_timestamp=most
            )
        inner = b"".join(encode_entry(b"k", b"v", i, timestamp=t) for i, t in enumerate(found))
        stamped = kind == "stamped"
        value = timed_wrapper(inner, 1, last, time=17 if stamped else max(found))
        if stamped:
            value = value[:17] + bytes((value[17] | LOG_APPEND_TIME,)) + value[18:]
        return value

    if kind == "old":
        found_times = [-1] * len(found)
    else:
        found_times = [17] * len(found) if "stamped" in kind else found
    return encode, found_times


@given(st.lists(entries(), max_size=6), times, st.just(0) | st.integers(99, 125))
def test_any_entries(parts, time, start):
    data, expected, offset = b"", [], 100
    for encode, found in parts:
        data += encode(offset)
        expected += [Found(offset + i, at) for i, at in enumerate(found)]
        offset += len(found)
    due = [each for each in expected if each.timestamp >= time and each.offset >= start]
    wanted = due[0] if due else None
    assert first_since(data, time, start) == wanted
    assert first_since(data + b"rest", time, start, stop=len(data)) == wanted


def test_a_header_that_says_more_than_is_in_the_batch():
    data = batch([(b"k", b"v", 0, [])], 5, time=10, max_timestamp=99)
    assert first_since(data, 20) is None
    assert first_since(data + timed([(b"k", b"v")], 6, time=30), 20) == Found(6, 30)


def test_compacted_entries():
    records = [(b"k", b"v", 0, []), (b"k", b"v", 7, [])]
    data = batch(records, 50, 1, deltas=[2, 5], last_delta=9, time=10)
    assert first_since(data, 5) == Found(52, 10)
    assert first_since(data, 17) == Found(55, 17)
    inner = encode_entry(b"k", b"v", 1, timestamp=10) + encode_entry(b"k", b"v", 4, timestamp=17)
    assert first_since(timed_wrapper(inner, 1, 54, time=17), 11) == Found(54, 17)
    assert first_since(timed_wrapper(inner, 1, 54, time=17), 10) == Found(51, 10)


def test_inner_offsets_that_do_not_rise():
    inner = b"".join(encode_entry(b"k", b"v", 0, timestamp=t) for t in (10, 20, 30))
    assert first_since(timed_wrapper(inner, 1, 52, time=30), 11) == Found(51, 20)


def test_many_entries_in_one_stretch():
    data = timed([(b"k", b"v")] * 5000, time=1000)
    for time in (0, 1000, 1001, 3456, 5999):
        assert first_since(data, time) == Found(max(time - 1000, 0), max(time, 1000))
    assert first_since(data, 6000) is None


def test_what_inflates_too_far_and_what_is_damaged():
    data = batch([(b"k", b"v" * 5000, 0, [])], 0, 1, time=10)
    with pytest.raises(InflatesTooFarError):
        first_since(data, 5, max_inflated=1000)
    whole = batch([(b"k", b"v", 0, [])], time=10)
    with pytest.raises(InvalidRecordError):
        first_since(whole[:61] + b"\x7f" + whole[62:], 5)


def test_messages_below_the_start_do_not_count():
    plain_ones = [encode_entry(b"k", b"v", n, timestamp=30 - n) for n in range(4)]
    data = b"".join(plain_ones) + batch([(b"k", b"v", t, []) for t in (9, 0, 5, 7)], 4, 1, time=40)
    assert first_since(data, 0, 2) == Found(2, 28)
    assert first_since(data, 29, 2) == Found(4, 49)
    assert first_since(data, 0, 4) == Found(4, 49)
    assert first_since(data, 0, 6) == Found(6, 45)
    assert first_since(data, 46, 6) == Found(7, 47)
    assert first_since(data, 48, 6) is None  # the newest of its batch is below the start
    assert first_since(data + plain_ones[0], 20, 6) == Found(6, 45)
    assert first_since(data, 0, 8) is None
    assert first_since(data + plain_ones[0][:8], 0, 8, stop=len(data)) is None
