"""Entries of formats 1 and 2 as clients of older formats are sent them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import UnsupportedForMessageFormatError
from kafka08.message.compression import compress, decompress
from kafka08.message.convert import converted_set, count_headers, refuse_headers
from kafka08.message.entry import encode_entry, key_and_value
from kafka08.message.scan import iter_entries
from kafka08.message.sets import assign_offsets, iter_messages
from kafka08.message.wrappers import absolute_slice
from tests.message.batches import GOLDEN, batch, golden, simple, timed, timed_wrapper
from tests.message.batches import records as any_records
from tests.message.sets import LIMIT, has_absolute_offsets, plain, wrapper

BARE = [(b"k", b"a", 0, []), (None, None, 5, [])]

ALL = (0, 1, 2, 3, 4)
LOTS = 1 << 20
THREE = simple(b"a", b"b", b"c")


def sent(data: bytes, target: int = 0, max_bytes: int = LOTS) -> bytes:
    return absolute_slice(data, max_bytes=max_bytes, target=target)


def shape(data: bytes) -> list[tuple]:
    """The entries, with what is inside wrappers instead of their compressed bytes."""
    found = []
    for entry in iter_entries(data):
        one = data[entry.position : entry.stop]
        if entry.codec:
            _, span = key_and_value(one, 0, len(one))
            inner = decompress(entry.codec, one[span[0] : span[1]])
            times = one[18:26] if entry.magic else b""
            found.append((entry.offset, entry.codec, one[16:18], times, inner))
        else:
            found.append(one)
    return found


def whole(data: bytes) -> bytes:
    """Without the filler that Kafka ends its converted answers with."""
    entries = [entry for entry in iter_entries(data) if entry.offset >= 0]
    return data[: entries[-1].stop] if entries else b""


@pytest.mark.parametrize("target", [0, 2])
def test_recorded_conversions(target):
    """Kafka 3.9.1 sent the same messages, in the same entries."""
    stored = golden("fetch v4 of four magic-2 batches from 0")
    theirs = whole(golden(f"fetch v{target} of four magic-2 batches from 0"))
    ours = shape(sent(stored, target // 2))
    assert ours[: len(shape(theirs))] == shape(theirs)
    assert ours[:3] == shape(theirs)[:3]
    assert [m[:3] for m in iter_messages(sent(stored, target // 2))] == [
        m[:3] for m in iter_messages(stored)
    ]


@pytest.mark.parametrize("target", [0, 2])
def test_a_recorded_compacted_log(target):
    stored = golden("fetch v4 of a compacted log with gaps")
    theirs = whole(golden(f"fetch v{target} of a compacted log with gaps"))
    assert shape(sent(stored, target // 2)) == shape(theirs)


@pytest.mark.scenario("modern-22")
def test_the_recorded_broker_s_time():
    stored = golden("fetch v4 of LogAppendTime")
    theirs = shape(whole(golden("fetch v2 of LogAppendTime")))
    assert shape(sent(stored, 1))[: len(theirs)] == theirs


def test_control_batches_leave_nothing():
    control = batch([(b"\0\0\0\1", b"\0\0\0\0\0\0", 0, [])], 5, attributes=0x30)
    data = batch(simple(b"a"), 6, attributes=0x10)
    for target in (0, 1):
        assert sent(control, target) == b""
        assert sent(control + control, target) == b""
        assert [m[:3] for m in iter_messages(sent(control + data, target))] == [(6, b"k", b"a")]
        # what is cut off after nothing at all would look like a message that is too large
        assert sent(control + data[:-1], target) == b""
        assert sent(data + control[:-1], target).startswith(sent(data, target))
    assert sent(control + data, 2) == control + data


@pytest.mark.parametrize("codec", ALL)
@pytest.mark.parametrize("target", [0, 1])
def test_a_compacted_batch(codec, target):
    stored = batch(simple(b"a", b"c"), 4, codec, deltas=[0, 2], last_delta=3)
    made = sent(stored, target)
    assert [m[:3] for m in iter_messages(made)] == [(4, b"k", b"a"), (6, b"k", b"c")]
    assert [entry.offset for entry in iter_entries(made)] == ([6] if codec else [4, 6])
    empty = batch([], 4, codec, last_delta=3)
    assert sent(empty, target) == b""


@pytest.mark.scenario("modern-21")
@pytest.mark.parametrize("codec", ALL)
def test_codecs_stay_but_for_zstd(codec):
    instead = 1 if codec == 4 else codec
    for target in (0, 1):
        made = sent(batch(THREE, 4, codec), target)
        assert [entry.codec for entry in iter_entries(made)] == [instead] * (1 if codec else 3)
        assert [entry.magic for entry in iter_entries(made)] == [target] * (1 if codec else 3)
    if codec == 3:
        name = "produce v0 magic0 lz4"
        lz4_header = sent(batch(THREE, 4, 3))[26:33]
        assert lz4_header == golden(name)[26:33]
        assert sent(batch(THREE, 4, 3), 1)[34:41] != lz4_header


@given(
    found=st.lists(any_records, min_size=1, max_size=5),
    codec=st.sampled_from(ALL),
    target=st.sampled_from([0, 1]),
)
def test_messages_are_the_same_in_every_format(found, codec, target):
    data = batch(found, 7, codec)
    expected = [(7 + i, key, value) for i, (key, value, _, _) in enumerate(found)]
    for view in (data, sent(data, target), sent(sent(data, target))):
        assert [m[:3] for m in iter_messages(view)] == expected
    if codec and not target:
        assert has_absolute_offsets(sent(data))


@pytest.mark.parametrize("codec", (1, 2, 3))
def test_format_1_for_clients_of_format_0(codec):
    data = bytearray(timed_wrapper(timed([(b"k", b"a"), (None, None)]), codec))
    data += timed([(b"k", b"b")])
    assign_offsets(data, 5, LIMIT)
    data = bytes(data)
    made = sent(data)
    assert [e.magic for e in iter_entries(made)] == [0, 0]
    assert [m[:3] for m in iter_messages(made)] == [
        (5, b"k", b"a"),
        (6, None, None),
        (7, b"k", b"b"),
    ]
    assert has_absolute_offsets(made[: next(iter_entries(made)).stop])
    assert sent(data, 1) == sent(data, 2) == data


def numbered(data: bytes, base: int = 5) -> bytes:
    buffer = bytearray(data)
    assign_offsets(buffer, base, LIMIT)
    return bytes(buffer)


def some_timed(count: int) -> bytes:
    """Plain messages of format 1 with different sizes."""
    return numbered(timed([(b"k" * (n % 3), b"v" * n) for n in range(count)]))


def test_plain_messages_of_format_1_are_converted_in_runs():
    first, last = some_timed(40), numbered(timed([(b"k", b"end")]), 48)
    data = first + batch(THREE, 45, 2) + last
    made: list = []
    found = absolute_slice(data, max_bytes=LOTS, made=made)
    assert found == converted_set(data, 0)
    assert [m[:3] for m in iter_messages(found)] == [m[:3] for m in iter_messages(data)]
    assert [(each.position, each.data[17] & 7) for each in made] == [(len(first), 2)]


@given(max_bytes=st.integers(1, 3000))
def test_a_run_ends_where_the_consumer_s_bytes_do(max_bytes):
    data = some_timed(60)
    whole = converted_set(data, 0)
    found = sent(data, max_bytes=max_bytes)
    entries = list(iter_entries(found))
    assert found == whole[: entries[-1].stop] and entries[-1].stop == len(found)
    assert len(found) <= max_bytes or len(entries) == 1
    # at most 8 bytes a message are not used, as the bytes of format 1 are counted
    following = len(list(iter_entries(whole))) > len(entries)
    assert not following or len(found) + 8 * len(entries) + 100 > max_bytes


@given(
    kinds=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    target=st.sampled_from([0, 1]),
    max_bytes=st.integers(1, 1500),
    cut=st.integers(0, 40),
)
def test_batches_in_one_go_are_the_same_as_one_by_one(kinds, target, max_bytes, cut):
    """Codecs 0 to 4, a control batch, and a message of format 1."""
    parts = []
    for number, kind in enumerate(kinds):
        values = [b"v" * (number * 7 % 50)] * (1 + number % 3)
        if kind == 6:
            parts.append(numbered(timed([(b"k", value) for value in values]), 10 * number))
        else:
            attributes = 0x20 if kind == 5 else 0
            codec = kind % 5
            parts.append(batch(simple(*values), 10 * number, codec, attributes=attributes))
    data = b"".join(parts)
    data = data[: max(len(data) - cut, len(parts[0]))]
    made: list = []
    found = absolute_slice(data, max_bytes=max_bytes, target=target, keep_plain=False, made=made)
    assert found == sent(data, target, max_bytes)
    assert all(each.data[17] & 7 for each in made if each.data)


def test_damage_in_a_run_is_passed_on_by_itself():
    parts = [timed([(b"k", b"v%d" % n)]) for n in range(5)]
    data = bytearray(numbered(b"".join(parts)))
    broken = 2 * len(parts[0])
    data[broken + len(parts[0]) - 1] ^= 1
    found = sent(bytes(data))
    assert [entry.magic for entry in iter_entries(found)] == [0, 0, 1, 0, 0]
    assert bytes(data[broken : broken + len(parts[0])]) in found
    assert [entry.offset for entry in iter_entries(found)] == [5, 6, 7, 8, 9]


@pytest.mark.scenario("modern-6")
def test_format_0_for_later_clients():
    """Inner offsets are made right, and lz4 is packed as what all of them read."""
    right = plain([(b"k", b"a"), (b"k", b"b")], 5)
    assert sent(right, 2) == right
    gzip, lz4 = wrapper(right, 1, 6), wrapper(right, 3, 6)
    assert sent(gzip, 2) == gzip
    assert sent(lz4, 1) == sent(lz4, 0) == lz4
    assert [(e.codec, e.offset) for e in iter_entries(sent(lz4, 2))] == [(1, 6)]
    assert next(iter_messages(sent(lz4, 2)))[:3] == (5, b"k", b"a")
    relative = wrapper(plain([(b"k", b"a"), (b"k", b"b")]), 2, 6)
    assert has_absolute_offsets(sent(relative, 2))


def test_limits_of_converted_slices():
    one, two = batch(THREE, 0, 1), batch(simple(b"x" * 2000), 3)
    first, both = sent(one), sent(one + two)
    assert sent(one + two, 0, len(both)) == both
    assert sent(one + two, 0, len(both) - 1) == first
    assert sent(two, 0, 10) == sent(two)  # the first is whole whatever its size
    control = batch([(b"", b"", 0, [])], 2, attributes=0x20)
    assert sent(control + two, 0, 10) == sent(two)


def test_damage_is_passed_on():
    damaged = bytearray(batch(THREE))
    damaged[-1] ^= 1
    assert sent(bytes(damaged)) == damaged
    broken = batch(THREE, 0, 1, count=9)  # what was stored is not counted again
    assert [m.offset for m in iter_messages(sent(broken))] == [0, 1, 2]


def test_an_old_wrapper_with_something_later_inside_is_damage():
    for inner in (batch(THREE), timed([(b"k", b"a")])):
        odd = encode_entry(None, compress(1, inner), 2, 1)
        assert sent(odd) == sent(odd, 2) == odd


def test_golden_sets_are_there():
    assert len(GOLDEN) > 50


@pytest.mark.parametrize(
    ("data", "target"),
    [
        (batch(BARE, 7), 0),
        (batch(BARE, 7, codec=4), 0),
        (batch(BARE, 7, codec=1), 1),
        (batch(BARE, 7) + batch(BARE, 9, codec=2), 1),
        (timed([(b"k", b"a"), (None, None)], 7), 0),
        (
            timed([(b"k", b"a")], 7)
            + timed_wrapper(timed([(None, None), (b"k", b"a")]), 1, 9)
            + timed([(b"k", b"b")], 10),
            0,
        ),
    ],
)
def test_sets_are_converted_as_a_whole(data, target):
    found = converted_set(data, target)
    assert {entry.magic for entry in iter_entries(found)} == {target}
    assert 4 not in {entry.codec for entry in iter_entries(found)}
    assert [m[:3] for m in iter_messages(found)] == [m[:3] for m in iter_messages(data)]
    for entry in iter_entries(found):
        if entry.codec and not target:
            assert has_absolute_offsets(found[entry.position : entry.stop])


@pytest.mark.parametrize("codec", ALL)
def test_headers_are_counted_and_refused(codec):
    assert count_headers(batch(THREE, codec=codec)) == 3
    with pytest.raises(UnsupportedForMessageFormatError):
        refuse_headers(batch(THREE, codec=codec))
    refuse_headers(batch(BARE, codec=codec))
    refuse_headers(timed([(b"k", b"a")]))
    refuse_headers(batch([(b"\0\0\0\1", b"", 0, [(b"h", b"")])], attributes=0x30))
