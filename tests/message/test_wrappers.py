"""Wrappers rebuilt for consumers, the cache, and sets as 0.8.2.2 stores them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.errors import InvalidMessageError, KafkaError
from kafka08.message.compression import MAX_INFLATED, CorruptCompressionError, decompress
from kafka08.message.entry import encode_entry, key_and_value
from kafka08.message.scan import iter_entries
from kafka08.message.sets import assign_offsets, iter_messages
from kafka08.message.wrappers import absolute_slice, holds_wrappers, normalise
from tests.message.sets import (
    CODECS,
    LIMIT,
    cut,
    entries,
    has_absolute_offsets,
    plain,
    rebuild,
    wrapper,
)

THREE = [(None, b"a"), (b"k", None), (None, b"ccc")]


def inside(entry: bytes) -> list[tuple[int, bytes]]:
    """(offset, message) as a client that trusts inner offsets reads a wrapper."""
    _, value = key_and_value(entry, 0, len(entry))
    assert value is not None
    return cut(decompress(entry[17] & 7, entry[value[0] : value[1]], 10**8))


def as_trusting_client(data: bytes) -> list[tuple]:
    """Offset, key and value of all messages, offsets as they are stored."""
    found = []
    for entry in iter_entries(data):
        stored = data[entry.position : entry.position + entry.size_total]
        if entry.codec:
            count = 0
            for offset, message in inside(stored):
                (read,) = iter_messages(struct.pack(">qi", offset, len(message)) + message)
                assert not message[5] & 7
                found.append((offset, read.key, read.value))
                count += 1
            assert count
        else:
            found += [(m.offset, m.key, m.value) for m in iter_messages(stored)]
    return found


def stored(found: list[tuple[bytes, list]], base: int) -> bytes:
    buffer = bytearray(b"".join([entry for entry, _ in found]))
    return bytes(buffer[: assign_offsets(buffer, base, LIMIT).valid_bytes])


def test_right_only_if_every_offset_is():
    for inner, offset, right in (
        (plain(THREE), 2, True),
        (plain(THREE, 40), 42, True),
        (plain(THREE), 42, False),
        (plain(THREE[:1]) + plain(THREE[1:], 41), 42, True),
        (plain(THREE[:1], 41) + plain(THREE[1:], 41), 42, False),
        (plain(THREE[:1], 7) + plain(THREE[1:], 40), 42, False),
        (plain(THREE[:1], 40) + plain(THREE[1:2], 7) + plain(THREE[2:], 42), 42, False),
        (plain(THREE, 40) + plain(THREE)[:20], 42, False),
        (wrapper(plain(THREE, 40), 1, 42), 42, False),
    ):
        for codec in CODECS:
            assert has_absolute_offsets(wrapper(inner, codec, offset)) is right


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("rows", [3, 300])
def test_rebuild(codec, rows):
    messages = [(None, b"m%d" % (i % 7)) for i in range(rows)]
    entry = wrapper(plain(messages, -1), codec, 1000, b"key")
    right = rebuild(entry)
    assert has_absolute_offsets(right)
    assert inside(right) == cut(plain(messages, 1001 - rows))
    (top,) = iter_entries(right)
    assert (top.offset, top.codec, top.size_total) == (1000, codec, len(right))
    assert right[16:25] == entry[16:25]
    assert [m.value for m in iter_messages(right)] == [value for _, value in messages]


def test_rebuild_flattens_and_drops_a_cut_tail():
    nested = wrapper(plain(THREE), 2, 0)
    entry = wrapper(plain(THREE) + nested + plain(THREE) + nested[:-1], 1, 108)
    assert inside(rebuild(entry)) == cut(plain(THREE * 3, 100))


def test_rebuild_refuses_what_has_no_messages():
    with pytest.raises(InvalidMessageError):
        rebuild(wrapper(b"", 1, 5))
    with pytest.raises(CorruptCompressionError):
        rebuild(encode_entry(None, None, 5, 1))


@settings(max_examples=80)
@given(found=st.lists(entries(), max_size=8), base=st.integers(0, 2**40), at=st.integers(0, 10**6))
def test_whole_slice_against_the_model(found, base, at):
    data = stored(found, base)
    data = data[: len(data) - at % (len(data) + 1) // 2]
    wanted = [(m.offset, m.key, m.value) for m in iter_messages(data)]
    sent = absolute_slice(data, max_bytes=10**9)
    assert as_trusting_client(sent) == wanted
    whole = sum([entry.size_total for entry in iter_entries(data)])
    tail = data[whole:]
    assert sent.endswith(tail)
    assert absolute_slice(sent, max_bytes=10**9) is sent
    assert holds_wrappers(data) == any(entry.codec for entry in iter_entries(data))


@settings(max_examples=80)
@given(found=st.lists(entries(), max_size=8), over=st.integers(0, 60))
def test_bounded_slice_against_the_model(found, over):
    """The bounded answer is the unbounded one up to the first entry that does not fit."""
    data = stored(found, 1000)
    max_bytes = len(data) + over
    sent = absolute_slice(data, max_bytes=max_bytes)
    total, grown, wanted = 0, False, b""
    for entry in iter_entries(data):
        one = data[entry.position : entry.position + entry.size_total]
        if entry.codec and not has_absolute_offsets(one):
            one = rebuild(one)
            first, grown = not grown, True
        else:
            first = False
        if grown and not first and len(wanted) + len(one) > max_bytes:
            break
        wanted += one
        total += 1
    assert sent == wanted
    assert not list(iter_entries(data)) or total


def growing(first: int, rows: int = 60) -> bytes:
    """A wrapper whose equal inner offsets compress better than the right ones."""
    inner = encode_entry(None, b"x") * rows
    return wrapper(inner, 1, first + rows - 1)


def test_later_entries_that_do_not_fit_are_left_out_with_all_that_follows():
    one, two, last = growing(0), growing(60), encode_entry(None, b"end", 120)
    grown = rebuild(one)
    assert len(grown) > len(one)
    data = one + two + last
    assert absolute_slice(data, max_bytes=1) == grown
    assert absolute_slice(data, max_bytes=len(data)) == grown
    both = len(grown) + len(rebuild(two))
    assert absolute_slice(data, max_bytes=both - 1) == grown
    assert absolute_slice(data, max_bytes=both) == grown + rebuild(two)
    assert absolute_slice(data, max_bytes=both + len(last)) == grown + rebuild(two) + last
    # entries before the first rebuilt one do not count against it
    assert absolute_slice(last + one + two, max_bytes=1) == last + grown


def test_a_cut_tail_stays_while_there_is_room():
    one, tail = growing(0), encode_entry(None, b"end", 60)[:-1]
    grown = rebuild(one)
    assert absolute_slice(one + tail, max_bytes=len(grown + tail)) == grown + tail
    assert absolute_slice(one + tail, max_bytes=len(one + tail)) == grown
    assert absolute_slice(tail, max_bytes=1) is tail
    assert absolute_slice(one[:-1], max_bytes=1) == one[:-1]


def test_damage_is_passed_on():
    null, rubbish = encode_entry(None, None, 3, 1), encode_entry(None, b"rubbish", 4, 2)
    unknown, empty = encode_entry(None, b"x", 5, 6), wrapper(b"", 3, 6)
    short = struct.pack(">qi", 0, 3) + bytes(20)
    data = null + rubbish + unknown + empty + short
    assert absolute_slice(data, max_bytes=10**6) is data
    one = growing(60)
    assert absolute_slice(one + data, max_bytes=10**6) == rebuild(one) + data
    bomb = wrapper(plain([(None, bytes(MAX_INFLATED))]), 1, 6)
    assert absolute_slice(bomb, max_bytes=10**6) is bomb


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_rot_is_never_given_a_new_crc(codec):
    """Nor where the codec has no check of its own: a flipped bit of a literal, say."""
    whole = wrapper(plain([(None, bytes(range(65, 90)))] * 2), codec, 7)
    assert absolute_slice(whole, max_bytes=10**6) == rebuild(whole) != whole
    for position in range(16, len(whole)):
        rotten = bytearray(whole)
        rotten[position] ^= 4
        data = bytes(rotten)
        assert absolute_slice(data, max_bytes=10**6) is data


@settings(max_examples=80)
@given(found=st.lists(entries(), max_size=8), base=st.integers(0, 2**40))
def test_normalise(found, base):
    data = b"".join([entry for entry, _ in found])
    wanted = [
        (base + i, key, value)
        for i, (key, value) in enumerate([pair for _, leaves in found for pair in leaves])
    ]
    result = normalise(data, base)
    codecs = [entry.codec for entry in iter_entries(data) if entry.codec]
    if not wanted:
        assert result == b""
        return
    assert as_trusting_client(result) == wanted
    if codecs:
        (entry,) = iter_entries(result)
        assert entry.codec == codecs[-1]
        assert entry.offset == wanted[-1][0]
        assert has_absolute_offsets(result)


def test_normalise_leaves_out_a_cut_entry_and_raises_our_errors():
    one = growing(0)
    assert normalise(one + one[:-1], 9) == normalise(one, 9)
    with pytest.raises(KafkaError):
        normalise(encode_entry(None, b"bad", 0, 1), 0)
