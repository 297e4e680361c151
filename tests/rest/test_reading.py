from __future__ import annotations

from typing import Any

from kafka08.common import TopicPartition
from kafka08.consumer.stream import KafkaStream, PartitionPosition, chunk_of
from kafka08.message.sets import encode_set
from kafka08.rest.reading import STREAM_TIMEOUT_MS, Limits, StreamReader
from tests.fakes.runtime import FakeRuntime

TP = TopicPartition("t", 0)


def stream_of(runtime: FakeRuntime, *values: bytes) -> tuple[KafkaStream, PartitionPosition]:
    stream = KafkaStream(runtime.queue(10), timeout_ms=STREAM_TIMEOUT_MS)
    position = PartitionPosition(TP, 0, stream)
    data = encode_set([(None, value) for value in values], 0, 0)
    stream.offer(chunk_of(position, data), 0)
    return stream, position


def offset(message: Any) -> dict[str, Any]:
    return {"offset": message.offset}


def test_only_returned_messages_are_processed() -> None:
    runtime = FakeRuntime()
    stream, position = stream_of(runtime, b"a", b"b", b"c")
    reader = StreamReader(runtime, runtime.event(), 0.05)
    found = reader.read(stream, Limits(1.0, 2), offset)
    assert [record["offset"] for _, record in found] == [0, 1]
    assert (position.processed_offset, position.consumed_offset) == (2, 2)


def test_a_read_ends_when_it_is_told_to() -> None:
    runtime = FakeRuntime()
    stream = KafkaStream(runtime.queue(10), timeout_ms=STREAM_TIMEOUT_MS)
    stopping = runtime.event()
    runtime.while_waiting = [stopping.set]
    begin = runtime.clock.now
    assert StreamReader(runtime, stopping, 0.05).read(stream, Limits(60.0, 2), offset) == []
    assert runtime.clock.now - begin < 1


def test_messages_of_a_partition_that_was_released_are_left_out() -> None:
    runtime = FakeRuntime()
    stream, position = stream_of(runtime, b"a")
    assert stream.has_next()
    position.owned = False
    reader = StreamReader(runtime, runtime.event(), 0.05)
    assert reader.read(stream, Limits(0.0, 100), offset) == []
