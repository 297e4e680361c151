"""Produced sets of formats 1 and 2: which bytes change, what is refused, what readers find."""

from __future__ import annotations

import struct

import pytest

from kafka08.errors import (
    InvalidMessageError,
    InvalidRecordError,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    UnknownError,
)
from kafka08.message.batch import header_of, seal
from kafka08.message.compression import InflatesTooFarError
from kafka08.message.entry import encode_entry, has_right_crc
from kafka08.message.scan import newest_time
from kafka08.message.sets import (
    Opened,
    assign_offsets,
    check_follower_set,
    iter_messages,
    move_offsets,
    next_offset,
)
from kafka08.message.timed_sets import Rules
from tests.message.batches import (
    GOLDEN,
    batch,
    encode_records,
    golden,
    simple,
    timed,
    timed_wrapper,
)
from tests.message.sets import LIMIT, plain, wrapper

ALL = (0, 1, 2, 3, 4)
PRODUCED = [
    name
    for name in GOLDEN
    if "produce v" in name and not any(odd in name for odd in ("mixed", "bad crc", "empty"))
]


def read(data: bytes) -> list[tuple]:
    return [(m.offset, m.key, m.value) for m in iter_messages(data)]


@pytest.mark.scenario("modern-8")
@pytest.mark.parametrize("name", PRODUCED)
def test_recorded_sets(name):
    data = bytearray(golden(name))
    before = bytes(data)
    found = assign_offsets(data, 1000, LIMIT, rules=Rules(leader_epoch=7))
    wanted = GOLDEN[name]["messages"]
    assert found[:4] == (len(wanted), len(data), 1000, 999 + len(wanted))
    assert read(data) == [
        (1000 + i, key.encode(), value.encode()) for i, (_, _, key, value, *_) in enumerate(wanted)
    ]
    if before[16] == 2:
        assert data[:8] == struct.pack(">q", 1000)
        assert data[12:16] == struct.pack(">i", 7)
        if "two" not in name:
            assert data[8:12] + data[16:] == before[8:12] + before[16:]
    assert check_follower_set(data, LIMIT).last_offset == found.last_offset
    assert next_offset(data, 0) == found.last_offset + 1
    times = [time for _, time, *_ in wanted]
    if times[0] is not None:
        last = found.last_offset if "two" not in name else 1002
        assert newest_time(data, 0, len(data)) == (max(times), last)


@pytest.mark.parametrize("data", [batch(simple(b"a", b"b")), timed([(b"k", b"v")])])
def test_without_a_whole_entry_nothing_is_found(data):
    for size in range(len(data)):
        buffer = bytearray(data[:size])
        assert assign_offsets(buffer, 50, LIMIT) == (0, 0, -1, -1, 0, 0, 0)
        assert buffer == data[:size]


@pytest.mark.parametrize("codec", ALL)
def test_a_batch(codec):
    data = batch(simple(b"a", b"b", b"c"), 0, codec)
    buffer = bytearray(data + data[:30])
    assert assign_offsets(buffer, 50, LIMIT) == (3, len(data), 50, 52, 1, codec, 2)
    assert header_of(buffer).base_offset == 50
    assert buffer[16:] == (data + data[:30])[16:]
    assert read(bytes(buffer)) == [(50, b"k", b"a"), (51, b"k", b"b"), (52, b"k", b"c")]
    twice = bytearray(data * 2)
    assert assign_offsets(twice, 50, LIMIT)[:4] == (6, 2 * len(data), 50, 55)
    assert move_offsets(memoryview(twice), 7, []) == 7
    assert [m.offset for m in iter_messages(twice)] == [57, 58, 59, 60, 61, 62]


@pytest.mark.parametrize("codec", (1, 2, 3))
def test_a_wrapper_of_format_1(codec):
    inner = timed([(b"k", b"a"), (b"k", None), (None, b"c")])
    data = timed_wrapper(inner, codec, time=1002)
    buffer = bytearray(data + timed([(b"k", b"d")]) + data)
    assert assign_offsets(buffer, 50, LIMIT) == (7, len(buffer), 50, 56, 3, codec, 1)
    assert buffer[: len(data)] == struct.pack(">q", 52) + data[8:]
    assert read(buffer)[:4] == [
        (50, b"k", b"a"),
        (51, b"k", None),
        (52, None, b"c"),
        (53, b"k", b"d"),
    ]
    assert move_offsets(memoryview(buffer), 1, []) == 1
    other = bytearray(timed_wrapper(inner, codec, time=0))
    assert assign_offsets(other, 50, LIMIT).count == 3
    assert other == struct.pack(">q", 52) + data[8:]  # some clients leave the time out
    assert [offset for offset, _, _ in read(buffer)] == list(range(51, 58))
    for bad in (b"", plain([(b"k", b"a")])):
        with pytest.raises(InvalidRecordError):
            assign_offsets(bytearray(timed_wrapper(bad, codec)), 0, LIMIT)
    with pytest.raises(InvalidMessageError, match="crc"):
        assign_offsets(bytearray(timed_wrapper(inner[:-1] + b"?", codec)), 0, LIMIT)


def test_a_set_has_one_format():
    old, one, two = plain([(b"k", b"a")]), timed([(b"k", b"a")]), batch(simple(b"a"))
    compressed = [wrapper(old, 1), timed_wrapper(one, 1), batch(simple(b"a"), codec=1)]
    for first, kind in enumerate(zip((old, one, two), compressed, strict=True)):
        for second, other in enumerate(zip((old, one, two), compressed, strict=True)):
            for a in kind:
                for b in other:
                    if first == second:
                        assert assign_offsets(bytearray(a + b), 0, LIMIT).count == 2
                    else:
                        with pytest.raises(InvalidRecordError):
                            assign_offsets(bytearray(a + b), 0, LIMIT)


@pytest.mark.scenario("modern-12")
def test_recorded_refusals():
    with pytest.raises(InvalidRecordError):
        assign_offsets(bytearray(golden("produce v2 mixed magic 0+1")), 0, LIMIT)
    with pytest.raises(InvalidMessageError, match="corrupt"):
        assign_offsets(bytearray(golden("produce v3 bad crc")), 0, LIMIT)


@pytest.mark.scenario("modern-11", "modern-12")
@pytest.mark.parametrize("codec", ALL)
def test_batches_that_are_refused(codec):
    three = simple(b"a", b"b", b"c")

    def refused(error, data=None, **changes):
        with pytest.raises(error):
            assign_offsets(bytearray(data or batch(three, 0, codec, **changes)), 0, LIMIT)

    for changes in (
        {"count": 4},
        {"count": 2, "last_delta": 1},
        {"count": 0, "last_delta": 0},
        {"count": -1},
        {"last_delta": 3},
        {"last_delta": -1},
        {"count": 4, "last_delta": 3},
        {"deltas": [0, 1, 3], "last_delta": 2},
        {"attributes": 0x10},
        {"attributes": 0x20},
    ):
        refused(InvalidMessageError, **changes)
    refused(UnknownError, batch(three, attributes=5))
    if codec:
        data = bytearray(batch(three, 0, codec))
        data[61:] = bytes(len(data) - 61)
        seal(data, 0, len(data))
        refused((InvalidMessageError, UnknownError, Exception), data)
    size = len(batch(three, 0, codec))
    assert assign_offsets(bytearray(batch(three, 0, codec)), 0, size).count == 3
    with pytest.raises(MessageSizeTooLargeError):
        assign_offsets(bytearray(batch(three, 0, codec)), 0, size - 1)


@pytest.mark.parametrize("codec", (1, 2, 3, 4))
def test_what_may_be_inflated(codec):
    three = simple(b"a" * 5000)
    need = len(encode_records(three))
    opened = Opened(2 * need + 1)
    assert assign_offsets(bytearray(batch(three, 0, codec) * 2), 0, LIMIT, opened=opened).count == 2
    assert opened.room == 1
    with pytest.raises(InflatesTooFarError):
        assign_offsets(bytearray(batch(three, 0, codec)), 0, LIMIT, opened=Opened(need - 1))
    with pytest.raises(InflatesTooFarError):
        assign_offsets(bytearray(batch(three, 0, codec) * 2), 0, LIMIT, opened=Opened(need))


@pytest.mark.scenario("modern-15")
@pytest.mark.parametrize("make", [
    lambda pairs: timed(pairs),
    lambda pairs: timed_wrapper(timed(pairs), 1),
    lambda pairs: batch([(k, v, 0, []) for k, v in pairs]),
    lambda pairs: batch([(k, v, 0, []) for k, v in pairs], codec=4),
])  # fmt: skip
def test_keys_that_a_compacted_topic_asks_for(make):
    keyed, keyless = make([(b"k", b"a"), (b"", None)]), make([(b"k", b"a"), (None, b"b")])
    assert assign_offsets(bytearray(keyed), 0, LIMIT, rules=Rules(keyed=True)).count == 2
    assert assign_offsets(bytearray(keyless), 0, LIMIT).count == 2
    with pytest.raises(InvalidRecordError):
        assign_offsets(bytearray(keyless), 0, LIMIT, rules=Rules(keyed=True))


SETS = {
    "batch": batch(simple(b"a", b"b")),
    "gzip batch": batch(simple(b"a", b"b"), codec=1),
    "plain": timed([(b"k", b"a"), (b"k", b"b")]),
    "wrapper": timed_wrapper(timed([(b"k", b"a"), (b"k", b"b")]), 2, time=1001),
}


@pytest.mark.parametrize("name", SETS)
def test_the_broker_s_time(name):
    data = bytearray(SETS[name])
    found = assign_offsets(data, 5, LIMIT, rules=Rules(append_time=99))
    assert found.count == 2
    assert newest_time(data, 0, len(data)) in ((99, 5), (99, 6))
    assert check_follower_set(data, LIMIT).valid_bytes == len(data)
    assert [m[:3] for m in iter_messages(data)] == [(5, b"k", b"a"), (6, b"k", b"b")]
    entries = [data] if name != "plain" else [data[: len(data) // 2], data[len(data) // 2 :]]
    for entry in entries:
        assert has_right_crc(entry, 0, len(entry))
        assert entry[22 if "batch" in name else 17] & 8


@pytest.mark.scenario("modern-30")
@pytest.mark.parametrize("name", SETS)
def test_times_out_of_bounds(name):
    for rules in (Rules(oldest=1002), Rules(newest=1000)):
        with pytest.raises(InvalidTimestampError):
            assign_offsets(bytearray(SETS[name]), 5, LIMIT, rules=rules)
    for data in (SETS[name], batch(simple(b"a"), time=-1), encode_entry(b"k", b"v", timestamp=-1)):
        rules = Rules(oldest=1000, newest=1001)
        assert assign_offsets(bytearray(data), 5, LIMIT, rules=rules).count


def test_sets_of_format_0_have_no_time():
    data = plain([(b"k", b"a")])
    buffer = bytearray(data)
    assign_offsets(buffer, 0, LIMIT, rules=Rules(append_time=99, oldest=5))
    assert buffer == data
