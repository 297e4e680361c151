"""Where a group is put by time, with leaders that know the times of messages and others."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.common import INTERNAL_TOPICS, OFFSETS_TOPIC, Broker, TopicPartition
from kafka08.groups.records import (
    Committed,
    GroupPartition,
    encode_group_key,
    encode_key,
    encode_value,
)
from kafka08.groups.storage import GroupStorage
from kafka08.message.entry import encode_entry
from kafka08.protocol import schemas
from kafka08.protocol.negotiation import NoApiVersionsError
from tests.fakes.cluster import FakeCluster
from tests.tools.groups.world import T0, ClusterWithGroups

AT = "2015-10-21T16:29:00.000Z"
MS = 1445444940000
RESET = ("--reset-offsets", "--group", "g", "--execute")


def timed(world: ClusterWithGroups, asked: list[int], offset: int = -1, error: int = 0) -> Any:
    """Partition 0's leader knows that ``offset`` is the first message since the time asked for."""

    def script(port: int, request: Any) -> Any:
        if not isinstance(request, schemas.ListOffsetsRequest):
            return None
        [topic] = request.topics
        asked.append(topic.partitions[0].time)
        entry = schemas.OffsetsPartitionResponse(0, error, timestamp=1, offset=offset)
        return schemas.OffsetsResponse([schemas.OffsetsTopicResponse("t", [entry])])

    world.cluster.script = script


def segments(world: ClusterWithGroups, start: int) -> None:
    """The last segment that was complete at any time begins at ``start``."""
    script = world.cluster.script

    def older(port: int, request: Any) -> Any:
        if type(request) is schemas.OffsetsRequest and request.topics[0].partitions[0].time >= 0:
            entry = schemas.OffsetsPartitionResponse(0, 0, [start])
            return schemas.OffsetsResponse([schemas.OffsetsTopicResponse("t", [entry])])
        return script(port, request) if script else None

    world.cluster.script = older


def last_message(world: ClusterWithGroups, timestamp: int | None) -> None:
    end = world.cluster.end(T0)
    world.cluster.logs[T0].append((end, encode_entry(None, b"x", offset=end, timestamp=timestamp)))


def reset(world: ClusterWithGroups, *words: str) -> str:
    world.groups(*RESET, "--topic", "t:0", *(words or ("--to-datetime", AT)))
    return world.offset(0)


def test_all_partitions_are_those_of_no_internal_topic() -> None:
    cluster = FakeCluster()
    for topic in ("t", *INTERNAL_TOPICS):
        cluster.create(topic, 1)
    client = ClusterClient([("b0", 9090)], channel=cluster.channel)
    assert GroupStorage(client).partitions() == [TopicPartition("t", 0)]


def test_the_first_message_since_a_time(world: ClusterWithGroups) -> None:
    asked: list[int] = []
    timed(world, asked, 4)
    assert reset(world) == "4"
    assert reset(world, "--by-duration", "PT1S") == "4"
    assert asked == [MS, world.runtime.clock.millis() - 1000]
    assert {"api_versions": True} in [
        {k: v for k, v in options.items() if k == "api_versions"}
        for options in world.cluster.options
    ]


def test_all_messages_are_older(world: ClusterWithGroups) -> None:
    timed(world, [])
    last_message(world, 5)
    assert reset(world) == "11"


@pytest.mark.parametrize("error", [0, 43])
def test_messages_of_0_8_have_no_time(world: ClusterWithGroups, error: int) -> None:
    timed(world, [], error=error)
    segments(world, 7)
    last_message(world, None)
    assert reset(world) == "7"


def test_an_empty_log(world: ClusterWithGroups) -> None:
    timed(world, [], error=43)
    world.cluster.logs[T0].clear()
    assert reset(world) == "0"


def test_a_leader_that_does_not_serve_later_versions(world: ClusterWithGroups) -> None:
    def script(port: int, request: Any) -> Any:
        if isinstance(request, schemas.ListOffsetsRequest):
            raise NoApiVersionsError("b0:9090 closed the connection")

    world.cluster.script = script
    segments(world, 7)
    assert reset(world) == "7"
    assert len(world.cluster.sent(schemas.ListOffsetsRequest)) == 1


def test_a_leader_that_does_not_answer(world: ClusterWithGroups) -> None:
    timed(world, [], error=6)
    printed = world.groups(*RESET, "--topic", "t:0", "--to-datetime", AT)
    assert "Error getting timed offset of topic partition: t-0" in printed[0]


def test_groups_behind_a_record_larger_than_a_fetch(world: ClusterWithGroups) -> None:
    world.cluster.create(OFFSETS_TOPIC, 1)
    members = encode_group_key("big")
    key = encode_key(GroupPartition("g", "t", 0))
    world.cluster.append(OFFSETS_TOPIC, 0, b"x" * (1 << 21), key=members)
    world.cluster.append(OFFSETS_TOPIC, 0, encode_value(Committed(5, "", 0)), key=key)
    client = ClusterClient([("b0", 9090)], runtime=world.runtime, channel=world.cluster.channel)
    storage = GroupStorage(client, runtime=world.runtime)
    assert storage.groups_in_kafka() == {"big", "g"}


def test_the_ends_of_logs_take_one_request_for_each_leader(world: ClusterWithGroups) -> None:
    world.cluster.brokers[1] = Broker(1, "b1", 9091)
    for number in range(4):
        tp = TopicPartition("u", number)
        world.cluster.leaders[tp], world.cluster.logs[tp] = number % 3, []
    client = ClusterClient([("b0", 9090)], runtime=world.runtime, channel=world.cluster.channel)
    storage = GroupStorage(client, runtime=world.runtime)
    ends = storage.log_ends(TopicPartition("u", number) for number in range(4))
    assert sorted(tp.partition for tp in ends) == [0, 1, 3], "the leader of 2 is not there"
    assert len(world.cluster.sent(schemas.OffsetsRequest)) == 2
