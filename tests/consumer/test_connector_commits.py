"""High-level consumers: the offsets that are committed, and those that reading begins at."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.consumer.errors import (
    ConsumerRebalanceFailedError,
    PartitionNotOwnedError,
)
from kafka08.protocol import schemas
from tests.consumer.group_world import ConnectorMember, GroupWorld


def test_close_commits_what_was_processed_and_ends_the_streams(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b", b"c")
    member = ConnectorMember(world).join()
    member.fetch()
    (stream,) = member.streams
    next(stream)
    next(stream)
    member.connector.close()
    member.connector.close()
    # The second message may still be in work.
    assert world.offset("t", 0) == "1"
    assert world.owners() == {}
    assert member.zk.closed
    assert [message.offset for message in stream] == [2]


def test_commit_by_hand_includes_the_message_in_hand(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b")
    member = ConnectorMember(world, auto_commit_enable=False).join()
    assert len(member.read(1)) == 1
    assert member.connector.commit_offsets()
    assert world.offset("t", 0) == "1"
    member.connector.close()
    assert world.offset("t", 0) == "1"


def test_close_does_not_take_back_what_was_committed_by_hand(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b")
    member = ConnectorMember(world).join()
    member.read(1)
    member.connector.commit_offsets()
    member.connector.close()
    assert world.offset("t", 0) == "1"


@pytest.mark.scenario("client-22")
def test_nothing_negative_is_committed(world: GroupWorld) -> None:
    member = ConnectorMember(world).join()
    member.connector.commit_offsets()
    member.connector.close()
    assert world.offset("t", 0) is None


def test_auto_commit_runs_each_interval(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a")
    member = ConnectorMember(world, auto_commit_interval_ms=700).join()
    member.read()
    world.runtime.step("kafka-consumer-autocommit")
    assert world.offset("t", 0) == "1"
    assert world.runtime.slept[-1] == 0.7


def test_rebalance_keeps_the_message_in_hand_uncommitted_but_goes_on(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b", b"c")
    member = ConnectorMember(world).join()
    assert member.read(2) == [("t", 0, 0), ("t", 0, 1)]
    world.topic("t", 3)
    member.handle_events()
    assert world.offset("t", 0) == "1"
    assert world.owners() == {0: "g_c-0", 1: "g_c-0", 2: "g_c-0"}
    assert member.read() == [("t", 0, 2)]
    member.connector.close()
    assert world.offset("t", 0) == "3"


@pytest.mark.scenario("client-26")
def test_rebalance_without_auto_commit_rewinds(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b", b"c")
    member = ConnectorMember(world, auto_commit_enable=False).join()
    member.read(1)
    member.connector.commit_offsets()
    assert member.read() == [("t", 0, 1), ("t", 0, 2)]
    world.topic("t", 3)
    member.handle_events()
    assert member.read() == [("t", 0, 1), ("t", 0, 2)]


def test_malformed_offset_is_named_and_its_mending_noticed(world: GroupWorld, caplog: Any) -> None:
    world.ensemble.put("/consumers/g/offsets/t/1", b"seven")
    member = ConnectorMember(world)
    with pytest.raises(ConsumerRebalanceFailedError, match="/consumers/g/offsets/t/1: 'seven'"):
        member.join()
    assert world.owners() == {}
    member.connector.close()
    second = ConnectorMember(world, "d")
    world.ensemble.put("/consumers/g/offsets/t/1", b"0")
    second.join()
    world.ensemble.put("/consumers/g/offsets/t/1", b"")
    world.topic("t", 3)
    second.handle_events()
    assert "can't rebalance" in caplog.text
    world.ensemble.put("/consumers/g/offsets/t/1", b"1")
    second.handle_events()
    assert len(world.owners()) == 3


def test_handed_out_is_committed_when_told_so(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b")
    member = ConnectorMember(world, commit_handed_out=True).join()
    member.read(maximum=1)
    member.connector.close()
    assert world.offset("t", 0) == "1"


def test_stored_offset_is_the_start(world: GroupWorld) -> None:
    world.cluster.append("t", 0, *[b"%d" % n for n in range(5)])
    world.ensemble.put("/consumers/g/offsets/t/0", b"3")
    assert ConnectorMember(world).join().read() == [("t", 0, 3), ("t", 0, 4)]


@pytest.mark.scenario("client-24")
def test_dual_commit_starts_at_the_maximum_and_writes_both(world: GroupWorld) -> None:
    world.cluster.append("t", 0, *[b"%d" % n for n in range(5)])
    world.ensemble.put("/consumers/g/offsets/t/0", b"3")
    world.cluster.committed["g", TopicPartition("t", 0)] = 2
    member = ConnectorMember(world, offsets_storage="kafka").join()
    assert member.read() == [("t", 0, 3), ("t", 0, 4)]
    member.connector.close()
    assert world.offset("t", 0) == "5"
    assert world.cluster.committed["g", TopicPartition("t", 0)] == 5


def refuse_commits(port: int, request: Any) -> Any:
    if not isinstance(request, schemas.OffsetCommitRequest):
        return None
    topics = [
        schemas.OffsetCommitTopicResponse(
            topic.topic,
            [schemas.OffsetCommitPartitionResponse(p.partition, 15) for p in topic.partitions],
        )
        for topic in request.topics
    ]
    return schemas.OffsetCommitResponse(topics)


@pytest.mark.scenario("client-25")
def test_failing_kafka_commit_is_tried_once_and_six_times_at_close(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a")
    member = ConnectorMember(world, offsets_storage="kafka").join()
    member.read()
    world.cluster.script = refuse_commits
    assert not member.connector.commit_offsets()
    assert len(world.cluster.sent(schemas.OffsetCommitRequest)) == 1
    member.connector.close()
    assert len(world.cluster.sent(schemas.OffsetCommitRequest)) == 7
    assert world.offset("t", 0) is None


def test_a_member_can_go_on_at_other_offsets(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"0", b"1", b"2")
    world.cluster.append("t", 1, b"0", b"1", b"2")
    member = ConnectorMember(world).join()
    assert member.connector.assignment() == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert len(member.read()) == 6
    member.connector.seek({TopicPartition("t", 0): 1})
    assert member.read() == [("t", 0, 1), ("t", 0, 2)]
    assert member.connector.commit_offsets()
    assert (world.offset("t", 0), world.offset("t", 1)) == ("3", "3")
    with pytest.raises(PartitionNotOwnedError):
        member.connector.seek({TopicPartition("t", 9): 1})


def test_chosen_offsets_are_committed_in_place_of_the_positions(world: GroupWorld) -> None:
    member = ConnectorMember(world).join()
    assert member.connector.commit_offsets({TopicPartition("t", 1): 7})
    assert (world.offset("t", 0), world.offset("t", 1)) == (None, "7")
