"""Entries of later formats without messages: what stays keeps its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.message.batch import header_of
from kafka08.message.entry import encode_entry, has_right_crc, offset_and_stop, time_of
from kafka08.message.leaves import inflated_records, timed_leaves
from kafka08.message.retained import retained
from tests.message.batches import (
    Record,
    batch,
    encode_record,
    records,
    timed,
    timed_wrapper,
    varint,
)

PAIRS = [(b"a", b"1"), (b"b", None), (None, b"3"), (b"a", b"4")]


def from_pairs(pairs: list[tuple]) -> list[Record]:
    return [(key, value, number, []) for number, (key, value) in enumerate(pairs)]


class Asked:
    """Lets those of some offsets go, and remembers the questions."""

    def __init__(self, *offsets: int) -> None:
        self.offsets = offsets
        self.questions: list[tuple[bytes, int, bool]] = []

    def __call__(self, key: bytes, offset: int, is_null: bool) -> bool:
        self.questions.append((key, offset, is_null))
        return offset in self.offsets


@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_records_go_from_a_batch(codec: int) -> None:
    found = from_pairs(PAIRS)
    data = batch(found, 100, codec, leader_epoch=7)
    asked = Asked(100, 102)
    kept = retained(data, asked)
    assert asked.questions == [(b"a", 100, False), (b"b", 101, True), (b"a", 103, False)]
    assert kept is not None and has_right_crc(kept, 0, len(kept))
    old, new = header_of(data), header_of(kept)
    assert new == old._replace(size=new.size, crc=new.crc, count=3)
    stay = b"".join([encode_record(delta, found[delta]) for delta in (1, 2, 3)])
    assert bytes(inflated_records(kept, 0, len(kept))) == stay


@pytest.mark.scenario("modern-57")
@given(st.lists(records, min_size=1, max_size=8), st.sets(st.integers(0, 7)))
def test_a_batch_against_a_plain_reading(found: list[Record], gone: set[int]) -> None:
    kept = retained(batch(found, 10, 1), lambda key, offset, is_null: offset - 10 in gone)
    stay = [delta for delta, record in enumerate(found) if record[0] is None or delta not in gone]
    if len(stay) == len(found):
        assert kept is None
    elif not stay:
        assert kept == b""
    else:
        assert kept is not None
        assert bytes(inflated_records(kept, 0, len(kept))) == b"".join(
            [encode_record(delta, found[delta]) for delta in stay]
        )


def test_what_tells_of_a_producer_stays() -> None:
    """The last batch of a live one, without its records, for as long as it is that."""
    data = batch([(b"k", b"v", 0, [])], 5, producer_id=9, producer_epoch=1, base_sequence=3)
    kept = retained(data, Asked(5), [5])
    assert kept is not None and len(kept) == 61
    header = header_of(kept)
    assert (header.count, header.last_offset, header.producer_id) == (0, 5, 9)
    assert retained(kept, Asked(5), [5]) is None
    for entry in (data, kept):
        assert retained(entry, Asked(5), [4, 6]) == b""
    assert retained(batch([(b"k", b"v", 0, [])], 5), Asked(5), [5]) == b""


def test_control_batches_stay() -> None:
    asked = Asked(5)
    assert retained(batch([(b"\0\0\0\1", b"", 0, [])], 5, attributes=0x30), asked) is None
    assert asked.questions == []


def test_a_message_of_format_1() -> None:
    data = timed([(b"k", None)], first=8)
    asked = Asked(8)
    assert retained(data, asked) == b""
    assert asked.questions == [(b"k", 8, True)]
    assert retained(data, Asked(7)) is None
    assert retained(timed([(None, b"v")], first=8), Asked(8)) is None


@pytest.mark.parametrize("codec", [1, 2, 3])
@pytest.mark.parametrize(
    ("gone", "last", "newest"), [((100,), 103, 1003), ((103,), 102, 1002), ((100, 103), 102, 1002)]
)
def test_a_wrapper_of_format_1(codec: int, gone: tuple[int, ...], last: int, newest: int) -> None:
    data = timed_wrapper(timed(PAIRS), codec, 103, time=1003)
    kept = retained(data, Asked(*gone))
    assert kept is not None and has_right_crc(kept, 0, len(kept))
    assert offset_and_stop(kept, 0) == (last, len(kept))
    assert time_of(kept, 0) == newest
    stay = [
        encode_entry(*pair, number, timestamp=1000 + number)
        for number, pair in enumerate(PAIRS)
        if 100 + number not in gone
    ]
    assert timed_leaves(kept, 0, len(kept)).data == b"".join(stay)


def test_the_broker_s_time_on_a_wrapper_stays() -> None:
    inner = timed_wrapper(timed(PAIRS), 1, 103)
    value = inner[12 + 22 :]
    data = encode_entry(None, value, 103, 1, timestamp=5555, stamped=True)
    kept = retained(data, Asked(100))
    assert kept is not None
    assert time_of(kept, 0) == 5555
    assert kept[17] == data[17]


def test_wrappers_that_stay_or_go_as_a_whole() -> None:
    data = timed_wrapper(timed([(b"a", b""), (b"b", b"")]), 1, 9)
    assert retained(data, Asked(7)) is None
    assert retained(data, Asked(8, 9)) == b""
    disordered = b"".join([encode_entry(b"a", b"", 0, timestamp=1)] * 2)
    assert retained(timed_wrapper(disordered, 1, 9), Asked(8, 9)) is None


def test_long_fields_keep_their_bytes() -> None:
    big = (b"k" * 300, b"v" * 70_000, 0, [(b"h", None)])
    kept = retained(batch([(b"a", b"", 0, []), big], 0), Asked(0))
    assert kept is not None and kept[61:] == encode_record(1, big)
    assert varint(70_000) in kept
