"""kafka-consumer-groups and groups that a broker coordinates: shown like those in ZooKeeper."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.errors import LaterCode
from kafka08.groups.members import from_coordinator
from kafka08.groups.records import (
    Committed,
    GroupPartition,
    GroupRecord,
    encode_group,
    encode_group_key,
    encode_key,
    encode_value,
)
from kafka08.message.sets import encode_set
from kafka08.protocol.admin_schemas import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    GroupMember,
)
from kafka08.protocol.group_schemas import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    GroupError,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeletePartition,
    OffsetDeletePartitionResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopic,
    OffsetDeleteTopicResponse,
)
from kafka08.protocol.schemas import FetchRequest
from tests.tools.groups.world import T0, ClusterWithGroups

# Version 0, topic t with partition 1, no user data.
OWNS_T1 = bytes.fromhex("0000 00000001 000174 00000001 00000001 ffffffff")


def described(
    state: str = "Stable", *members: GroupMember, kind: str = "consumer"
) -> DescribedGroup:
    return DescribedGroup(0, "g", state, kind, "range", list(members))


def member(name: str, assignment: bytes) -> GroupMember:
    return GroupMember(name, "app", "/10.0.0.1", b"", assignment)


def coordinate(world: ClusterWithGroups, found: DescribedGroup) -> None:
    def answer(port: int, request: Any) -> Any:
        if not isinstance(request, DescribeGroupsRequest):
            return None
        return DescribeGroupsResponse([found._replace(group=each) for each in request.groups])

    world.cluster.script = answer


def test_members_and_what_they_own() -> None:
    found = from_coordinator(described("Stable", member("a-1", OWNS_T1), member("b-2", b"")))
    assert found is not None
    assert found.members == ["a-1", "b-2"] and found.state == "Stable"
    assert found.owned() == {"a-1": [TopicPartition("t", 1)], "b-2": []}
    assert found.row_of("g", "a-1") == ("a-1", "/10.0.0.1", "app")
    assert found.strategy == "range"


@pytest.mark.parametrize("kind", ["", "zookeeper"])
def test_other_groups(kind: str) -> None:
    assert from_coordinator(described(kind=kind)) is None


@pytest.mark.parametrize("data", [b"\0", OWNS_T1[:9], b"\xff" * 20])
def test_an_assignment_nobody_can_read_is_none(data: bytes) -> None:
    found = from_coordinator(described("Stable", member("a-1", data)))
    assert found is not None and found.owned() == {"a-1": []}
    other = from_coordinator(described("Stable", member("a-1", OWNS_T1), kind="connect"))
    assert other is not None and other.owned() == {"a-1": []}


def test_a_coordinated_group_is_described(world: ClusterWithGroups) -> None:
    coordinate(world, described("Stable", member("a-1", OWNS_T1)))
    rows = world.groups("--describe", "--group", "g")
    assert rows[2].split() == ["g", "t", "1", "-", "20", "-", "a-1", "/10.0.0.1", "app"]
    rows = world.groups("--describe", "--group", "g", "--members")
    assert rows[2].split() == ["g", "a-1", "/10.0.0.1", "app", "1"]
    rows = world.groups("--describe", "--group", "g", "--state")
    assert rows[2].split() == ["g", "b0:9090", "(0)", "range", "Stable", "1"]


@pytest.mark.scenario("modern-42")
def test_a_group_with_coordinated_members_is_neither_reset_nor_deleted(
    world: ClusterWithGroups,
) -> None:
    coordinate(world, described("Stable", member("a-1", OWNS_T1)))
    world.store("g", p0=5)
    rows = world.groups("--reset-offsets", "--group", "g", "--topic", "t", "--to-earliest")
    assert any("is inactive" in row for row in rows)
    assert "still active" in world.groups("--delete", "--group", "g")[0]
    assert world.offset(0) == "5"


def test_brokers_that_do_not_describe_groups_are_asked_once(world: ClusterWithGroups) -> None:
    world.store("g", p0=5)
    world.store("h", p0=5)
    assert len(world.groups("--describe", "--all-groups")) > 4
    assert len(world.cluster.sent(DescribeGroupsRequest)) == 1


def test_stored_groups_are_listed(world: ClusterWithGroups) -> None:
    group = encode_group(GroupRecord("consumer", 1, None, None, [], 0))
    later = b"\0\1" + encode_key(GroupPartition("later", "t", 0))[2:]
    pairs: list[tuple[bytes, bytes | None]] = [
        (encode_group_key("kept"), group),
        (encode_group_key("gone"), group),
        (encode_group_key("gone"), None),
        (later, encode_value(Committed(1, "", 1))),
    ]
    world.cluster.create(OFFSETS_TOPIC, 1)
    log = world.cluster.logs[TopicPartition(OFFSETS_TOPIC, 0)]
    log += [(offset, encode_set([pair], 0, offset)) for offset, pair in enumerate(pairs)]
    assert {"kept", "later"} <= set(world.groups("--list"))
    assert "gone" not in world.groups("--list")


def serve(world: ClusterWithGroups, *listed: str, code: int = 0) -> list[Any]:
    """A broker of later releases, whose group g has no members; the requests that change it."""
    seen: list[Any] = []

    def answer(port: int, request: Any) -> Any:
        if isinstance(request, ListGroupsRequest):
            return ListGroupsResponse(0, [ListedGroup(each, "consumer") for each in listed])
        if isinstance(request, DescribeGroupsRequest):
            return DescribeGroupsResponse([described("Empty")])
        if isinstance(request, DeleteGroupsRequest):
            seen.append(request)
            return DeleteGroupsResponse(0, [GroupError(each, code) for each in request.groups])
        if isinstance(request, OffsetDeleteRequest):
            seen.append(request)
            topics = [
                OffsetDeleteTopicResponse(
                    topic, [OffsetDeletePartitionResponse(each.partition, code) for each in numbers]
                )
                for topic, numbers in request.topics
            ]
            return OffsetDeleteResponse(0, 0, topics)
        return None

    world.cluster.script = answer
    return seen


def test_brokers_are_asked_for_their_groups(world: ClusterWithGroups) -> None:
    world.store("old", p0=1)
    serve(world, "later", "old")
    assert world.groups("--list") == ["later", "old"]
    assert not world.cluster.sent(FetchRequest)


@pytest.mark.scenario("modern-42")
def test_a_group_without_members_is_deleted_by_its_coordinator(world: ClusterWithGroups) -> None:
    seen = serve(world)
    [line] = world.groups("--delete", "--group", "g")
    assert line.startswith("Deleted all consumer group information for group 'g'")
    assert seen == [DeleteGroupsRequest(["g"])]
    serve(world, code=LaterCode.NON_EMPTY_GROUP)
    assert "still active" in world.groups("--delete", "--group", "g")[0]


@pytest.mark.scenario("modern-42")
def test_offsets_are_deleted_by_the_coordinator_if_it_can(world: ClusterWithGroups) -> None:
    world.cluster.committed["g", T0] = 5
    words = ["--delete-offsets", "--group", "g", "--topic", "t:0"]
    seen = serve(world)
    assert world.groups(*words)[0].startswith("Request succeed for deleting offsets with topic t:0")
    topic = OffsetDeleteTopic("t", [OffsetDeletePartition(0)])
    assert seen == [OffsetDeleteRequest("g", [topic])]
    assert world.cluster.committed == {("g", T0): 5}  # no commit
    serve(world, code=LaterCode.GROUP_SUBSCRIBED_TO_TOPIC)
    world.groups(*words)
    assert world.cluster.committed == {("g", T0): -1}
