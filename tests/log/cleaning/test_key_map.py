"""The keys of a stretch of a log, in entries of every kind, within the room that there is."""

from __future__ import annotations

import tracemalloc

import pytest

from kafka08.errors import InvalidMessageError
from kafka08.log.cleaning.key_map import KeyMap, max_entries, with_true_offsets, wrapper_leaves
from kafka08.log.cleaning.offset_map import ENTRY_BYTES
from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry
from kafka08.message.sets import encode_set
from tests.message.batches import batch, simple, timed, timed_wrapper
from tests.message.sets import plain, set_byte, wrapper


def test_the_bound_of_the_map():
    assert max_entries(1000 * ENTRY_BYTES, 0.9) == 900
    assert max_entries(0, 0.9) == max_entries(10**6, -1.0) == 1


@pytest.mark.parametrize("count", [1_000, 22_000, 200_000])
def test_a_key_costs_what_it_says(count):
    """A dict has just grown at 22,000, which is its most expensive moment."""
    data = b"".join([encode_entry(b"%016d" % i, b"", 10**9 + i) for i in range(count)])
    tracemalloc.start()
    try:
        found = KeyMap(count)
        assert found.add(data, 0) == len(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < count * ENTRY_BYTES + 200_000
    assert len(found) == count and found.is_full


def test_keys_of_a_set():
    long, other = b"k" * 17, b"o" * 17
    found = KeyMap(10)
    found.add(encode_set([(long, b""), (b"s" * 16, b""), (long, b"")]), 0)
    assert len(found) == 2
    assert found.is_superseded(long, 1) and not found.is_superseded(long, 2)
    assert not found.is_superseded(other, -1)


def test_the_map_is_full_in_the_middle_of_a_set():
    data = plain([(b"a", b""), (None, b""), (b"a", b""), (b"b", b""), (b"c", b"")], first=5)
    found = KeyMap(2)
    read = found.add(data, 5)
    assert data[read:] == encode_entry(b"c", b"", 9)
    assert found.is_full and found.last_offset == 8
    assert found.add(data[read:], 9) == 0


def test_entries_below_the_first_offset_are_passed_over():
    found = KeyMap(10)
    data = plain([(b"a", b""), (b"b", b""), (b"c", b"")], first=7)
    assert found.add(data, 8) == len(data)
    assert len(found) == 2 and not found.is_superseded(b"a", 0)
    assert found.is_superseded(b"b", 7) and found.is_superseded(b"c", 8)


def test_a_wrapper_is_added_as_a_whole():
    inner = plain([(b"a", b""), (None, b""), (b"b", b""), (b"c", None)])
    data = wrapper(inner, 2, offset=13) + encode_entry(b"d", b"", 14)
    found = KeyMap(1)
    read = found.add(data, 11)
    assert data[read:] == encode_entry(b"d", b"", 14)
    assert len(found) == 2 and found.last_offset == 13
    assert not found.is_superseded(b"a", 0), "it is below the first offset"
    assert found.is_superseded(b"c", 12) and not found.is_superseded(b"c", 13)


@pytest.mark.parametrize("codec", [0, 1])
def test_the_keys_of_a_batch(codec):
    data = batch(simple(b"1", b"2"), 20, codec) + batch(simple(b"3", key=b"other"), 22, codec)
    found = KeyMap(10)
    assert found.add(data, 0) == len(data)
    assert len(found) == 2 and found.last_offset == 22
    assert found.is_superseded(b"k", 20) and not found.is_superseded(b"k", 21)


def test_the_messages_of_a_wrapper_have_their_true_offsets():
    data = wrapper(plain([(b"k", b"v"), (None, b""), (b"gone", None)]), 1, offset=9)
    true = plain([(b"k", b"v"), (None, b""), (b"gone", None)], first=7)
    assert with_true_offsets(wrapper_leaves(data, 0, len(data)), 9) == true
    right = wrapper(true, 1, offset=9)
    leaves = wrapper_leaves(right, 0, len(right))
    assert with_true_offsets(leaves, 9) is leaves.data
    empty = encode_entry(None, compress(1, b""), 9, 1)
    assert with_true_offsets(wrapper_leaves(empty, 0, len(empty)), 9) == b""


PAIRS = [(b"a", b""), (b"b", b""), (None, b""), (b"c", b""), (b"d", None)]


@pytest.mark.parametrize("room", [9, 1], ids=["with room", "beyond the room"])
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(wrapper(plain(PAIRS), 1, 14), id="format 0, relative offsets"),
        pytest.param(wrapper(plain(PAIRS, 10), 1, 14), id="format 0, true offsets"),
        pytest.param(timed_wrapper(timed(PAIRS), 1, 14), id="format 1"),
        pytest.param(batch([(*pair, 0, []) for pair in PAIRS], 10, 1), id="format 2"),
    ],
)
def test_keys_of_a_compressed_entry_from_an_offset_on(entry, room):
    found = KeyMap(room)
    assert found.add(entry, 11) == len(entry)
    assert len(found) == 3 and found.last_offset == 14
    assert not found.is_superseded(b"a", 10)
    for key, offset in ((b"b", 11), (b"c", 13), (b"d", 14)):
        assert found.is_superseded(key, offset - 1) and not found.is_superseded(key, offset)


@pytest.mark.parametrize(
    ("damaged", "text"),
    [
        (bytes(set_byte(encode_entry(b"k", b"v", 4), -1, 0)), "offset 4 fails its crc"),
        (bytes(set_byte(encode_entry(b"k", b"v", 4), 11, 3)), "offset 4 has the impossible size 3"),
        (encode_entry(b"k", b"v", 3), "Offset 3 follows 3"),
    ],
)
def test_damage_is_named(damaged, text):
    found = KeyMap(10)
    with pytest.raises(InvalidMessageError, match=text):
        found.add(encode_entry(b"a", b"", 3) + damaged, 0)
    assert found.last_offset == 3


def test_a_cut_entry_is_left():
    whole = encode_entry(b"a", b"", 3)
    for end in range(1, len(whole)):
        assert KeyMap(10).add(whole + whole[:end], 0) == len(whole)
