"""API 1: what consumers, debuggers and followers may read, and how long they wait for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.message.entry import encode_entry
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.protocol.schemas import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    StopReplicaPartition,
    StopReplicaRequest,
)
from tests.message.sets import has_absolute_offsets, wrapper
from tests.server.support import ME, PEER, THIRD, Rig, message_set, texts

T = ("t", 0)
LOTS = 1 << 20
NOTHING = b""


def read(rig: Rig, offset: int, replica_id: int = -1) -> tuple[int, int, list[str]]:
    error, hw, data = rig.fetch((*T, offset, LOTS), replica_id=replica_id)[T]
    return error, hw, texts(data)


def test_consumers_read_up_to_the_high_watermark_and_followers_all(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    rig.append("a", "b", "c")
    assert read(rig, 0, PEER) == (0, 0, ["a", "b", "c"])
    assert read(rig, 0) == (0, 0, [])
    assert read(rig, 2, PEER) == (0, 2, ["c"])
    assert read(rig, 0) == read(rig, 0, -2) == (0, 2, ["a", "b"])
    assert read(rig, 1) == (0, 2, ["b"])
    assert read(rig, 2) == (0, 2, [])
    assert read(rig, 2, -2) == (0, 2, [])


def test_between_high_watermark_and_log_end_there_is_nothing_yet(rig: Rig) -> None:
    """0.8.2.2 answers -1, which consumers take for a fault after a change of leader."""
    rig.lead(replicas=[ME, PEER])
    rig.append("a", "b", "c")
    assert read(rig, 1) == (0, 0, [])
    assert read(rig, 3) == (0, 0, [])


@pytest.mark.parametrize("replica_id", [-1, -2, PEER])
@pytest.mark.parametrize("offset", [-1, -(2**63), 2, 2**63 - 1])
def test_offsets_outside_the_log_are_1(rig: Rig, offset: int, replica_id: int) -> None:
    rig.lead(replicas=[ME, PEER], isr=[ME])
    rig.append("a")
    assert rig.fetch((*T, offset, LOTS), replica_id=replica_id) == {T: (1, -1, NOTHING)}


def test_sizes(rig: Rig) -> None:
    rig.lead()
    rig.append("a", "b")
    whole = rig.fetch((*T, 0, LOTS))[T][2]
    assert rig.fetch((*T, 0, 0)) == {T: (0, 2, NOTHING)}
    assert rig.fetch((*T, 0, -1)) == {T: (-1, -1, NOTHING)}
    for size in range(1, len(whole) + 1):
        assert rig.fetch((*T, 0, size)) == {T: (0, 2, whole[:size])}


def test_a_slice_never_leaves_its_segment(rig: Rig) -> None:
    rig.topic_settings["t"] = {"segment.bytes": "100"}
    rig.lead()
    for text in ("x" * 40, "y" * 40):
        rig.append(text)
    assert read(rig, 0) == (0, 2, ["x" * 40])
    assert read(rig, 1) == (0, 2, ["y" * 40])


def test_who_is_not_hosted_who_only_follows(rig: Rig) -> None:
    rig.follow()
    asked = ((*T, 0, LOTS), ("u", 0, 0, LOTS))
    for replica_id in (-1, PEER):
        answer = rig.fetch(*asked, replica_id=replica_id)
        assert {key: each[0] for key, each in answer.items()} == {T: 6, ("u", 0): 3}
    assert rig.fetch(*asked, replica_id=-2) == {
        T: (0, 0, NOTHING),
        ("u", 0): (9, -1, NOTHING),
    }


def test_a_follower_that_is_not_assigned_is_minus_1(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    for stranger in (THIRD, ME, 77):
        assert rig.fetch((*T, 0, LOTS), replica_id=stranger) == {T: (-1, -1, NOTHING)}


def test_a_partition_asked_for_twice_counts_once_the_last_time(rig: Rig) -> None:
    rig.lead()
    rig.append("a", "b")
    answer = rig.fetch((*T, 0, LOTS), (*T, 1, LOTS))
    assert texts(answer[T][2]) == ["b"]


def test_an_empty_request_gets_an_empty_reply_at_once(rig: Rig) -> None:
    assert rig.fetch(max_wait_ms=10_000, min_bytes=1) == {}


# Followers


def test_a_followers_position_moves_high_watermark_and_isr(rig: Rig) -> None:
    partition = rig.lead(replicas=[ME, PEER, THIRD], isr=[ME, PEER])
    rig.append("a", "b")
    read(rig, 1, PEER)
    assert partition.high_watermark == 1
    assert rig.effects.isr_changes == []
    read(rig, 0, THIRD)
    assert rig.effects.isr_changes == []
    read(rig, 1, THIRD)
    assert rig.effects.isr_changes == [partition]


def test_a_follower_that_reads_out_of_range_counts_as_unknown(rig: Rig) -> None:
    partition = rig.lead(replicas=[ME, PEER])
    rig.append("a")
    read(rig, 1, PEER)
    assert read(rig, 5, PEER)[0] == 1
    assert partition.remote[PEER].log_end_offset == -1


# Waiting


def wait(rig: Rig, *actions: Callable[[], Any], **asked: Any) -> tuple[dict[Any, Any], float]:
    """Fetch with time, ``actions`` happening meanwhile; the answer and how long it took."""
    before = rig.clock.now
    rig.runtime.while_waiting = list(actions)
    settings = {"max_wait_ms": 500, **asked}
    partitions = settings.pop("partitions", [(*T, 0, LOTS)])
    answer = rig.fetch(*partitions, **settings)
    assert rig.runtime.while_waiting == []
    return answer, rig.clock.now - before


def test_enough_bytes_are_answered_at_once(rig: Rig) -> None:
    rig.lead()
    rig.append("a")
    answer, took = wait(rig, min_bytes=len(message_set("a")))
    assert texts(answer[T][2]) == ["a"] and took == 0


@pytest.mark.parametrize("max_wait_ms", [0, -1])
def test_without_time_nobody_waits(rig: Rig, max_wait_ms: int) -> None:
    rig.lead()
    answer, took = wait(rig, max_wait_ms=max_wait_ms)
    assert answer == {T: (0, 0, NOTHING)} and took == 0


def test_min_bytes_0_never_waits(rig: Rig) -> None:
    rig.lead()
    assert wait(rig, min_bytes=0) == ({T: (0, 0, NOTHING)}, 0)


def test_time_runs_out(rig: Rig) -> None:
    rig.lead()
    answer, took = wait(rig)
    assert answer == {T: (0, 0, NOTHING)} and took == 0.5


def test_an_append_wakes_a_consumer(rig: Rig) -> None:
    rig.lead()
    answer, took = wait(rig, lambda: rig.append("a"))
    assert texts(answer[T][2]) == ["a"] and took == 0


def test_min_bytes_counts_all_partitions_together(rig: Rig) -> None:
    rig.lead()
    rig.lead(partition=1)
    answer, took = wait(
        rig,
        lambda: rig.append("a"),
        lambda: rig.append("b", partition=1),
        partitions=[(*T, 0, LOTS), ("t", 1, 0, LOTS)],
        min_bytes=2 * len(message_set("a")),
    )
    assert [texts(answer[key][2]) for key in sorted(answer)] == [["a"], ["b"]]
    assert took == 0


def test_too_few_bytes_are_answered_when_time_is_up(rig: Rig) -> None:
    rig.lead()
    answer, took = wait(rig, lambda: rig.append("a"), lambda: None, min_bytes=1000)
    assert texts(answer[T][2]) == ["a"] and took == 0.5


def test_consumers_wake_for_the_high_watermark_not_for_appends(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])

    def replicate() -> None:
        rig.append("a")
        assert len(rig.replicas.fetch_purgatory) == 1
        rig.fetch((*T, 1, LOTS), replica_id=PEER)

    answer, took = wait(rig, replicate)
    assert texts(answer[T][2]) == ["a"] and took == 0
    answer, took = wait(rig, lambda: rig.append("b"), partitions=[(*T, 1, LOTS)])
    assert answer == {T: (0, 1, NOTHING)} and took == 0.5


def test_followers_wake_for_appends(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    answer, took = wait(rig, lambda: rig.append("a"), replica_id=PEER)
    assert texts(answer[T][2]) == ["a"] and took == 0


def test_followers_hear_of_a_new_high_watermark_when_they_ask_next(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER, THIRD])
    rig.append("a")
    rig.fetch((*T, 1, LOTS), replica_id=PEER)
    answer, _ = wait(
        rig,
        lambda: rig.fetch((*T, 1, LOTS), replica_id=THIRD),
        lambda: None,
        partitions=[(*T, 1, LOTS)],
        replica_id=PEER,
    )
    assert answer == {T: (0, 1, NOTHING)}


def test_any_error_is_answered_at_once(rig: Rig) -> None:
    rig.lead()
    answer, took = wait(rig, partitions=[(*T, 0, LOTS), ("u", 0, 0, LOTS)])
    assert answer == {T: (0, 0, NOTHING), ("u", 0): (3, -1, NOTHING)} and took == 0


def test_lost_leadership_ends_the_wait(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    for replica_id in (-1, PEER):
        answer, took = wait(rig, rig.follow, replica_id=replica_id)
        assert answer == {T: (6, -1, NOTHING)} and took == 0
        rig.lead(replicas=[ME, PEER])


@pytest.mark.parametrize("is_next", [True, False])
def test_a_fetch_that_waits_is_no_position_in_the_next_leadership(rig: Rig, is_next: bool) -> None:
    """The replica may have been removed meanwhile, and made again without its log."""
    rig.lead(replicas=[ME, PEER], isr=[ME])
    rig.append("a")

    def go_on() -> None:
        if is_next:
            rig.lead(replicas=[ME, PEER], isr=[ME])
        rig.append("b")

    answer, _ = wait(rig, go_on, partitions=[(*T, 1, LOTS)], replica_id=PEER)
    assert texts(answer[T][2]) == ["b"]
    partition = rig.replicas.partitions[TopicPartition(*T)]
    assert partition.remote[PEER].log_end_offset == (-1 if is_next else 1)


def test_a_removed_replica_ends_the_wait(rig: Rig) -> None:
    rig.lead()
    stop = StopReplicaRequest(9, 1, True, [StopReplicaPartition(*T)])
    answer, took = wait(rig, lambda: rig.call(stop))
    assert answer == {T: (3, -1, NOTHING)} and took == 0


def test_bytes_that_end_with_an_older_segment_are_answered_at_once(rig: Rig) -> None:
    rig.topic_settings["t"] = {"segment.bytes": "100"}
    rig.lead()
    for text in ("x" * 40, "y" * 40):
        rig.append(text)
    answer, took = wait(rig, min_bytes=LOTS)
    assert texts(answer[T][2]) == ["x" * 40] and took == 0


def test_closing_answers_who_waits(rig: Rig) -> None:
    rig.lead()
    answer, took = wait(rig, rig.replicas.close)
    assert answer == {T: (0, 0, NOTHING)} and took <= 0.5
    assert len(rig.replicas.fetch_purgatory) == 0


# Wrapped sets


def test_wrappers_are_right_for_consumers_and_verbatim_for_followers(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER], isr=[ME])
    rig.append("first")
    sent = wrapper(message_set("a", "b", "c"), 1)
    assert rig.produce((*T, sent)) == {T: (0, 1)}
    for replica_id in (-1, -2):
        data = rig.fetch((*T, 1, LOTS), replica_id=replica_id)[T][2]
        assert [(m.offset, m.value) for m in iter_messages(data)] == [
            (1, b"a"), (2, b"b"), (3, b"c"),
        ]  # fmt: skip
        assert has_absolute_offsets(data)
    stored = rig.fetch((*T, 1, LOTS), replica_id=PEER)[T][2]
    assert bytes(stored[8:]) == sent[8:]  # only the wrapper's own offset is set
    assert next(iter_entries(stored)).offset == 3


def test_an_offset_inside_a_wrapper_gives_the_whole_wrapper(rig: Rig) -> None:
    rig.lead()
    rig.produce((*T, wrapper(message_set("a", "b", "c"), 2)))
    assert read(rig, 2) == (0, 3, ["a", "b", "c"])


def test_a_rebuilt_slice_keeps_to_the_size_past_its_first_entry(rig: Rig) -> None:
    rig.lead()
    for _ in range(4):
        rig.produce((*T, wrapper(message_set(*"abcdefgh"), 1)))
    sizes = [entry.size_total for entry in iter_entries(rig.fetch((*T, 8, LOTS))[T][2])]
    assert len(texts(rig.fetch((*T, 8, sizes[0] + 10))[T][2])) == 8
    assert len(texts(rig.fetch((*T, 8, sum(sizes[:2])))[T][2])) == 16


def test_plain_entries_among_wrappers(rig: Rig) -> None:
    rig.lead()
    rig.append("p")
    rig.produce((*T, wrapper(message_set("a", "b"), 3) + encode_entry(b"k", b"q")))
    data = rig.fetch((*T, 0, LOTS))[T][2]
    assert [(m.offset, m.value) for m in iter_messages(data)] == [
        (0, b"p"), (1, b"a"), (2, b"b"), (3, b"q"),
    ]  # fmt: skip
    assert texts(rig.fetch((*T, 3, LOTS))[T][2]) == ["q"]


# Trouble


def test_an_error_of_ours_is_minus_1(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.lead()
    rig.append("a", "b", "c")

    def broken(*args: Any) -> None:
        raise OSError("as told")

    monkeypatch.setattr(os, "pread", broken)
    assert rig.fetch((*T, 1, LOTS)) == {T: (-1, -1, NOTHING)}
    monkeypatch.setattr(rig.clock, "monotonic", broken)
    assert rig.fetch((*T, 0, LOTS), ("u", 1, 0, 0)) == {
        T: (-1, -1, NOTHING),
        ("u", 1): (-1, -1, NOTHING),
    }


def test_a_higher_version_gets_the_layout_of_0(rig: Rig) -> None:
    rig.lead()
    request = FetchRequest(-1, 0, 0, [FetchTopic("t", [FetchPartition(0, 0, 10)])])
    assert rig.call(request, version=1) == ([("t", [(0, 0, 0, b"")])],)
