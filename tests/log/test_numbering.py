"""Produced sets, numbered before the log is ready for them."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import InvalidMessageError, KafkaError, MessageSizeTooLargeError
from kafka08.log.numbering import Numbered, moved, number, timed_rules
from kafka08.message.batch import header_of
from kafka08.message.compression import MAX_INFLATED
from kafka08.message.entry import MAGIC_AT
from kafka08.message.sets import Opened, encode_set, iter_messages
from kafka08.message.timed_sets import Rules
from kafka08.settings.topic import LogConfig
from tests.message.batches import batch, simple
from tests.message.sets import has_absolute_offsets, plain, set_byte

BARE = [(b"a", b"1", 0, []), (b"b", b"2", 0, []), (b"c", b"3", 0, [])]

T0 = TopicPartition("t", 0)
PAIRS = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]


def numbered(
    data: bytes, base: int = 10, *, opened: Opened | None = None, **settings: Any
) -> Numbered:
    return number(T0, LogConfig(**settings), memoryview(bytearray(data)), base, opened=opened)


def offsets(found: Numbered) -> list[int]:
    return [message.offset for message in iter_messages(bytes(found.data))]


def test_plain_messages_are_numbered_in_place() -> None:
    buffer = memoryview(bytearray(plain(PAIRS)))
    found = number(T0, LogConfig(), buffer, 10)
    assert bytes(buffer) == bytes(found.data) == plain(PAIRS, first=10)
    assert (found.base, found.found.first_offset, found.found.last_offset) == (10, 10, 12)
    assert found.movable


def test_a_cut_tail_is_not_stored() -> None:
    data = plain(PAIRS)
    assert bytes(numbered(data + data[:20]).data) == plain(PAIRS, first=10)


def test_a_format_that_is_not_known_counts_as_0() -> None:
    """As 0.8.2.2 takes it."""
    found = numbered(bytes(set_byte(plain(PAIRS[:1]), MAGIC_AT, 5, right_crc=True)))
    assert (found.found.count, found.found.magic, found.sendable) == (1, 0, True)


def test_plain_messages_move() -> None:
    found = moved(numbered(plain(PAIRS)), 55)
    assert bytes(found.data) == plain(PAIRS, first=55)
    assert (found.base, found.found.first_offset, found.found.last_offset) == (55, 55, 57)
    assert moved(found, 55) is found


@pytest.mark.parametrize("codec", [1, 2])
def test_a_wrapper_moves_if_it_was_opened_with_others(codec: int) -> None:
    data = encode_set(PAIRS, codec)
    fixed = numbered(data)
    assert offsets(fixed) == [10, 11, 12]
    assert not fixed.movable
    with pytest.raises(KafkaError, match="moved on"):
        moved(fixed, 11)
    assert moved(fixed, 10) is fixed
    found = moved(numbered(data, opened=Opened(MAX_INFLATED)), 70)
    assert offsets(found) == [70, 71, 72]
    assert (found.found.first_offset, found.found.last_offset) == (70, 72)


def test_a_batch_moves_with_its_crc() -> None:
    data = batch(simple(b"x", b"y"), 0, 1)
    found = moved(numbered(data, opened=Opened(MAX_INFLATED)), 30)
    before, after = header_of(data), header_of(found.data)
    assert (after.base_offset, after.last_offset, after.crc) == (30, 31, before.crc)


def test_an_empty_set_needs_no_move() -> None:
    found = numbered(b"")
    assert found.found.count == 0
    assert moved(found, 99) is found


def test_normalised_sets_are_one_wrapper_that_stays() -> None:
    data = encode_set(PAIRS[:2], 1) + encode_set(PAIRS[2:], 1)
    found = numbered(data, opened=Opened(MAX_INFLATED), compressed_sets="normalised")
    assert offsets(found) == [10, 11, 12]
    assert (found.found.first_offset, found.found.last_offset) == (10, 12)
    assert not found.movable and found.rebuilt is None
    assert len(numbered(data).data) > len(found.data)


@pytest.mark.parametrize("codec", [0, 1])
def test_a_compacted_topic_takes_no_message_without_a_key(codec: int) -> None:
    data = encode_set([(b"k", b""), (None, b"")], codec)
    assert offsets(numbered(data)) == [10, 11]
    with pytest.raises(InvalidMessageError, match="without a key"):
        numbered(data, cleanup_policy="compact")


def test_the_largest_message() -> None:
    data = plain([(None, b"x" * 100)])
    size = len(data)
    assert len(numbered(data, max_message_bytes=size).data) == size
    with pytest.raises(MessageSizeTooLargeError):
        numbered(data, max_message_bytes=size - 1)


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("release", ["0.8.2", "0.10.0"])
def test_converted_sets_move(codec: int, release: str) -> None:
    data = batch(BARE, codec=codec)
    found = numbered(data, opened=Opened(MAX_INFLATED), message_format_version=release)
    assert found.found.count == 3 and found.found.valid_bytes == len(data)
    assert offsets(found) == [10, 11, 12]
    assert found.movable
    for base in (11, 50):
        found = moved(found, base)
        assert offsets(found) == [base, base + 1, base + 2]
        assert (found.found.first_offset, found.found.last_offset) == (base, base + 2)


def test_converted_sets_stay_where_wrappers_need_true_offsets() -> None:
    found = numbered(
        batch(BARE, codec=1),
        opened=Opened(MAX_INFLATED),
        message_format_version="0.8.2",
        compressed_sets="normalised",
    )
    assert not found.movable and has_absolute_offsets(bytes(found.data))


def test_rules_for_timestamps() -> None:
    rules = Rules(leader_epoch=7)
    assert timed_rules(rules, LogConfig(), 5000) is rules
    stamping = LogConfig(message_timestamp_type="LogAppendTime")
    assert timed_rules(rules, stamping, 5000) == rules._replace(append_time=5000)
    limited = LogConfig(
        message_timestamp_difference_max_ms=2000, message_timestamp_after_max_ms=100
    )
    assert timed_rules(rules, limited, 5000) == rules._replace(oldest=3000, newest=5100)
