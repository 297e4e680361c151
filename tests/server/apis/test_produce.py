"""API 0: what is appended, what is refused, and when the reply goes out."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry
from kafka08.message.sets import encode_set
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.schemas import (
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
    StopReplicaPartition,
    StopReplicaRequest,
)
from tests.message.sets import set_byte
from tests.server.support import ME, PEER, THIRD, Rig, message_set, texts

T = ("t", 0)
ALL = [ME, PEER, THIRD]


def leo(rig: Rig, topic: str = "t", partition: int = 0) -> int:
    return rig.replicas.partitions[TopicPartition(topic, partition)].any_log().log_end_offset


def followers_have(rig: Rig, offset: int, *ids: int) -> None:
    for follower in ids:
        rig.fetch(("t", 0, offset, 0), replica_id=follower)


def test_sets_get_consecutive_offsets(rig: Rig) -> None:
    rig.lead()
    assert rig.produce((*T, message_set("a", "b"))) == {T: (0, 0)}
    assert rig.produce((*T, message_set("c", base_offset=17))) == {T: (0, 2)}
    assert leo(rig) == 3


def test_a_partition_named_twice_counts_once_the_last_time(rig: Rig) -> None:
    rig.lead()
    assert rig.produce((*T, message_set("first")), (*T, message_set("last"))) == {T: (0, 0)}
    assert texts(rig.fetch((*T, 0, 1000))[T][2]) == ["last"]


def test_an_empty_request_gets_an_empty_reply(rig: Rig) -> None:
    for acks in (1, -1, 2):
        assert rig.call(ProduceRequest(acks, 1000, [])) == ([],)


@pytest.mark.parametrize("data", [b"", message_set("a")[:-1], b"\0" * 11])
def test_without_a_whole_entry_nothing_happens(rig: Rig, data: bytes) -> None:
    rig.lead()
    for acks in (1, -1):
        assert rig.produce((*T, data), acks=acks) == {T: (0, -1)}
    assert leo(rig) == 0


def test_a_cut_last_entry_is_dropped(rig: Rig) -> None:
    rig.lead()
    assert rig.produce((*T, message_set("a", "b") + message_set("c")[:-1])) == {T: (0, 0)}
    assert leo(rig) == 2


def entry(size: int) -> bytes:
    return struct.pack(">qi", 0, size) + b"\0" * max(size, 14)


BAD_SETS = {
    "crc": (set_byte(message_set("a"), 20, 7), 2),
    "size 13": (entry(13), 2),
    "size 0": (entry(0), 2),
    "size -1": (entry(-1), 2),
    "too large": (message_set("x" * 200), 10),
    "second entry": (message_set("a") + set_byte(message_set("b"), -1, 0), 2),
    "codec 4": (set_byte(message_set("a"), 17, 4, right_crc=True), -1),
    "codec 7": (set_byte(message_set("a"), 17, 7, right_crc=True), -1),
    "gzip of nothing known": (encode_entry(None, b"no gzip", 0, 1), -1),
    "snappy of nothing known": (encode_entry(None, b"\xff\xff\xff\xff\xff", 0, 2), -1),
    "lz4 of nothing known": (encode_entry(None, b"no lz4", 0, 3), -1),
    "an empty value": (encode_entry(None, b"", 0, 2), -1),
    "an inner entry too small": (encode_entry(None, compress(1, entry(5)), 0, 1), 2),
}


@pytest.mark.parametrize("name", BAD_SETS)
def test_a_bad_set_is_refused_as_a_whole(make_rig: Callable[..., Rig], name: str) -> None:
    data, code = BAD_SETS[name]
    rig = make_rig(message_max_bytes=100)
    rig.lead()
    rig.lead(partition=1)
    assert rig.produce((*T, bytes(data)), ("t", 1, message_set("good"))) == {
        T: (code, -1),
        ("t", 1): (0, 0),
    }
    assert leo(rig) == 0
    with pytest.raises(ConnectionClosed):
        rig.produce((*T, bytes(data)), ("t", 1, message_set("good")), acks=0)
    assert (leo(rig), leo(rig, "t", 1)) == (0, 2)


def test_a_bomb_is_refused(rig: Rig) -> None:
    rig.lead()
    bomb = compress(1, message_set("x" * (1 << 20)) * 300)
    assert len(bomb) < 1_000_000
    assert rig.produce((*T, encode_entry(None, bomb, 0, 1))) == {T: (10, -1)}
    assert leo(rig) == 0


def test_a_set_larger_than_a_segment_is_18(rig: Rig) -> None:
    rig.topic_settings["t"] = {"segment.bytes": "100"}
    rig.lead()
    assert rig.produce((*T, message_set("x" * 40, "y" * 40))) == {T: (18, -1)}
    assert rig.produce((*T, message_set("x" * 40))) == {T: (0, 0)}


def test_a_rolled_segment_is_told(rig: Rig) -> None:
    rig.topic_settings["t"] = {"segment.bytes": "100"}
    partition = rig.lead()
    rig.append("x" * 40)
    assert rig.effects.logs_rolled == []
    rig.append("y" * 40)
    assert rig.effects.logs_rolled == [partition.log]


def test_topics_that_are_not_hosted_here_are_not_created(rig: Rig) -> None:
    rig.lead()
    assert rig.produce(("u", 0, message_set("a")), ("t", 1, message_set("a"))) == {
        ("u", 0): (3, -1),
        ("t", 1): (3, -1),
    }
    assert set(rig.logs.logs) == {TopicPartition("t", 0)}


def test_a_follower_refuses(rig: Rig) -> None:
    rig.follow()
    assert rig.produce((*T, message_set("a"))) == {T: (6, -1)}


def test_the_offsets_topic_is_not_for_producers(rig: Rig) -> None:
    rig.lead(OFFSETS_TOPIC)
    key = (OFFSETS_TOPIC, 0)
    assert rig.produce((*key, message_set("a"))) == {key: (17, -1)}
    assert leo(rig, *key) == 0


# Acknowledgements


@pytest.mark.scenario("modern-14")
def test_acks_0_is_silent(rig: Rig) -> None:
    rig.lead()
    assert rig.produce((*T, message_set("a")), acks=0) is None
    assert leo(rig) == 1


def test_acks_0_closes_over_any_failure_after_appending_the_rest(rig: Rig) -> None:
    rig.lead()
    with pytest.raises(ConnectionClosed):
        rig.produce(("u", 0, message_set("a")), (*T, message_set("a")), acks=0)
    assert leo(rig) == 1


def test_acks_1_waits_for_nobody(rig: Rig) -> None:
    rig.lead(replicas=ALL)
    before = rig.clock.now
    assert rig.produce((*T, message_set("a")), acks=1) == {T: (0, 0)}
    assert rig.clock.now == before


def test_acks_all_waits_for_the_whole_isr(rig: Rig) -> None:
    rig.lead(replicas=ALL)
    before = rig.clock.now
    seen: list[int] = []

    def follow(follower: int) -> Callable[[], None]:
        def step() -> None:
            followers_have(rig, 1, follower)
            seen.append(follower)

        return step

    rig.runtime.while_waiting = [follow(PEER), follow(THIRD)]
    assert rig.produce((*T, message_set("a")), acks=-1) == {T: (0, 0)}
    assert seen == [PEER, THIRD]
    assert rig.clock.now == before


def test_acks_by_number_wait_for_that_many_of_the_isr(rig: Rig) -> None:
    rig.lead(replicas=ALL)
    rig.runtime.while_waiting = [lambda: followers_have(rig, 1, THIRD)]
    assert rig.produce((*T, message_set("a")), acks=2) == {T: (0, 0)}
    assert rig.replicas.partitions[TopicPartition(*T)].high_watermark == 0


def test_late_acks_are_7_and_the_data_stays(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    rig.lead(partition=1)
    before = rig.clock.now
    answer = rig.produce(
        (*T, message_set("a")), ("t", 1, message_set("a")), acks=-1, timeout_ms=250
    )
    assert answer == {T: (7, 0), ("t", 1): (0, 0)}
    assert rig.clock.now == before + 0.25
    assert leo(rig) == 1


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_acks_expire_at_once(rig: Rig, timeout_ms: int) -> None:
    rig.lead(replicas=[ME, PEER])
    before = rig.clock.now
    assert rig.produce((*T, message_set("a")), acks=-1, timeout_ms=timeout_ms) == {T: (7, 0)}
    assert rig.clock.now == before


def test_alone_in_the_isr_acks_all_are_there_at_once(rig: Rig) -> None:
    rig.lead(replicas=ALL, isr=[ME])
    for acks in (-1, -5, 1):
        answer = rig.produce((*T, message_set("a")), acks=acks, timeout_ms=0)
        assert answer is not None and answer[T][0] == 0


def test_if_all_partitions_failed_nobody_waits(rig: Rig) -> None:
    rig.follow()
    before = rig.clock.now
    assert rig.produce((*T, message_set("a")), ("u", 0, b""), acks=-1) == {
        T: (6, -1),
        ("u", 0): (3, -1),
    }
    assert rig.clock.now == before


@pytest.mark.scenario("modern-14")
def test_lost_leadership_ends_the_wait_with_6(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    rig.runtime.while_waiting = [rig.follow]
    assert rig.produce((*T, message_set("a")), acks=-1) == {T: (6, 0)}


def test_a_removed_replica_ends_the_wait_with_6(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    stop = StopReplicaRequest(9, 1, True, [StopReplicaPartition(*T)])
    rig.runtime.while_waiting = [lambda: rig.call(stop)]
    assert rig.produce((*T, message_set("a")), acks=-1) == {T: (6, 0)}


def test_too_few_in_sync_replicas(rig: Rig) -> None:
    rig.topic_settings["t"] = {"min.insync.replicas": "2"}
    rig.lead(replicas=[ME, PEER], isr=[ME])
    assert rig.produce((*T, message_set("a")), acks=-1) == {T: (19, -1)}
    assert leo(rig) == 0
    assert rig.produce((*T, message_set("a")), acks=1) == {T: (0, 0)}
    # below -1 there is no look before the append, only after it
    assert rig.produce((*T, message_set("a")), acks=-2) == {T: (20, 1)}
    assert leo(rig) == 2


def test_an_isr_that_shrinks_meanwhile_is_20(rig: Rig) -> None:
    rig.topic_settings["t"] = {"min.insync.replicas": "2"}
    partition = rig.lead(replicas=[ME, PEER])

    def shrink() -> None:
        if partition.commit_isr(partition.propose_isr((ME,)), 1):
            rig.replicas.unblock_delayed_requests(partition.topic_partition)

    rig.runtime.while_waiting = [shrink]
    assert rig.produce((*T, message_set("a")), acks=-1) == {T: (20, 0)}
    assert leo(rig) == 1


def test_the_brokers_own_min_insync_replicas_counts(make_rig: Callable[..., Rig]) -> None:
    """Not so in 0.8.2.2 (KAFKA-2114)."""
    rig = make_rig(min_insync_replicas=2)
    rig.lead()
    assert rig.produce((*T, message_set("a")), acks=-1) == {T: (19, -1)}


def test_while_zookeeper_is_away_only_lone_replicas_are_written(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    rig.lead(partition=1)
    rig.replicas.fence(True)
    assert rig.produce((*T, message_set("a")), ("t", 1, message_set("a"))) == {
        T: (6, -1),
        ("t", 1): (0, 0),
    }


def test_a_fence_ends_the_wait(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER, THIRD], isr=[ME, PEER])  # THIRD may be elected uncleanly
    rig.runtime.while_waiting = [lambda: rig.replicas.fence(True)]
    assert rig.produce((*T, message_set("a")), acks=-1) == {T: (6, 0)}


def test_while_zookeeper_is_away_the_whole_isr_still_acknowledges(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    rig.replicas.fence(True)
    # No fetch of the follower, no acknowledgement: it may lead by now.
    assert rig.produce((*T, message_set("a")), acks=-1) == {T: (7, 0)}
    rig.runtime.while_waiting = [lambda: rig.fetch(("t", 0, 2, 0), replica_id=PEER)]
    assert rig.produce((*T, message_set("b")), acks=-1) == {T: (0, 1)}
    for acks in (1, 2):
        assert rig.produce((*T, message_set("c")), acks=acks) == {T: (6, -1)}
    assert leo(rig) == 2


def test_an_error_of_ours_is_minus_1(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.lead()

    def broken(*args: Any) -> None:
        raise RuntimeError("as told")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", broken)
        assert rig.produce((*T, message_set("a"))) == {T: (-1, -1)}
    monkeypatch.setattr(rig.clock, "monotonic", broken)
    assert rig.produce((*T, message_set("a")), ("u", 3, b""), acks=-1) == {
        T: (-1, -1),
        ("u", 3): (-1, -1),
    }


def test_another_version_is_answered_alike(rig: Rig) -> None:
    rig.lead()
    data = memoryview(message_set("a"))
    request = ProduceRequest(1, 0, [ProduceTopic("t", [ProducePartition(0, data)])])
    assert rig.call(request, version=2) == ([("t", [(0, 0, 0)])],)


@pytest.mark.scenario("modern-15")
@pytest.mark.parametrize("codec", [0, 2])
def test_a_compacted_topic_takes_no_message_without_a_key(
    rig: Rig, codec: int, caplog: pytest.LogCaptureFixture
) -> None:
    rig.topic_settings["t"] = {"cleanup.policy": "compact"}
    rig.lead()
    keyed, keyless = (encode_set([(b"k", b"v"), (key, b"v")], codec) for key in (b"k", None))
    assert rig.produce((*T, keyed)) == {T: (0, 0)}
    assert rig.produce((*T, keyless)) == {T: (2, -1)}
    assert rig.produce((*T, keyed + keyless)) == {T: (2, -1)}
    assert leo(rig) == 2
    assert "[t,0] is compacted and takes no message without a key" in caplog.messages[-1]
    rig.lead("other")
    assert rig.produce(("other", 0, keyless)) == {("other", 0): (0, 0)}


def test_a_follower_takes_what_its_leader_has(rig: Rig) -> None:
    rig.topic_settings["t"] = {"cleanup.policy": "compact"}
    log = rig.follow().any_log()
    log.append(memoryview(bytearray(message_set("keyless"))), assign_offsets=False)
    assert log.log_end_offset == 1
