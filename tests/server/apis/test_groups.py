"""APIs 8 to 12: commits to ZooKeeper and to Kafka, coordinators, the two stubs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition, offsets_partition_for
from kafka08.protocol.group_schemas import HeartbeatRequest, JoinGroupStubRequest
from kafka08.protocol.schemas import (
    ConsumerMetadataRequest,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitRequestV0,
    OffsetCommitTopic,
    OffsetFetchRequest,
    OffsetFetchRequestV0,
    OffsetFetchTopic,
)
from kafka08.server.cluster_view.pauses import Pauses
from tests.server.support import BROKERS, ME, PEER, Rig, by_key, partition_state
from zk import znodes
from zk.errors import ZkConnectionError

GROUP = "g"
T = ("t", 0)
OFFSETS = (OFFSETS_TOPIC, offsets_partition_for(GROUP, 4))


def commit_v0(rig: Rig, *entries: Any, group: str = GROUP) -> dict[Any, Any]:
    """``entries``: (topic, partition, offset, metadata)."""
    topics = [
        OffsetCommitTopic(topic, [OffsetCommitPartition(number, offset, metadata)])
        for topic, number, offset, metadata in entries
    ]
    return codes(rig.call(OffsetCommitRequestV0(group, topics)))


def commit(rig: Rig, *entries: Any, group: str = GROUP, timestamp: int = -1) -> dict[Any, Any]:
    topics = [
        OffsetCommitTopic(topic, [OffsetCommitPartition(number, offset, metadata, timestamp)])
        for topic, number, offset, metadata in entries
    ]
    return codes(rig.call(OffsetCommitRequest(group, topics, 5, "consumer")))


def fetch(rig: Rig, *keys: Any, group: str = GROUP, version: int = 1) -> dict[Any, Any]:
    """(offset, metadata, error) by (topic, partition)."""
    kind = OffsetFetchRequest if version else OffsetFetchRequestV0
    topics = [OffsetFetchTopic(topic, [number]) for topic, number in keys]
    return by_key(rig.call(kind(group, topics), version=version))


def codes(response: Any) -> dict[Any, int]:
    return {key: code for key, (code,) in by_key(response).items()}


def node(rig: Rig, topic: str, number: int, group: str = GROUP) -> bytes:
    return rig.zookeeper.nodes[znodes.consumer_offset_path(group, topic, number)].data


def coordinate(rig: Rig, **changes: Any) -> Any:
    partition = rig.lead(*OFFSETS, **changes)
    rig.runtime.run_spawned()  # loading
    return partition


# Version 0: ZooKeeper


@pytest.mark.scenario("modern-40")
def test_v0_goes_to_zookeeper_whoever_coordinates(rig: Rig) -> None:
    rig.know(partition_state("t"))
    assert commit_v0(rig, (*T, 42, "meta"), ("t", 99, 7, None)) == {T: 0, ("t", 99): 0}
    assert (node(rig, *T), node(rig, "t", 99)) == (b"42", b"7")
    assert fetch(rig, T, ("t", 99), version=0) == {T: (42, "", 0), ("t", 99): (7, "", 0)}
    assert commit_v0(rig, (*T, -1, "")) == {T: 0}
    assert fetch(rig, T, version=0) == {T: (-1, "", 0)}


def test_v0_errors_are_per_partition(rig: Rig) -> None:
    rig.know(partition_state("t"), partition_state("v"))
    rig.zk.fails[znodes.consumer_offset_path(GROUP, "v", 0)] = ZkConnectionError()
    long, fits = "x" * 4097, "\U0001f600" * 2048  # counted in UTF-16 units
    answer = commit_v0(
        rig,
        (*T, 1, long),
        ("t", 1, 1, fits),
        ("t", 2, 1, fits + "x"),
        ("u", 0, 1, ""),
        ("v", 0, 1, ""),
    )
    assert answer == {T: 12, ("t", 1): 0, ("t", 2): 12, ("u", 0): 3, ("v", 0): -1}


def test_v0_fetches(rig: Rig) -> None:
    rig.know(partition_state("t"), partition_state("v"))
    rig.zk.create(znodes.consumer_offset_path(GROUP, "t", 1), b"many", makepath=True)
    rig.zk.fails[znodes.consumer_offset_path(GROUP, "v", 0)] = ZkConnectionError()
    assert fetch(rig, T, ("t", 1), ("u", 0), ("v", 0), version=0) == {
        T: (-1, "", 3),
        ("t", 1): (-1, "", -1),
        ("u", 0): (-1, "", 3),
        ("v", 0): (-1, "", -1),
    }
    assert fetch(rig, version=0) == {}


@pytest.mark.parametrize(
    "group",
    [
        "",
        ".",
        "..",
        "../brokers",
        "a//b",
        "a/../b",
        "a/./b",
        "a/..",
        "a\0b",
        "/a",
        "\x7f",
        "\U0001f600",
    ],
)
def test_groups_that_are_no_path_are_minus_1(rig: Rig, group: str) -> None:
    """The client library takes some of them for paths elsewhere."""
    rig.know(partition_state("t"))
    before = set(rig.zookeeper.nodes)
    assert commit_v0(rig, (*T, 1, ""), group=group) == {T: -1}
    assert fetch(rig, T, version=0, group=group) == {T: (-1, "", -1)}
    assert set(rig.zookeeper.nodes) == before


def test_groups_that_only_look_odd(rig: Rig) -> None:
    rig.know(partition_state("t"))
    for group in ("...", "a..b", ".a", "a b", "a/b", "\u00e9"):
        assert commit_v0(rig, (*T, 1, ""), group=group) == {T: 0}
        assert fetch(rig, T, version=0, group=group) == {T: (1, "", 0)}


# Version 1: Kafka


def test_v1_is_stored_and_read_back(rig: Rig) -> None:
    coordinate(rig)
    rig.know(partition_state("t"), partition_state("t", 1), partition_state("t", 2))
    assert commit(rig, (*T, 42, "meta"), ("t", 1, 7, None)) == {T: 0, ("t", 1): 0}
    assert fetch(rig, T, ("t", 1), ("t", 2), ("t", 9), ("u", 0)) == {
        T: (42, "meta", 0),
        ("t", 1): (7, "", 0),
        ("t", 2): (-1, "", 0),
        ("t", 9): (-1, "", 3),
        ("u", 0): (-1, "", 3),
    }


@pytest.mark.parametrize("version", [1, 2, -1, 99])
def test_any_other_version_of_a_fetch_is_1(rig: Rig, version: int) -> None:
    coordinate(rig)
    rig.know(partition_state("t"))
    commit(rig, (*T, 42, ""))
    assert fetch(rig, T, version=version) == {T: (42, "", 0)}


def test_an_offset_of_a_partition_not_known_yet_is_told(rig: Rig) -> None:
    """To a coordinator that has just started the controller may not have named all partitions.
    After code 3 a consumer of 0.8 would begin where auto.offset.reset says."""
    coordinate(rig)
    assert commit(rig, (*T, 42, "meta")) == {T: 0}
    assert fetch(rig, T, ("t", 1)) == {T: (42, "meta", 0), ("t", 1): (-1, "", 3)}


def test_after_a_pause_another_may_coordinate(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinate(rig)
    rig.know(partition_state("t"))
    commit(rig, (*T, 42, ""))
    monkeypatch.setattr(Pauses, "may_be_deposed", True)
    assert fetch(rig, T) == {T: (-1, "", 16)}


def test_an_empty_fetch_is_answered_empty(rig: Rig) -> None:
    coordinate(rig)
    commit(rig, (*T, 42, "m"))
    assert fetch(rig) == {}


def test_not_the_coordinator(rig: Rig) -> None:
    rig.know(partition_state("t"))
    assert commit(rig, (*T, 1, ""), ("u", 0, 1, "")) == {T: 15, ("u", 0): 15}
    assert fetch(rig, T, ("u", 0)) == {T: (-1, "", 16), ("u", 0): (-1, "", 16)}
    rig.follow(*OFFSETS)
    assert commit(rig, (*T, 1, "")) == {T: 16}
    assert fetch(rig, T) == {T: (-1, "", 16)}


def test_while_loading_only_fetches_are_refused(rig: Rig) -> None:
    rig.know(partition_state("t"))
    rig.lead(*OFFSETS)
    assert fetch(rig, T) == {T: (-1, "", 14)}
    assert fetch(rig) == {}
    assert commit(rig, (*T, 42, "")) == {T: 0}
    rig.runtime.run_spawned()
    assert fetch(rig, T) == {T: (42, "", 0)}


def test_too_long_metadata_concerns_its_partition_only(rig: Rig) -> None:
    coordinate(rig)
    rig.know(partition_state("t"), partition_state("t", 1))
    assert commit(rig, (*T, 1, "x" * 4097), ("t", 1, 2, "x" * 4096)) == {T: 12, ("t", 1): 0}
    assert fetch(rig, ("t", 1)) == {("t", 1): (2, "x" * 4096, 0)}
    assert commit(rig, (*T, 1, "x" * 4097)) == {T: 12}


def test_a_commit_waits_for_the_isr_and_times_out(rig: Rig) -> None:
    partition = coordinate(rig, replicas=[ME, PEER])
    rig.know(partition_state("t"))
    before = rig.clock.now
    assert commit(rig, (*T, 42, "")) == {T: 7}
    assert rig.clock.now == before + 5
    assert partition.any_log().log_end_offset == 1  # the data stays
    assert fetch(rig, T) == {T: (-1, "", 0)}  # the cache knows acknowledged commits only

    def replicate() -> None:
        rig.fetch((*OFFSETS, 2, 0), replica_id=PEER)

    rig.runtime.while_waiting = [replicate]
    assert commit(rig, (*T, 43, "")) == {T: 0}
    assert fetch(rig, T) == {T: (43, "", 0)}


def test_a_commit_that_loses_its_leader_is_16(rig: Rig) -> None:
    coordinate(rig, replicas=[ME, PEER])
    rig.runtime.while_waiting = [lambda: rig.follow(*OFFSETS)]
    assert commit(rig, (*T, 42, "")) == {T: 16}


def test_acks_1_for_commits_waits_for_nobody(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(offsets_commit_required_acks=1)
    coordinate(rig, replicas=[ME, PEER])
    before = rig.clock.now
    assert commit(rig, (*T, 42, "")) == {T: 0}
    assert rig.clock.now == before


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"min.insync.replicas": "2"}, 19),
        ({"max.message.bytes": "40"}, 10),
        ({"segment.bytes": "50"}, 18),
    ],
)
def test_what_the_append_says(rig: Rig, settings: dict[str, str], code: int) -> None:
    rig.topic_settings[OFFSETS_TOPIC] = settings
    coordinate(rig)
    assert commit(rig, (*T, 42, ""), ("u", 1, 1, "")) == {T: code, ("u", 1): code}


def test_the_last_of_repeated_partitions_counts(rig: Rig) -> None:
    coordinate(rig)
    rig.know(partition_state("t"))
    assert commit(rig, (*T, 1, ""), (*T, 2, "")) == {T: 0}
    assert fetch(rig, T) == {T: (2, "", 0)}


def test_failures_name_each_partition(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("as told")

    for name in ("commit", "fetch", "check_coordinator"):
        monkeypatch.setattr(rig.offsets, name, broken)
    rig.know(partition_state("t"))
    assert commit(rig, (*T, 1, "")) == {T: -1}
    assert fetch(rig, T) == {T: (-1, "", -1)}


# Coordinators


def ask(rig: Rig, group: str = GROUP) -> Any:
    return rig.call(ConsumerMetadataRequest(group))


NOT_YET = (15, -1, "", -1)


def test_the_first_question_creates_the_topic(rig: Rig) -> None:
    rig.register(ME)
    assert ask(rig) == NOT_YET
    assert znodes.topic_path(OFFSETS_TOPIC) in rig.zookeeper.nodes


def test_the_leader_of_the_groups_partition_coordinates(rig: Rig) -> None:
    other = 1 - OFFSETS[1] % 2
    rig.know(
        partition_state(*OFFSETS, leader=PEER, replicas=[PEER]),
        partition_state(OFFSETS_TOPIC, other),
    )
    assert ask(rig) == (0, *BROKERS[1][:3])


def test_without_a_live_leader_there_is_none(rig: Rig) -> None:
    rig.know(partition_state(*OFFSETS, leader=PEER, replicas=[PEER]), brokers=BROKERS[:1])
    assert ask(rig) == NOT_YET
    rig.know(partition_state(*OFFSETS, leader=-1, replicas=[PEER]))
    assert ask(rig) == NOT_YET
    rig.know(partition_state(*OFFSETS, leader=-2), partition_state(OFFSETS_TOPIC, OFFSETS[1] ^ 1))
    assert ask(rig) == NOT_YET


def test_trouble_is_15(rig: Rig) -> None:
    rig.zk.down = True
    assert ask(rig) == NOT_YET


# Stubs


def test_the_stubs_say_no(rig: Rig) -> None:
    assert rig.call(JoinGroupStubRequest("g", 1, ["t"], "c", "range")) == (-1, -1, "", [])
    assert rig.call(HeartbeatRequest("g", 1, "c")) == (-1,)


def test_the_topic_partition_of_a_group() -> None:
    for group, number in (("my-group", 12), ("test-consumer-group", 31), ("group-1", 49)):
        assert offsets_partition_for(group, 50) == number
    assert TopicPartition(*OFFSETS).topic == OFFSETS_TOPIC
