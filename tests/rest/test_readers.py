from __future__ import annotations

from functools import partial

from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.protocol import schemas
from kafka08.rest.readers import COORDINATOR_S, AssignedReader
from kafka08.rest.reading import STREAM_TIMEOUT_MS, Limits, StreamReader
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
        StreamReader(world.runtime, world.runtime.event(), 0.05),
        lambda: [BROKER],
        world.runtime,
        channel=world.brokers.channel,
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
