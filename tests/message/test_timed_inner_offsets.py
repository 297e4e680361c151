"""Compressed messages of format 1 whose producer did not number the messages inside."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import (
    InvalidMessageError,
    InvalidRecordError,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    UnknownError,
)
from kafka08.log.numbering import Numbered, moved, number
from kafka08.message.compression import MAX_INFLATED, compress, decompress
from kafka08.message.entry import encode_entry, has_right_crc, key_and_value
from kafka08.message.leaves import timed_leaves
from kafka08.message.scan import iter_entries, newest_time
from kafka08.message.sets import Opened, assign_offsets, check_follower_set, iter_messages
from kafka08.message.timed_sets import Rules
from kafka08.settings.topic import LogConfig
from tests.message import captured
from tests.message.batches import timed, timed_wrapper
from tests.message.sets import LIMIT

T0 = TopicPartition("t", 0)
PAIRS = [(b"k1", b"one"), (b"k2", None), (b"k3", b"three" * 20)]
TIMES = [1500, 1400, 1450]
CODECS = {1: "gzip", 2: "snappy", 3: "lz4"}
SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1

# The offsets inside, as clients write or could write them.
UNSET = {
    "all 0": [0, 0, 0],
    "all -1": [-1, -1, -1],
    "equal": [7, 7, 7],
    "descending": [2, 1, 0],
    "with a gap": [0, 1, 5],
    "with a gap first": [0, 2, 3],
    "in disorder": [1, 0, 2],
    "twice": [0, 1, 1],
    "from 1": [1, 2, 3],
    "absolute": [1000, 1001, 1002],
    "from -1": [-1, 0, 1],
    "from the smallest": [SMALLEST, SMALLEST + 1, SMALLEST + 2],
    "to the largest": [LARGEST - 2, LARGEST - 1, LARGEST],
}
every_shape = pytest.mark.parametrize("shape", UNSET)
every_codec = pytest.mark.parametrize("codec", CODECS, ids=CODECS.get)


def inner(offsets: list[int]) -> bytes:
    return b"".join(
        encode_entry(*pair, offset, timestamp=time)
        for pair, offset, time in zip(PAIRS, offsets, TIMES, strict=True)
    )


def numbered(data: bytes, base: int = 50, **settings: object) -> Numbered:
    rules = settings.pop("rules", Rules())
    config = LogConfig(**settings)
    return number(
        T0, config, memoryview(bytearray(data)), base, opened=Opened(1 << 20), rules=rules
    )


def read(data: bytes) -> list[tuple]:
    return [(m.offset, m.key, m.value, m.timestamp) for m in iter_messages(bytes(data))]


def right(base: int = 50) -> list[tuple]:
    return [
        (base + i, *pair, time) for i, (pair, time) in enumerate(zip(PAIRS, TIMES, strict=True))
    ]


def stored_offsets(data: bytes) -> list[int]:
    """Those inside the wrapper that a set consists of."""
    return [entry.offset for entry in iter_entries(timed_leaves(data, 0, len(data)).data)]


@every_codec
@every_shape
def test_the_messages_are_numbered(shape: str, codec: int) -> None:
    for wrapper_offset in (0, -1, 2, 99):
        found = numbered(timed_wrapper(inner(UNSET[shape]), codec, wrapper_offset))
        assert found.found[:6] == (3, found.found.valid_bytes, 50, 52, 1, codec)
        assert read(found.data) == right()
        assert stored_offsets(found.data) == [0, 1, 2]
        assert has_right_crc(found.data, 0, len(found.data))
        assert found.data[17] == codec
        assert newest_time(found.data, 0, len(found.data)) == (1500, 52)
        assert check_follower_set(found.data, LIMIT).valid_bytes == len(found.data)


@every_codec
def test_a_numbered_set_keeps_its_bytes(codec: int) -> None:
    data = timed_wrapper(inner([0, 1, 2]), codec, 2, time=1500)
    buffer = memoryview(bytearray(data))
    found = number(T0, LogConfig(), buffer, 50, opened=Opened(1 << 20))
    assert found.data.obj is buffer.obj
    assert bytes(found.data)[8:] == data[8:]


@every_shape
def test_a_numbered_set_is_moved(shape: str) -> None:
    found = numbered(timed_wrapper(inner(UNSET[shape]), 1))
    assert found.movable
    assert read(moved(found, 1000).data) == right(1000)
    assert moved(found, 1000).found.last_offset == 1002


@every_codec
@every_shape
def test_the_broker_s_time(shape: str, codec: int) -> None:
    found = numbered(timed_wrapper(inner(UNSET[shape]), codec), rules=Rules(append_time=9999))
    assert read(found.data) == [(*message[:3], 9999) for message in right()]
    leaves = timed_leaves(found.data, 0, len(found.data)).data
    assert leaves == inner([0, 1, 2])  # the times inside stay
    assert found.data[17] == codec | 8
    assert has_right_crc(found.data, 0, len(found.data))


@pytest.mark.parametrize("release", ["0.8.2", "0.9.0", "0.10.2", "0.11.0"])
@pytest.mark.parametrize("compressed_sets", ["verbatim", "normalised"])
@every_shape
def test_other_topics(shape: str, compressed_sets: str, release: str) -> None:
    found = numbered(
        timed_wrapper(inner(UNSET[shape]), 1),
        message_format_version=release,
        compressed_sets=compressed_sets,
        cleanup_policy="compact",
    )
    assert [message[:3] for message in read(found.data)] == [message[:3] for message in right()]
    assert bool(found.found.magic) == (release in ("0.10.2", "0.11.0"))
    if found.found.magic:
        assert read(found.data) == right()


def test_keys_and_times_are_checked_before() -> None:
    keyless = timed([(b"k", b"a")]) + timed([(None, b"b")])
    with pytest.raises(InvalidRecordError):
        numbered(timed_wrapper(keyless, 1), cleanup_policy="compact")
    for rules in (Rules(oldest=1401), Rules(newest=1499)):
        with pytest.raises(InvalidTimestampError):
            numbered(timed_wrapper(inner([0, 0, 0]), 1), rules=rules)
    assert numbered(
        timed_wrapper(inner([0, 0, 0]), 1, time=0), rules=Rules(oldest=1400, newest=1500)
    )


def test_other_messages_before_and_after() -> None:
    unset, set_ = timed_wrapper(inner([0, 0, 0]), 1), timed_wrapper(inner([0, 1, 2]), 2)
    data = timed([(b"k", b"a")], 7) + unset + set_ + unset + timed([(b"k", b"z")])
    found = numbered(data + unset[:30])
    assert found.found[:5] == (11, len(data), 50, 60, 5)
    assert [message[0] for message in read(found.data)] == list(range(50, 61))
    assert [message[1:] for message in read(found.data)][1:4] == [m[1:] for m in right()]


def test_one_message_alone() -> None:
    one = encode_entry(b"k", b"v", 5, timestamp=7)
    found = numbered(timed_wrapper(one, 1), base=0)
    assert read(found.data) == [(0, b"k", b"v", 7)]
    assert stored_offsets(found.data) == [0]  # not 5, from which readers would count


def test_what_becomes_too_large_is_refused() -> None:
    offsets = [0] * 200
    pairs = b"".join(encode_entry(b"k", b"v", offset, timestamp=7) for offset in offsets)
    data = timed_wrapper(pairs, 1)
    size = len(numbered(data).data)
    assert size > len(data)
    assert len(numbered(data, max_message_bytes=size).data) == size
    with pytest.raises(MessageSizeTooLargeError):
        numbered(data, max_message_bytes=size - 1)


def test_what_is_still_refused() -> None:
    for bad in (b"", timed_wrapper(inner([0, 0, 0]), 1), encode_entry(b"k", b"v")):
        with pytest.raises(InvalidRecordError):
            numbered(timed_wrapper(bad, 1))
    damaged = inner([0, 0, 0])[:-1] + b"?"
    with pytest.raises(InvalidMessageError, match="crc"):
        numbered(timed_wrapper(damaged, 1))
    zstd = encode_entry(None, compress(4, inner([0, 0, 0]), magic=2), 0, 4, timestamp=7)
    with pytest.raises(UnknownError):
        numbered(zstd)
    with pytest.raises(InvalidRecordError):  # nowhere to put it
        assign_offsets(bytearray(timed_wrapper(inner([0, 0, 0]), 1)), 0, LIMIT)


def test_the_key_of_a_wrapper_is_dropped() -> None:
    packed = compress(1, inner([0, 0, 0]), magic=1)
    found = numbered(encode_entry(b"key", packed, 0, 1, timestamp=0))
    key, value = key_and_value(found.data, 0, len(found.data))
    assert key is None
    assert value is not None
    assert decompress(1, found.data[slice(*value)], MAX_INFLATED) == inner([0, 1, 2])


@pytest.mark.parametrize("client", captured.UNSET)
def test_what_real_clients_send(client: str) -> None:
    data = captured.UNSET[client]
    assert stored_offsets(data) == [0, 0, 0]
    found = numbered(data, base=7)
    assert stored_offsets(found.data) == [0, 1, 2]
    expected = [(7 + i, *pair, captured.TIME + i) for i, pair in enumerate(captured.PAIRS)]
    assert read(found.data) == expected
    assert newest_time(found.data, 0, len(found.data)) == (captured.TIME + 2, 9)
