"""The APIs of coordinated groups on a broker, and how groups of 0.8 and of later releases meet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, offsets_partition_for
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import group_schemas as g
from kafka08.protocol import schemas as s
from kafka08.protocol.registry import APIS, api_of
from kafka08.protocol.requests import decode_response, encode_request
from kafka08.protocol.types import Struct
from tests.server.support import Rig, partition_state
from zk import znodes

T = ("t", 0)
OFFSETS = (OFFSETS_TOPIC, offsets_partition_for("g", 4))
RANGE = [g.GroupProtocol("range", b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff")]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path, later=True, group_initial_rebalance_delay_ms=0)
    rig.offsets.stores_groups = True
    rig.lead(*OFFSETS)
    rig.know(partition_state("t"), partition_state("t", 1), partition_state("u"))
    rig.runtime.run_spawned()
    yield rig
    rig.close()


def ask(rig: Rig, request: Any, version: int) -> Any:
    """The answer in that version. While the request waits, time passes to the next deadline."""
    rig.runtime.while_waiting = [lambda: pass_time(rig)] * 9
    key = api_of(request)[0]
    reply = rig.send(b"".join(encode_request(request, 7, "me", version))[4:])
    assert reply is not None
    return decode_response(Struct(APIS[key].response, version), reply[4:])[1]


def pass_time(rig: Rig) -> None:
    at = rig.groups.timers.next
    assert at is not None
    rig.clock.now = max(at, rig.clock.now)
    rig.groups.run_timers()


def join(rig: Rig, version: int = 3, member_id: str = "", **named: Any) -> Any:
    request = g.JoinGroupRequest("g", 10_000, member_id, "consumer", RANGE, 60_000)
    return ask(rig, request._replace(**named), version)


def stable(rig: Rig, version: int = 3) -> Any:
    answer = join(rig)
    assignments = [g.MemberAssignment(answer.member_id, b"mine")]
    request = g.SyncGroupRequest("g", answer.generation, answer.member_id, assignments)
    assert ask(rig, request, version).assignment == b"mine"
    return answer


def commit(rig: Rig, version: int, offset: int = 5, **named: Any) -> int:
    topics = [s.OffsetCommitTopic("t", [s.OffsetCommitPartition(0, offset, "m")])]
    answer = ask(rig, s.OffsetCommitRequest("g", topics)._replace(**named), version)
    code: int = answer.topics[0].partitions[0].error
    return code


def member(answer: Any) -> dict[str, Any]:
    return {"generation": answer.generation, "member_id": answer.member_id}


def fetch(rig: Rig, version: int, topics: Any = None) -> Any:
    return ask(rig, s.OffsetFetchRequest("g", topics), version)


# Membership in every version


@pytest.mark.parametrize("version", range(6))
def test_joins(rig: Rig, version: int) -> None:
    answer = join(rig, version)
    if version >= 4:
        assert (answer.error, answer.generation, answer.members) == (79, -1, [])
        answer = join(rig, version, answer.member_id)
    assert (answer.error, answer.generation, answer.protocol) == (0, 1, "range")
    assert answer.leader == answer.member_id and answer.member_id.startswith("me-")
    assert [bytes(each.metadata) for each in answer.members] == [RANGE[0].metadata]
    assert join(rig, version, session_timeout_ms=10).error == 26


@pytest.mark.parametrize("version", range(4))
def test_syncs_heartbeats_and_leaves(rig: Rig, version: int) -> None:
    answer = stable(rig, version)
    beat = g.HeartbeatRequest("g", 1, answer.member_id)
    assert ask(rig, beat, version).error == 0
    assert ask(rig, beat._replace(generation=9), version).error == 22
    assert ask(rig, g.SyncGroupRequest("g", 9, answer.member_id, []), version).error == 22
    leave = g.LeaveGroupRequest("g", answer.member_id)
    if version == 3:
        leave = g.LeaveGroupRequest(
            "g", "", [g.LeavingMember(answer.member_id, None), g.LeavingMember("x", None)]
        )
    left = ask(rig, leave, version)
    assert left.error == 0 and rig.groups.groups["g"].state.value == "Empty"
    if version == 3:
        assert left.members == [(answer.member_id, None, 0), ("x", None, 25)]
    else:
        assert ask(rig, leave, version).error == 25


def test_static_members_on_the_wire(rig: Rig) -> None:
    first = join(rig, 5, group_instance_id="i")
    assert first.member_id.startswith("i-") and first.members[0].group_instance_id == "i"
    request = g.SyncGroupRequest("g", 1, first.member_id, [], "i")
    assert ask(rig, request, 3).error == 0
    again = join(rig, 5, group_instance_id="i")
    assert (again.error, again.leader, again.members) == (0, first.member_id, [])
    beat = g.HeartbeatRequest("g", 1, first.member_id, "i")
    assert ask(rig, beat, 3).error == 82
    leave = g.LeaveGroupRequest("g", "", [g.LeavingMember("", "i")])
    assert ask(rig, leave, 3).members == [("", "i", 0)]


def test_only_the_coordinator_answers(rig: Rig) -> None:
    answer = stable(rig)
    rig.follow(*OFFSETS)
    assert join(rig).error == ask(rig, g.HeartbeatRequest("g", 1, answer.member_id), 0).error == 16
    assert ask(rig, g.SyncGroupRequest("g", 1, answer.member_id, []), 0).error == 16
    assert ask(rig, g.LeaveGroupRequest("g", answer.member_id), 0).error == 16
    assert commit(rig, 2) == 16 and fetch(rig, 2).error == 16
    assert ask(rig, g.DeleteGroupsRequest(["g"]), 0).groups == [("g", 16)]
    assert ask(rig, g.OffsetDeleteRequest("g", []), 0).error == 16
    assert ask(rig, g.ListGroupsRequest(), 0) == (0, [], 0)
    assert ask(rig, a.DescribeGroupsRequest(["g"]), 1).groups[0].error == 16
    rig.lead(*OFFSETS)
    assert join(rig).error == fetch(rig, 2).error == commit(rig, 2) == 14
    assert ask(rig, g.HeartbeatRequest("g", 1, answer.member_id), 0).error == 0
    assert ask(rig, g.SyncGroupRequest("g", 1, answer.member_id, []), 0).error == 27
    assert ask(rig, g.ListGroupsRequest(), 0).error == 14


def test_errors_of_ours_are_answered(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> None:
        raise OSError("as told")

    answer = stable(rig)
    monkeypatch.setattr(rig.offsets, "check_coordinator", broken)
    assert join(rig).error == -1
    assert ask(rig, g.SyncGroupRequest("g", 1, answer.member_id, []), 0).error == -1
    assert ask(rig, g.HeartbeatRequest("g", 1, answer.member_id), 0).error == -1
    assert ask(rig, g.LeaveGroupRequest("g", answer.member_id), 0).error == -1
    assert ask(rig, g.DeleteGroupsRequest(["g"]), 0).groups == [("g", -1)]
    assert ask(rig, g.OffsetDeleteRequest("g", []), 0).error == -1


# Commits and fetches


@pytest.mark.parametrize("version", range(2, 8))
def test_a_member_commits_and_others_do_not(rig: Rig, version: int) -> None:
    assert commit(rig, version) == 0  # no members yet
    answer = stable(rig)
    assert commit(rig, version, 6, **member(answer)) == 0
    assert commit(rig, version) == commit(rig, 1) == 25
    assert commit(rig, version, generation=0, member_id=answer.member_id) == 22
    found = fetch(rig, version if version < 6 else 5, [s.OffsetFetchTopic("t", [0, 1])])
    assert [tuple(each)[:4] for each in found.topics[0].partitions] == [
        (0, 6, "m", 0),
        (1, -1, "", 0),
    ]


@pytest.mark.scenario("modern-39")
def test_a_commit_of_0_8_counts_while_there_is_no_member(rig: Rig) -> None:
    assert commit(rig, 1, generation=5, member_id="consumer") == 0
    answer = stable(rig)
    assert commit(rig, 1, 7) == 25
    ask(rig, g.LeaveGroupRequest("g", answer.member_id), 0)
    assert commit(rig, 1, 8) == 0 and commit(rig, 2, 9, generation=1) == 25


def test_null_topics_are_all_of_the_group(rig: Rig) -> None:
    commit(rig, 2)
    assert fetch(rig, 2, []) == s.OffsetFetchResponse([])
    assert [topic.topic for topic in fetch(rig, 5).topics] == ["t"]
    assert ask(rig, s.OffsetFetchRequest("none", None), 5).topics == []


def test_a_retention_of_its_own(rig: Rig) -> None:
    hour = 3_600_000
    commit(rig, 2, retention_time_ms=hour)
    rig.clock.now += 3600
    rig.offsets.expire()
    assert fetch(rig, 2).topics
    rig.clock.now += 1
    rig.offsets.expire()
    assert not fetch(rig, 2).topics


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_retention_that_is_not_set_is_the_brokers(rig: Rig, version: int) -> None:
    """0 in clients that leave the field unset: nobody commits to forget at once."""
    commit(rig, version, 7, generation=0, retention_time_ms=0)
    rig.clock.now += 3600
    rig.offsets.expire()
    assert fetch(rig, 3).topics[0].partitions[0].offset == 7


# Coordinators, lists, descriptions


@pytest.mark.scenario("modern-48")
def test_coordinators_of_groups(rig: Rig) -> None:
    rig.know(partition_state(*OFFSETS))
    for version in range(3):
        found = ask(rig, s.ConsumerMetadataRequest("g"), version)
        assert (found.error, found.coordinator_id) == (0, 1)
        assert found.error_message == (None if version == 0 else "NONE")
    found = ask(rig, s.ConsumerMetadataRequest("g", 2), 1)
    assert (found.error, found.error_message) == (42, "No coordinator for keys of this type")


@pytest.mark.scenario("transactions-50")
def test_no_coordinator_of_transactions_while_originals_may_be_registered(rig: Rig) -> None:
    found = ask(rig, s.ConsumerMetadataRequest("id", 1), 1)
    assert (found.error, found.coordinator_id) == (43, -1)
    assert found.error_message == "No transactions while a broker of 0.8.2.2 is registered"
    assert znodes.topic_path(TRANSACTIONS_TOPIC) not in rig.zookeeper.nodes


@pytest.mark.parametrize("version", range(5))
def test_groups_are_described(rig: Rig, version: int) -> None:
    def described() -> Any:
        return ask(rig, a.DescribeGroupsRequest(["g"]), version).groups[0]

    assert described()[:6] == (0, "g", "Dead", "zookeeper", "", [])
    commit(rig, 2)
    assert described()[:6] == (0, "g", "Empty", "", "", [])
    answer = stable(rig)
    found = described()
    assert found[:5] == (0, "g", "Stable", "consumer", "range")
    [each] = found.members
    assert (each.member_id, each.client_id, each.client_host) == (answer.member_id, "me", "/")
    assert (bytes(each.metadata), bytes(each.assignment)) == (RANGE[0].metadata, b"mine")
    ask(rig, g.LeaveGroupRequest("g", answer.member_id), 0)
    assert described()[:6] == (0, "g", "Empty", "consumer", "", [])


def test_a_group_in_zookeeper_is_described_unless_it_has_members_here(rig: Rig) -> None:
    def kind() -> str:
        found = ask(rig, a.DescribeGroupsRequest(["g"]), 0).groups[0]
        return f"{found.protocol_type} {found.state}"

    path = f"{znodes.consumer_ids_path('g')}/c"
    rig.zk.create(path, b"{}", makepath=True)
    commit(rig, 1)
    assert kind() == "zookeeper Stable"
    answer = stable(rig)
    assert kind() == "consumer Stable"
    ask(rig, g.LeaveGroupRequest("g", answer.member_id), 0)
    assert kind() == "zookeeper Stable"
    rig.zk.delete(path)
    assert kind() == "consumer Empty"


def test_groups_are_listed(rig: Rig) -> None:
    assert ask(rig, g.ListGroupsRequest(), 0).groups == []
    commit(rig, 2)
    assert ask(rig, g.ListGroupsRequest(), 1).groups == [("g", "")]
    stable(rig)
    assert ask(rig, g.ListGroupsRequest(), 2).groups == [("g", "consumer")]


# Deletion


@pytest.mark.scenario("modern-42")
def test_groups_with_members_are_not_deleted(rig: Rig) -> None:
    def delete(*groups: str) -> Any:
        return ask(rig, g.DeleteGroupsRequest(list(groups)), 1).groups

    assert delete("g") == [("g", 69)]
    commit(rig, 2)
    path = f"{znodes.consumer_ids_path('g')}/c"
    rig.zk.create(path, b"{}", makepath=True)
    assert delete("g") == [("g", 68)]
    rig.zk.delete(path)
    answer = stable(rig)
    assert delete("g") == [("g", 68)]
    ask(rig, g.LeaveGroupRequest("g", answer.member_id), 0)
    assert delete("g", "g") == [("g", 0)]
    led = offsets_partition_for("../x", 4) == OFFSETS[1]
    assert delete("../x") == [("../x", 69 if led else 16)]
    assert fetch(rig, 2).topics == [] and delete("g") == [("g", 69)]


@pytest.mark.scenario("modern-42")
def test_offsets_of_subscribed_topics_are_kept(rig: Rig) -> None:
    def delete(topic: str, *partitions: int) -> Any:
        named = [g.OffsetDeletePartition(each) for each in partitions]
        found = ask(rig, g.OffsetDeleteRequest("g", [g.OffsetDeleteTopic(topic, named)]), 0)
        return found.error or [each.error for each in found.topics[0].partitions]

    assert delete("t", 0) == 69
    commit(rig, 2)
    assert delete("t", 0, 1, 9) == [0, 0, 3] and fetch(rig, 2).topics == []
    answer = stable(rig)
    commit(rig, 2, **member(answer))
    assert delete("t", 0) == [86] and delete("u", 0) == [0]
    unread = [g.GroupProtocol("range", b"\0\0\0\0\0\1")]
    join(rig, 3, answer.member_id, protocols=unread)
    assert delete("u", 0) == [86]  # it may be what the member reads
    rig.groups.groups["g"].protocol_type = "connect"
    assert delete("t", 0) == 68


# Topics that do not exist


def commit_each(rig: Rig, version: int, *keys: tuple[str, int], **named: Any) -> list[int]:
    """The wire codes, in the order of ``keys``."""
    topics = [s.OffsetCommitTopic(t, [s.OffsetCommitPartition(n, 5, "m")]) for t, n in keys]
    answer = ask(rig, s.OffsetCommitRequest("g", topics)._replace(**named), version)
    by_name = {(t.topic, p.partition): p.error for t in answer.topics for p in t.partitions}
    return [by_name[key] for key in keys]


UNKNOWN = [("none", 0), ("t", 2), ("t", -1), ("no/name", 0), ("", 0)]


@pytest.mark.parametrize("version", range(1, 8))
def test_a_commit_for_what_does_not_exist(rig: Rig, version: int) -> None:
    refused = 0 if version == 1 else 3
    expected = [0, *[refused] * len(UNKNOWN)]
    assert commit_each(rig, version, ("t", 1), *UNKNOWN) == expected
    assert len(rig.offsets.offsets_of("g")) == expected.count(0)


def test_other_refusals_concern_what_exists(rig: Rig) -> None:
    assert commit_each(rig, 2, T, ("none", 0), generation=3) == [22, 3]
    rig.follow(*OFFSETS)
    assert commit_each(rig, 2, T, ("none", 0)) == [16, 3]


def test_commits_before_any_metadata_are_tried_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path, later=True)
    rig.lead(*OFFSETS)
    rig.runtime.run_spawned()
    assert commit_each(rig, 2, T, ("none", 0)) == [14, 14]
    assert commit(rig, 1) == 0
    rig.know(partition_state("t"))
    assert commit_each(rig, 2, T, ("none", 0)) == [0, 3]
    rig.close()


@pytest.mark.parametrize("version", [1, 2, 7])
def test_a_deleted_topic_leaves_no_offsets(rig: Rig, version: int) -> None:
    commit_each(rig, version, T, ("t", 1), ("u", 0))
    rig.know(*(partition_state("t", number, leader=-2) for number in (0, 1)))
    rig.know(partition_state("t"))
    assert [key[1:] for key in rig.offsets.offsets_of("g")] == [("u", 0)]
    assert [topic.topic for topic in fetch(rig, 2).topics] == ["u"]
    assert commit_each(rig, version, T) == [0]


@pytest.mark.parametrize("version", [1, 2])
def test_a_topic_that_is_deleted_while_its_commit_waits(tmp_path: Path, version: int) -> None:
    rig = Rig(tmp_path, later=True)
    rig.lead(*OFFSETS, replicas=[1, 2])
    rig.know(partition_state("t"), partition_state("u"))
    rig.runtime.run_spawned()

    def replicate() -> None:
        rig.know(partition_state("t", leader=-2))
        rig.fetch((*OFFSETS, 2, 0), replica_id=2)

    topics = [s.OffsetCommitTopic(t, [s.OffsetCommitPartition(0, 5, "")]) for t in "tu"]
    rig.runtime.while_waiting = [replicate]
    frame = b"".join(encode_request(s.OffsetCommitRequest("g", topics), 7, "me", version))[4:]
    assert rig.send(frame) is not None
    assert [key[1:] for key in rig.offsets.offsets_of("g")] == [("u", 0)]
    rig.close()
