from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.consumer.errors import ConsumerTimeoutError, StreamFailedError
from kafka08.consumer.stream import Chunk, KafkaStream, PartitionPosition, chunk_of
from kafka08.errors import InvalidMessageError, MessageSizeTooLargeError
from kafka08.message.sets import encode_set
from tests.fakes.runtime import FakeRuntime
from tests.message.batches import batch, simple

TP = TopicPartition("t", 0)


class StreamRig:
    def __init__(self, start: int = 0, timeout_ms: int = 200, **options: Any) -> None:
        self.runtime = FakeRuntime()
        self.queue = self.runtime.queue(2)
        self.stream = KafkaStream(self.queue, timeout_ms=timeout_ms, **options)
        self.position = PartitionPosition(TP, start, self.stream)

    def fetched(self, data: bytes) -> None:
        chunk = chunk_of(self.position, data)
        self.stream.offer(chunk, 0.1)
        self.position.fetched_offset = chunk.next_offset

    def offsets(self) -> list[int]:
        found = []
        try:
            while True:
                found.append(next(self.stream).offset)
        except (ConsumerTimeoutError, StopIteration):
            return found


def messages(first: int, count: int, codec: int = 0) -> bytes:
    return encode_set([(b"k%d" % i, b"v%d" % i) for i in range(first, first + count)], codec, first)


def test_messages_in_order() -> None:
    rig = StreamRig()
    rig.fetched(messages(0, 3))
    rig.fetched(messages(3, 2))
    assert rig.offsets() == [0, 1, 2, 3, 4]
    assert rig.position.fetched_offset == 5


@pytest.mark.scenario("client-19")
@pytest.mark.parametrize("codec", [1, 2, 3])
def test_a_compressed_set_is_entered_in_its_middle(codec: int) -> None:
    rig = StreamRig(start=7)
    rig.fetched(messages(5, 5, codec))
    assert rig.offsets() == [7, 8, 9]
    assert rig.position.fetched_offset == 10


def test_even_the_last_entry_is_skipped_when_it_was_consumed() -> None:
    rig = StreamRig(start=10)
    rig.position.fetched_offset = 5
    rig.fetched(messages(5, 5, 1))
    assert rig.offsets() == []


def test_a_position_moves_when_the_next_message_is_asked_for() -> None:
    rig = StreamRig()
    rig.fetched(messages(0, 2))
    assert rig.stream.has_next()
    assert (rig.position.consumed_offset, rig.position.processed_offset) == (0, 0)
    next(rig.stream)
    assert (rig.position.consumed_offset, rig.position.processed_offset) == (1, 0)
    assert rig.stream.has_next()
    assert (rig.position.consumed_offset, rig.position.processed_offset) == (1, 1)
    next(rig.stream)
    with pytest.raises(ConsumerTimeoutError):
        next(rig.stream)
    assert (rig.position.consumed_offset, rig.position.processed_offset) == (2, 2)


def test_a_reset_is_not_undone_by_the_message_in_hand() -> None:
    rig = StreamRig()
    rig.fetched(messages(0, 2))
    next(rig.stream)
    rig.position.reset(100)
    rig.stream.clear()
    assert rig.offsets() == []
    assert rig.position.processed_offset == 100


@pytest.mark.scenario("client-16")
def test_timeout_leaves_the_stream_usable() -> None:
    rig = StreamRig(timeout_ms=200)
    for _ in range(2):
        with pytest.raises(ConsumerTimeoutError):
            rig.stream.has_next()
    assert rig.runtime.slept == [0.2, 0.2]
    rig.fetched(messages(0, 1))
    assert next(rig.stream).offset == 0


@pytest.mark.scenario("client-18")
def test_message_above_the_fetch_size_fails_the_stream() -> None:
    rig = StreamRig()
    rig.fetched(messages(0, 1)[:-1])
    with pytest.raises(MessageSizeTooLargeError, match="topic t partition 0 at fetch offset 0"):
        next(rig.stream)
    rig.fetched(messages(0, 1))
    with pytest.raises(StreamFailedError):
        next(rig.stream)


def test_cut_entry_at_the_end_of_a_chunk_is_left_to_the_next_fetch() -> None:
    rig = StreamRig()
    rig.fetched(messages(0, 3)[:-1])
    assert rig.position.fetched_offset == 2
    assert rig.offsets() == [0, 1]


def test_bad_crc_fails_the_stream() -> None:
    data = bytearray(messages(0, 1))
    data[-1] ^= 1
    rig = StreamRig()
    rig.fetched(bytes(data))
    with pytest.raises(InvalidMessageError):
        next(rig.stream)
    with pytest.raises(StreamFailedError):
        next(rig.stream)


@pytest.mark.scenario("client-20")
def test_decoders_are_lazy_and_null_stays_null() -> None:
    calls: list[bytes] = []

    def decode(data: bytes) -> str:
        calls.append(data)
        return data.decode()

    rig = StreamRig(key_decoder=decode, value_decoder=int)
    rig.fetched(encode_set([(b"k", b"7"), (None, None), (b"z", b"x")]))
    first = next(rig.stream)
    assert calls == []
    assert (first.topic, first.partition, first.offset) == ("t", 0, 0)
    assert (first.key, first.value, first.key) == ("k", 7, "k")
    assert calls == [b"k", b"k"]
    second = next(rig.stream)
    assert (second.key, second.value) == (None, None)
    third = next(rig.stream)
    with pytest.raises(ValueError, match="invalid literal"):
        _ = third.value
    assert rig.offsets() == []
    assert rig.position.processed_offset == 3


def test_end_comes_after_the_chunk_in_progress() -> None:
    rig = StreamRig(timeout_ms=-1)
    rig.fetched(messages(0, 3))
    rig.fetched(messages(3, 3))
    next(rig.stream)
    rig.stream.end()
    assert [message.offset for message in rig.stream] == [1, 2]
    assert not rig.stream.has_next()


def test_clear_drops_chunk_and_queue() -> None:
    rig = StreamRig()
    rig.fetched(messages(0, 3))
    rig.fetched(messages(3, 3))
    next(rig.stream)
    rig.stream.clear()
    assert rig.offsets() == []


def test_chunks_of_a_partition_that_was_lost_yield_nothing() -> None:
    rig = StreamRig()
    rig.fetched(messages(0, 3))
    rig.fetched(messages(3, 3))
    assert next(rig.stream).offset == 0
    rig.position.owned = False
    assert rig.offsets() == []


def test_a_gap_is_jumped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    rig = StreamRig()
    rig.stream.offer(Chunk(rig.position, 10, 12, messages(10, 2)), 0.1)
    assert rig.offsets() == [10, 11]
    assert "consumed offset: 0 doesn't match fetch offset: 10" in caplog.text


@pytest.mark.parametrize("shown", [messages(0, 2), b""], ids=["messages", "nothing"])
def test_markers_and_aborted_messages_are_no_gap(
    shown: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    rig = StreamRig()
    rig.stream.offer(Chunk(rig.position, 0, 3, shown), 0.1)
    rig.stream.offer(Chunk(rig.position, 3, 5, messages(3, 2)), 0.1)
    assert rig.offsets() == [*([0, 1] if shown else []), 3, 4]
    assert not caplog.text


def test_the_position_passes_the_marker_at_the_end() -> None:
    rig = StreamRig()
    rig.stream.offer(Chunk(rig.position, 0, 3, messages(0, 2)), 0.1)
    assert rig.offsets() == [0, 1]
    assert (rig.position.consumed_offset, rig.position.processed_offset) == (3, 3)


def test_a_marker_is_not_processed_before_the_messages_that_were_taken() -> None:
    rig = StreamRig()
    rig.stream.offer(Chunk(rig.position, 0, 3, messages(0, 2)), 0.1)
    for _ in range(2):
        assert rig.stream.has_next()
        rig.stream.take()
    assert rig.offsets() == []
    assert (rig.position.consumed_offset, rig.position.processed_offset) == (3, 0)


def test_taken_messages_leave_the_position_to_the_caller() -> None:
    rig = StreamRig()
    rig.fetched(messages(0, 2))
    for offset in (0, 1):
        assert rig.stream.has_next()
        peeked = rig.stream.peek()
        taken = rig.stream.take()
        assert taken is not None
        assert taken[1] is peeked
        assert (taken[0], taken[1].offset) == (rig.position, offset)
    assert (rig.position.consumed_offset, rig.position.processed_offset) == (2, 0)
    assert rig.stream.take() is None


def test_nothing_is_taken_of_a_partition_that_was_let_go() -> None:
    rig = StreamRig()
    rig.fetched(messages(0, 2))
    assert rig.stream.has_next()
    rig.position.owned = False
    assert rig.stream.peek() is None
    assert rig.stream.take() is None
    assert rig.position.consumed_offset == 0


def test_timestamps_and_headers() -> None:
    rig = StreamRig()
    rig.fetched(messages(0, 1) + batch(simple(b"a"), 1))
    old, new = next(rig.stream), next(rig.stream)
    assert (old.timestamp, old.timestamp_type, old.headers) == (-1, -1, ())
    assert (new.timestamp, new.timestamp_type, new.headers) == (1000, 0, (("h", b"x"),))


def test_a_chunk_of_control_records_only_moves_on() -> None:
    rig = StreamRig()
    rig.fetched(batch([(b"\0\0\0\1", b"\0" * 6, 0, [])], 0, attributes=0x20))
    assert rig.offsets() == []
    assert rig.position.fetched_offset == 1
    rig.fetched(batch(simple(b"a"), 1))
    assert rig.offsets() == [1]
