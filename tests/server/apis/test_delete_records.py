"""DeleteRecords: what consumers see after it, who is waited for, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.errors import LaterCode
from kafka08.log.disk import DiskFailure
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.schemas import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    OffsetsPartition,
    OffsetsRequest,
    OffsetsTopic,
)
from tests.message.batches import batch
from tests.server.support import BROKERS, ME, PEER, THIRD, Rig, partition_state, texts

KEY = TopicPartition("t", 0)
OUT_OF_RANGE, UNKNOWN, NOT_LEADER, TIMED_OUT, INVALID_TOPIC = 1, 3, 6, 7, 17


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path, later=True, log_segment_bytes=200)
    rig.know(partition_state())
    yield rig
    rig.close()


def delete(rig: Rig, offset: int, *more: tuple[str, int, int], timeout_ms: int = 1000) -> Any:
    """(low watermark, error) of t-0; a dict by (topic, partition) if there are more."""
    asked = [("t", 0, offset), *more]
    topics = [a.DeleteRecordsTopic(t, [a.DeleteRecordsPartition(p, at)]) for t, p, at in asked]
    response = rig.call(a.DeleteRecordsRequest(topics, timeout_ms), sent_in=1)
    found = {
        (topic.topic, each.partition): tuple(each[1:])
        for topic in response.topics
        for each in topic.partitions
    }
    return found if more else found["t", 0]


def earliest(rig: Rig, version: int, replica_id: int = -1) -> Any:
    topics = [OffsetsTopic("t", [OffsetsPartition(0, -2)])]
    answer = rig.call(OffsetsRequest(replica_id, topics), sent_in=version).topics[0].partitions[0]
    return answer.offset if version else answer.offsets


def fetch(rig: Rig, offset: int, version: int = 11, replica_id: int = -1, first: int = -1) -> Any:
    asked = FetchPartition(0, offset, 1 << 20, log_start_offset=first)
    request = FetchRequest(replica_id, 0, 1, [FetchTopic("t", [asked])])
    return rig.call(request, sent_in=version).topics[0].partitions[0]


@pytest.mark.scenario("modern-50")
@pytest.mark.parametrize("version", [0, 1, 3, 5])
def test_the_log_begins_there_at_once(rig: Rig, version: int) -> None:
    partition = rig.lead()
    rig.append(*"abcdef")
    assert delete(rig, 4) == (4, 0)
    assert earliest(rig, version) == ([4] if version == 0 else 4)
    for fetched in (0, 2, 4, 11):
        assert fetch(rig, 3, fetched).error == OUT_OF_RANGE
        answer = fetch(rig, 4, fetched)
        assert answer.error == 0
        assert texts(answer.message_set)[-2:] == ["e", "f"]
    assert fetch(rig, 4).log_start_offset == 4
    partition.any_log().delete_old_segments()
    assert fetch(rig, 4).error == 0


def test_whole_segments_go_with_retention(rig: Rig) -> None:
    partition = rig.lead()
    for _ in range(7):
        rig.append("x" * 50)
    assert delete(rig, 5) == (5, 0)
    assert rig.logs.cleanup() == []
    assert partition.any_log().log_start_offset == 4
    assert delete(rig, -1) == (7, 0)
    rig.logs.cleanup()
    log = partition.any_log()
    assert (log.log_start_offset, log.size, earliest(rig, 5)) == (7, 0, 7)


def test_up_to_the_high_watermark(rig: Rig) -> None:
    rig.lead()
    rig.append(*"abc")
    assert delete(rig, -1) == (3, 0)
    assert fetch(rig, 3).error == 0
    assert earliest(rig, 0) == [3]
    assert delete(rig, 1) == (3, 0)  # nothing comes back


@pytest.mark.parametrize("offset", [4, 1 << 40, -2, -(1 << 63), (1 << 63) - 1])
def test_out_of_range(rig: Rig, offset: int) -> None:
    rig.lead()
    rig.append(*"abc")
    assert delete(rig, offset) == (-1, OUT_OF_RANGE)
    assert earliest(rig, 5) == 0


def test_what_is_refused(rig: Rig) -> None:
    rig.topic_settings["c"] = {"cleanup.policy": "compact"}
    rig.lead()
    rig.lead("c")
    rig.lead(OFFSETS_TOPIC)
    rig.follow("f")
    rig.know(partition_state("elsewhere"))
    found = delete(
        rig,
        0,
        *(("c", 0, 0), (OFFSETS_TOPIC, 0, 0), ("f", 0, 0)),
        *(("elsewhere", 0, 0), ("elsewhere", 1, 0), ("nowhere", 0, 0), ("t", -1, 0)),
    )
    assert {key: error for key, (_, error) in found.items()} == {
        ("t", 0): 0,
        ("c", 0): LaterCode.POLICY_VIOLATION,
        (OFFSETS_TOPIC, 0): INVALID_TOPIC,
        ("f", 0): NOT_LEADER,
        ("elsewhere", 0): NOT_LEADER,
        ("elsewhere", 1): UNKNOWN,
        ("nowhere", 0): UNKNOWN,
        ("t", -1): UNKNOWN,
    }


def test_inside_a_compressed_batch(rig: Rig) -> None:
    """The batch is sent as a whole; consumers skip what is below the offset that they asked for."""
    rig.lead()
    records = [(b"k", b"%d" % n, n, []) for n in range(4)]
    rig.produce(("t", 0, batch(records, codec=1, time=100)))
    assert delete(rig, 2) == (2, 0)
    assert fetch(rig, 1).error == OUT_OF_RANGE
    assert texts(fetch(rig, 2).message_set) == ["0", "1", "2", "3"]
    rig.append("next")
    assert texts(fetch(rig, 4).message_set) == ["next"]


def test_times_below_the_start_are_not_found(rig: Rig) -> None:
    rig.lead()
    for time in (10, 20, 30):
        records = [(b"k", b"v", 0, []), (b"k", b"v", 5, [])]
        rig.produce(("t", 0, batch(records, codec=1, time=time)))

    def since(time: int) -> tuple[int, int]:
        topics = [OffsetsTopic("t", [OffsetsPartition(0, time)])]
        found = rig.call(OffsetsRequest(-1, topics), sent_in=5).topics[0].partitions[0]
        return found.offset, found.timestamp

    assert since(0) == (0, 10)
    assert delete(rig, 2) == (2, 0)
    assert since(0) == since(20) == (2, 20)
    assert delete(rig, 3) == (3, 0)
    assert since(0) == since(25) == (3, 25)
    assert since(26) == (4, 30)


# Followers


def replicated(rig: Rig) -> Any:
    rig.know(partition_state(replicas=[ME, PEER]))
    partition = rig.lead(replicas=[ME, PEER])
    rig.append(*"abcd")
    fetch(rig, 4, 5, PEER, 0)
    assert partition.high_watermark == 4
    return partition


def test_live_followers_are_waited_for(rig: Rig) -> None:
    replicated(rig)
    told: list[int] = []

    def follow() -> None:
        told.append(fetch(rig, 4, 5, PEER, 0).log_start_offset)
        told.append(fetch(rig, 4, 5, PEER, told[0]).log_start_offset)

    rig.runtime.while_waiting = [follow]
    assert delete(rig, 3) == (3, 0)
    assert told == [3, 3]


def test_a_follower_that_does_not_delete_in_time(rig: Rig) -> None:
    replicated(rig)
    began = rig.clock.monotonic()
    assert delete(rig, 3, timeout_ms=700) == (0, TIMED_OUT)
    assert rig.clock.monotonic() - began == pytest.approx(0.7)
    assert fetch(rig, 2).error == OUT_OF_RANGE
    fetch(rig, 4, 5, PEER, 3)
    assert delete(rig, 3, timeout_ms=0) == (3, 0)


def test_a_follower_that_dies_meanwhile(rig: Rig) -> None:
    replicated(rig)
    rig.runtime.while_waiting = [lambda: rig.know(brokers=[BROKERS[0]])]
    assert delete(rig, 3) == (3, 0)


def test_leadership_that_is_lost_meanwhile(rig: Rig) -> None:
    replicated(rig)
    rig.runtime.while_waiting = [lambda: rig.follow()]
    assert delete(rig, 3) == (-1, NOT_LEADER)


def test_originals_cannot_be_told(rig: Rig) -> None:
    partition = replicated(rig)
    rig.replicas.follow_later(frozenset([ME]))
    fetch(rig, 4, 0, PEER)
    assert partition.remote[PEER].first_offset == -1
    assert delete(rig, 3) == (3, 0)
    assert earliest(rig, 0, PEER) == [0]
    assert texts(fetch(rig, 0, 0, PEER).message_set) == list("abcd")


def test_a_follower_that_has_not_told_yet_is_waited_for(rig: Rig) -> None:
    """It asks with Fetch 0 until it knows that this broker serves more."""
    replicated(rig)
    fetch(rig, 4, 0, PEER)
    assert delete(rig, 3, timeout_ms=100) == (-1, TIMED_OUT)


# Storage


def test_it_is_stored_before_the_answer(rig: Rig) -> None:
    rig.lead()
    rig.lead(partition=1)
    rig.append(*"abcd")
    assert delete(rig, 3, ("t", 1, 0)) == {("t", 0): (3, 0), ("t", 1): (0, 0)}
    path = rig.directory / "log-start-offset-checkpoint"
    assert path.read_text() == "0\n1\nt 0 3\n"


def test_a_disk_that_is_full(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.lead()
    rig.append(*"abcd")
    failures = [DiskFailure(str(rig.directory), OSError(28, "no space left"))]
    monkeypatch.setattr(rig.logs, "store_deletions", lambda logs: failures)
    assert delete(rig, 3) == (-1, LaterCode.KAFKA_STORAGE_ERROR)


def test_a_request_without_partitions(rig: Rig) -> None:
    assert rig.call(a.DeleteRecordsRequest([], 1000), sent_in=0).topics == []


def test_a_partition_that_is_named_twice(rig: Rig) -> None:
    rig.lead()
    rig.append(*"abcd")
    assert delete(rig, 3, ("t", 0, 2)) == {("t", 0): (2, 0)}
    assert THIRD not in rig.replicas.partitions[KEY].remote
