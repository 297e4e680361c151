from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.stream import KafkaStream, PartitionPosition, chunk_of
from kafka08.errors import ConfigError
from kafka08.message.sets import encode_set
from kafka08.protocol import schemas
from kafka08.rest.errors import RestError
from kafka08.rest.readers import (
    COORDINATOR_S,
    STREAM_TIMEOUT_MS,
    AssignedReader,
    BoundedReader,
    Limits,
    OffsetReader,
)
from tests.fakes import transactional_log
from tests.fakes.runtime import FakeRuntime
from tests.rest.world import BROKER, RestWorld

TP = TopicPartition("t", 0)


def reader_of(world: RestWorld) -> AssignedReader:
    config = ConsumerConfig(
        group_id="g",
        zookeeper_connect="z",
        consumer_timeout_ms=STREAM_TIMEOUT_MS,
        auto_offset_reset="smallest",
        auto_commit_interval_ms=1000,
    )
    return AssignedReader(
        config,
        [TP],
        BoundedReader(world.runtime, world.runtime.event(), 0.05),
        lambda: [BROKER],
        world.runtime,
        world.brokers.channel,
    )


def test_offsets_are_committed_in_intervals_and_at_the_end() -> None:
    world = RestWorld()
    world.topic("t")
    world.brokers.append("t", 0, b"a", b"b")
    reader = reader_of(world)
    read = partial(reader.read, Limits(0.5, 1), lambda message: {})
    assert len(read()) == 1
    assert world.brokers.committed == {}
    world.runtime.clock.advance(1.0)
    read()
    assert world.brokers.committed == {("g", TP): 2}
    world.brokers.append("t", 0, b"c")
    read()
    reader.close()
    assert world.brokers.committed == {("g", TP): 3}


def test_a_coordinator_that_is_not_there_yet_is_waited_for() -> None:
    world = RestWorld()
    world.topic("t")
    refused = [15, 15]

    def script(port: int, request: object) -> object:
        if isinstance(request, schemas.ConsumerMetadataRequest) and refused:
            return schemas.ConsumerMetadataResponse(refused.pop(), -1, "", -1)
        return None

    world.brokers.script = script
    begin = world.runtime.clock.now
    assert reader_of(world).committed([TP]) == {}
    assert refused == []
    assert world.runtime.clock.now - begin < COORDINATOR_S


def stream_of(runtime: FakeRuntime, *values: bytes) -> tuple[KafkaStream, PartitionPosition]:
    stream = KafkaStream(runtime.queue(10), timeout_ms=STREAM_TIMEOUT_MS)
    position = PartitionPosition(TP, 0, stream)
    data = encode_set([(None, value) for value in values], 0, 0)
    stream.offer(chunk_of(position, data), 0)
    return stream, position


def shown(message: Any) -> dict[str, object]:
    return {"offset": message.offset}


def test_only_returned_messages_are_processed() -> None:
    runtime = FakeRuntime()
    stream, position = stream_of(runtime, b"a", b"b", b"c")
    reader = BoundedReader(runtime, runtime.event(), 0.05)
    found = reader.read(stream, Limits(1.0, 2), shown)
    assert [record["offset"] for _, record in found] == [0, 1]
    assert (position.processed_offset, position.consumed_offset) == (2, 2)


def test_a_read_ends_when_it_is_told_to() -> None:
    runtime = FakeRuntime()
    stream = KafkaStream(runtime.queue(10), timeout_ms=STREAM_TIMEOUT_MS)
    stopping = runtime.event()
    runtime.while_waiting = [stopping.set]
    begin = runtime.clock.now
    assert BoundedReader(runtime, stopping, 0.05).read(stream, Limits(60.0, 2), shown) == []
    assert runtime.clock.now - begin < 1


def test_messages_of_a_partition_that_was_released_are_left_out() -> None:
    runtime = FakeRuntime()
    stream, position = stream_of(runtime, b"a")
    assert stream.has_next()
    position.owned = False
    reader = BoundedReader(runtime, runtime.event(), 0.05)
    assert reader.read(stream, Limits(0.0, 100), shown) == []


def offsets(world: RestWorld, max_bytes: int, offset: int, count: int) -> list[int]:
    reader = OffsetReader(world.cluster, max_bytes)
    return [message.offset for message in reader.read(TP, offset, count)]


def test_bytes_are_limited_and_one_message_comes_at_least() -> None:
    world = RestWorld()
    world.topic("t")
    world.brokers.append("t", 0, b"x" * 100, b"y" * 100, b"z" * 150)
    assert offsets(world, 250, 0, 10) == [0, 1]
    assert offsets(world, 250, 2, 10) == [2]
    assert offsets(world, 1000, 0, 10) == [0, 1, 2]
    with pytest.raises(RestError, match="offset 2 of topic t partition 0 is larger than the 120"):
        offsets(world, 120, 2, 1)


@pytest.mark.parametrize("key", ["isolation__level", "consumer__isolation__level"])
def test_reads_by_offset_of_committed_transactions_alone(key: str) -> None:
    for level in ("read_committed", "read_uncommitted"):
        world = RestWorld(**{key: level})
        world.topic("t")
        transactional_log.fill(world.brokers, TP)
        path = "/topics/t/partitions/0/messages?count=100&offset="
        found = [each["offset"] for each in world.call("GET", f"{path}0")[1]]
        if level == "read_committed":
            assert found == [offset for offset, _ in transactional_log.COMMITTED]
            assert world.call("GET", f"{path}{transactional_log.END}") == (200, [])
        else:
            assert found == [0, 1, 2, 3, 6, 8, 10, 11]
        assert world.brokers.options[-1]["api_versions"] == (level == "read_committed")


def test_a_proxy_with_a_wrong_isolation_does_not_start() -> None:
    with pytest.raises(ConfigError, match=r"isolation\.level has value committed"):
        RestWorld(isolation__level="committed")
