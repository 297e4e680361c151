"""The leader's and the follower's pass, reading and writing."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.errors import (
    InvalidMessageError,
    KafkaError,
    MessageSizeTooLargeError,
    UnknownError,
)
from kafka08.message import scan, sets, wrappers
from kafka08.message.compression import CorruptCompressionError
from kafka08.message.entry import Appended, encode_entry, has_right_crc
from kafka08.message.scan import iter_entries
from kafka08.message.sets import (
    Opened,
    assign_offsets,
    check_follower_set,
    encode_set,
    iter_messages,
)
from tests.message.sets import CODECS, LIMIT, cut, entries, pairs, plain, set_byte, uniform_runs
from tests.message.sets import wrapper as wrap

GOLDEN = [
    vector
    for vector in json.loads(
        (Path(__file__).parent.parent / "golden" / "vectors.json").read_text()
    )["vectors"]
    if vector["direction"] == "message_set"
]
NAMES = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3}
HI = bytes.fromhex("000000000000000500000010fd6ebddb0000ffffffff000000026869")


def read(data: bytes) -> list[tuple]:
    return [(m.offset, m.key, m.value) for m in iter_messages(data)]


def numbered(messages: list[tuple], first: int) -> list[tuple]:
    return [(first + i, key, value) for i, (key, value) in enumerate(messages)]


def outcome(call, data: bytes) -> tuple:
    """The outcome of a pass: result and buffer, or the class of the error."""
    buffer = bytearray(data)
    try:
        return call(buffer), bytes(buffer)
    except KafkaError as error:
        return type(error), str(error)


def leader(buffer: bytearray) -> Appended:
    return assign_offsets(buffer, 2**33 - 100, LIMIT)


def follower(buffer: bytearray) -> Appended:
    return check_follower_set(buffer, LIMIT)


def leaves_of(decoded: list[dict]) -> tuple[list[dict], bool]:
    """The leaves of a golden set, and whether all of them are shown."""
    found, complete = [], True
    for entry in decoded:
        if "inner_count" in entry:
            complete = False
        elif "inner" in entry:
            inner, whole = leaves_of(entry["inner"])
            found, complete = found + inner, complete and whole
        elif "offset" in entry:
            found.append(entry)
    return found, complete


@pytest.mark.parametrize("vector", GOLDEN, ids=lambda vector: vector["name"])
def test_golden(vector):
    data = bytes.fromhex(vector["hex"])
    decoded = vector["decoded"]["message_set"]
    shown = [entry for entry in decoded if "partial_bytes" not in entry]
    shallow = list(iter_entries(data))
    assert [(e.offset, e.size_total - 12, e.crc, e.codec) for e in shallow] == [
        (e["offset"], e["size"], e["crc"], NAMES[e["codec"]]) for e in shown
    ]
    assert [has_right_crc(data, e.position, e.stop) for e in shallow] == [
        e["crc_ok"] for e in shown
    ]
    if not all(e["crc_ok"] for e in shown):
        with pytest.raises(InvalidMessageError):
            list(iter_messages(data))
        assert outcome(leader, data)[0] is InvalidMessageError
        return
    messages = list(iter_messages(data))
    wanted, complete = leaves_of(shown)
    if complete:
        assert [(_hex(m.key), _hex(m.value), m.crc, m.magic, m.attributes) for m in messages] == [
            (e["key_hex"], e["value_hex"], e["crc"], e["magic"], e["attributes"]) for e in wanted
        ]
    else:
        (entry,) = shown
        assert len(messages) == entry["inner_count"]
        for message, end in ((messages[0], "inner_first"), (messages[-1], "inner_last")):
            assert message.crc == entry[end]["crc"]
    appended = assign_offsets(bytearray(data), 0, LIMIT)
    assert appended.count == len(messages)
    assert appended.entries == len(shown)


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def test_sample_entry():
    assert encode_entry(None, b"hi", 5) == HI
    assert encode_entry(None, None).hex() == "00000000000000000000000ea7ec68030000" + "ff" * 8


@given(messages=st.lists(pairs, max_size=20), codec=st.sampled_from((0, *CODECS)))
def test_encode_and_read(messages, codec):
    data = encode_set(messages, codec, base_offset=7)
    assert read(data) == numbered(messages, 7)
    assert len(list(iter_entries(data))) == (1 if codec and messages else len(messages))
    assert all(m.codec == codec for m in iter_messages(data))
    for inner, _ in cut(data):
        assert inner == 6 + len(messages) or not codec


@given(
    found=st.lists(entries(), max_size=10),
    tail=st.binary(max_size=40),
    base=st.integers(2**41, 2**50),
)
def test_leader_numbers_all_messages(found, tail, base):
    """Any mix of plain entries, wrappers, nested and empty ones, and a cut tail.

    Their offsets are below ``base``, so that none is taken for a correct one with gaps.
    """
    data = b"".join([entry for entry, _ in found])
    wanted = [pair for _, leaves in found for pair in leaves]
    tail = encode_entry(None, bytes(60))[: len(tail)]
    buffer = bytearray(data + tail)
    appended = assign_offsets(memoryview(buffer), base, LIMIT)
    stored = bytes(buffer[: appended.valid_bytes])
    assert read(stored) == numbered(wanted, base)
    kept = [entry for entry, leaves in found if leaves]
    assert [body for _, body in cut(stored)] == [entry[12:] for entry in kept]
    assert appended.count == len(wanted)
    assert appended.entries == len(kept)
    if wanted:
        assert appended.first_offset == base
        assert appended.last_offset == base + len(wanted) - 1
        assert appended.valid_bytes == sum(map(len, kept))
        again = check_follower_set(stored, LIMIT)
        assert again.last_offset == appended.last_offset
        assert again.valid_bytes == len(stored)
    else:
        assert appended[:5] == (0, 0, -1, -1, 0)


@pytest.mark.parametrize("call", [leader, follower])
@settings(max_examples=60)
@given(
    messages=uniform_runs(),
    change=st.none() | st.tuples(st.integers(0, 10**6), st.integers(0, 255)),
    end=st.none() | st.integers(0, 10**6),
)
def test_machine_code_and_loop_agree(call, messages, change, end):
    data = bytearray(plain(messages, 17))
    if change:
        data[change[0] % len(data)] = change[1]
    if end is not None:
        data = data[: end % len(data)]
    fast = outcome(call, data)
    with (
        mock.patch.object(sets, "walk", scan.plain_walk),
        mock.patch.object(wrappers, "walk", scan.plain_walk),
    ):
        assert outcome(call, data) == fast


def test_long_sets():
    rows = 2059
    data = bytearray(plain([(None, b"abc")] * rows))
    appended = assign_offsets(data, 2**32 - 5, LIMIT)
    assert appended == (rows, len(data), 2**32 - 5, 2**32 - 6 + rows, rows, 0, 0)
    assert [offset for offset, _ in cut(bytes(data[: 29 * 20]))] == list(
        range(2**32 - 5, 2**32 + 15)
    )
    assert check_follower_set(data, LIMIT) == appended


@pytest.mark.parametrize("call", [leader, follower])
@pytest.mark.parametrize("rows", [1, 30])
def test_refused_entries(call, rows):
    good = plain([(b"k", b"value")] * rows)
    entry = encode_entry(b"k", b"value", rows)
    short = good + struct.pack(">qi", 0, 13) + bytes(13)
    assert outcome(call, short)[0] is InvalidMessageError
    assert outcome(call, short[:-13])[0] is InvalidMessageError
    assert outcome(call, good + struct.pack(">qi", 0, -1))[0] is InvalidMessageError
    assert outcome(call, good + set_byte(entry, 20, 9))[0] is InvalidMessageError
    assert outcome(call, good + set_byte(entry, 17, 4, right_crc=True))[0] in (
        UnknownError,
        CorruptCompressionError,
    )
    # magic and the other attribute bits are nobody's business
    for at, value in ((16, 7), (17, 0x10)):
        result, _ = outcome(call, good + set_byte(entry, at, value, right_crc=True))
        assert result.count == rows + 1


@pytest.mark.parametrize("rows", [1, 30])
def test_size_limit_counts_the_whole_entry(rows):
    data = plain([(None, b"x" * 74)] * rows)
    for check in (lambda b, m: assign_offsets(b, 0, m), check_follower_set):
        assert check(bytearray(data), 100).count == rows
        with pytest.raises(MessageSizeTooLargeError):
            check(bytearray(data), 99)
    # a cut entry is dropped, however large it claims to be
    assert assign_offsets(bytearray(data + struct.pack(">qi", 0, 10**9)), 0, 100).count == rows


def test_a_codec_of_4_to_7_is_unknown():
    entry = encode_entry(None, b"value", 0, 5)
    assert outcome(leader, entry)[0] is UnknownError
    assert outcome(follower, entry)[0] is UnknownError


@pytest.mark.parametrize("tail", range(12))
def test_nothing_whole_is_no_error(tail):
    assert assign_offsets(bytearray(HI[:tail]), 9, LIMIT) == (0, 0, -1, -1, 0, 0, 0)
    assert check_follower_set(bytearray(HI[:tail]), LIMIT) == (0, 0, -1, -1, 0, 0, 0)


@pytest.mark.parametrize("codec", CODECS)
def test_only_eight_bytes_of_a_wrapper_change(codec):
    data = wrap(plain([(None, b"a"), (b"k", None), (None, b"")]), codec, -1, b"key")
    buffer = bytearray(data)
    assert assign_offsets(buffer, 1000, LIMIT) == (3, len(data), 1000, 1002, 1, codec, 0)
    assert buffer[:8] == struct.pack(">q", 1002)
    assert buffer[8:] == data[8:]


def test_empty_wrappers_are_taken_out():
    empty, rest = wrap(b"", 1), plain([(None, b"a" * 40), (None, b"b")])
    first, second = rest[:66], rest[66:]
    buffer = bytearray(empty + first + wrap(b"", 2) + empty + second + wrap(b"", 3) + b"tail")
    appended = assign_offsets(buffer, 8, LIMIT)
    assert appended == (2, len(rest), 8, 9, 2, 3, 0)
    assert buffer[: len(rest)] == plain([(None, b"a" * 40), (None, b"b")], 8)


@pytest.mark.parametrize("codec", CODECS)
def test_bad_wrappers(codec):
    inner = plain([(None, b"one"), (None, b"two")])
    wrong_crc = inner[:-1] + b"x"
    short = inner + struct.pack(">qi", 0, 13) + bytes(14)
    deep = wrap(wrap(wrap(inner, codec), codec), codec)
    unknown = encode_entry(None, b"x", 0, 6)
    for data, error in (
        (encode_entry(None, None, 0, codec), CorruptCompressionError),
        (encode_entry(None, b"", 0, codec), CorruptCompressionError),
        (encode_entry(None, b"rubbish", 0, codec), CorruptCompressionError),
        (wrap(wrong_crc, codec), InvalidMessageError),
        (wrap(short, codec), InvalidMessageError),
        (deep, InvalidMessageError),
        (wrap(unknown, codec), UnknownError),
        (set_byte(wrap(inner, codec), 18, 9, right_crc=True), CorruptCompressionError),
    ):
        assert outcome(leader, data)[0] is error
        with pytest.raises(KafkaError):
            list(iter_messages(bytes(data)))
    # a cut entry inside counts for nothing
    assert assign_offsets(bytearray(wrap(inner + HI[:-1], codec)), 0, LIMIT).count == 2


@pytest.mark.parametrize("codec", CODECS)
def test_inflating_is_bounded_nested_ones_included(codec):
    inner = plain([(None, bytes(1000))] * 20)
    nested = wrap(inner, codec)
    for data in (nested, wrap(nested * 3, codec)):
        with pytest.raises(MessageSizeTooLargeError):
            assign_offsets(bytearray(data), 0, LIMIT, opened=Opened(len(inner) - 1))
    room = 3 * len(inner) + 3 * len(nested)
    data = wrap(nested * 3, codec)
    assert assign_offsets(bytearray(data), 0, LIMIT, opened=Opened(room)).count == 60
    with pytest.raises(MessageSizeTooLargeError):
        assign_offsets(bytearray(data), 0, LIMIT, opened=Opened(room - 1))


def test_follower_offsets_must_rise_inside_the_set():
    assert check_follower_set(bytearray(plain([(None, b"x")] * 3, 12)), LIMIT).first_offset == 12
    for rows in (1, 30):
        data = plain([(None, b"x")] * rows, 12) + plain([(None, b"x")] * rows, 11 + rows)
        with pytest.raises(UnknownError):
            check_follower_set(bytearray(data), LIMIT)
    with_gap = plain([(None, b"x")] * 20, 12) + plain([(None, b"x")] * 20, 100)
    assert check_follower_set(bytearray(with_gap), LIMIT).last_offset == 119


def test_a_position_to_start_from():
    data = plain([(None, b"a"), (None, b"bc"), (None, b"d")], 5)
    first, second, third = iter_entries(data)
    assert (second.position, second.offset, second.size_total) == (27, 6, 28)
    assert list(iter_entries(data, second.position)) == [second, third]
    assert first.codec == 0


def test_impossible_field_lengths_are_refused_on_reading():
    entry = encode_entry(b"key", b"value")
    for at, value in ((18, 0x7F), (21, 13), (28, 1), (25, 0x10)):
        bad = bytes(set_byte(entry, at, value, right_crc=True))
        assert assign_offsets(bytearray(bad), 0, LIMIT).count == 1
        try:
            list(iter_messages(bad))
        except InvalidMessageError:
            pass


@settings(max_examples=150)
@given(
    found=st.lists(entries(), min_size=1, max_size=6),
    change=st.tuples(st.integers(0, 10**6), st.integers(0, 255)),
)
def test_changed_bytes_raise_only_our_errors(found, change):
    data = bytearray(b"".join([entry for entry, _ in found]))
    data[change[0] % len(data)] = change[1]
    for call in (leader, follower, lambda b: list(iter_messages(b, check_crc=False))):
        outcome(call, bytes(data))


def test_random_sizes_mixed_with_runs():
    rng = random.Random(8)
    sizes = [rng.choice([5, 5, 5, 6]) for _ in range(2000)]
    messages = [(None, bytes(size)) for size in sizes]
    buffer = bytearray(plain(messages))
    assert assign_offsets(buffer, 50, LIMIT).count == 2000
    assert [offset for offset, _ in cut(bytes(buffer))] == list(range(50, 2050))


def test_every_flipped_bit_in_a_run_is_found():
    rows, entry = 13, len(encode_entry(None, b"abc"))
    data = plain([(None, bytes([row]) * 3) for row in range(rows)])
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        if bit // 8 % entry < 8:  # the producer's offsets mean nothing
            assert assign_offsets(flipped, 0, LIMIT).count == rows
            continue
        try:
            # a size that grew past the end cuts the set: never are all rows taken
            assert assign_offsets(flipped, 0, LIMIT).count < rows
        except KafkaError:
            continue


@pytest.mark.parametrize("first", [0, 250, 65530, 65536, 2**24 - 3, 2**32 - 5, 2**48 - 1, 2**62])
def test_offsets_of_a_run_carry_through_every_byte(first):
    data = bytearray(plain([(None, b"abc")] * 300))
    assign_offsets(data, first, LIMIT)
    assert [entry.offset for entry in iter_entries(data)] == list(range(first, first + 300))
