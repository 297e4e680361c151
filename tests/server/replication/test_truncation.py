"""Where followers cut their logs: after a comparison with the leader's bytes, and out of range."""

from __future__ import annotations

import os
from typing import Any

import pytest

from kafka08.log.disk import is_full
from kafka08.message.entry import encode_entry
from kafka08.protocol.schemas import OffsetsRequest
from tests.log.support import everything, no_room_for_files, no_room_to_grow, no_space
from tests.message.sets import wrapper
from tests.server.replication.pair import LeaderAndFollower, Make, T
from tests.server.support import ME, PEER, message_set

# Comparing before cutting


def test_a_common_tail_above_the_high_watermark_is_kept(pair: LeaderAndFollower) -> None:
    for data in (message_set("a", "b"), message_set("c")):
        pair.leader.produce(("t", 0, data))
    pair.alone(message_set("a", "b"), message_set("c"))
    assert pair.copy.high_watermark == 0
    pair.follow()
    pair.steps(1)
    assert pair.log.log_end_offset == 3 and pair.truncated == 0
    pair.steps(1)
    assert pair.asked() == [0, 3]
    assert pair.copy.high_watermark == 3


def test_a_tail_that_differs_is_cut_where_it_does(pair: LeaderAndFollower) -> None:
    for texts in (("a", "b"), ("c",), ("d",)):
        pair.leader.append(*texts)
    pair.alone(message_set("a", "b"), message_set("X"), message_set("Y"), message_set("Z"))
    pair.follow()
    pair.steps(1)
    assert pair.log.log_end_offset == 2
    assert pair.truncated == 1  # the recovery point must reach the disk
    pair.steps(1)
    assert pair.same()


def test_a_cut_is_on_disk_before_anything_is_appended_behind_it(pair: LeaderAndFollower) -> None:
    """A power cut brings the old end back otherwise, and the high watermark may be above it then:
    this copy would keep it, and lead with it (found by the simulation)."""
    for texts in (("a", "b"), ("c",)):
        pair.leader.append(*texts)
    pair.alone(message_set("a", "b"), message_set("X"))
    pair.follow()
    assert pair.log.recovery_point == 0
    pair.steps(1)
    assert (pair.log.log_end_offset, pair.log.recovery_point) == (2, 2)
    pair.steps(1)
    assert pair.same()
    assert pair.log.recovery_point == 2  # appends are synced as ever


def test_what_is_cut_on_a_full_disk_is_not_compared_again(pair: LeaderAndFollower) -> None:
    """Nothing is left there to compare: every answer would be set aside as not whole."""
    for text in "abc":
        pair.leader.append(text)
    pair.alone(message_set("a"), message_set("X"), message_set("Y"))
    pair.follow()
    with no_room_to_grow():
        pair.steps(1)
    assert [is_full(each.error) for each in pair.errors] == [True]
    assert pair.log.log_end_offset == 1
    pair.follower.clock.now += 1.0
    pair.steps(1)
    assert pair.same()


def test_what_cannot_be_cut_is_compared_again(
    pair: LeaderAndFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.leader.append("a")
    pair.alone(message_set("X"))
    pair.follow()
    with monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", no_space)
        pair.steps(1)
    assert (pair.log.log_end_offset, pair.truncated) == (1, 0)
    pair.follower.clock.now += 1.0
    pair.steps(2)
    assert pair.same()


def test_an_entry_longer_than_all_the_leader_has_is_cut(pair: LeaderAndFollower) -> None:
    pair.leader.append("a")
    pair.leader.append("b")
    pair.alone(message_set("a"), message_set("longer than that" * 10))
    pair.follow()
    pair.steps(2)
    assert pair.same()


def test_a_tail_beyond_the_leaders_end_is_cut(pair: LeaderAndFollower) -> None:
    pair.leader.append("a")
    pair.alone(message_set("a"), message_set("b"))
    pair.follow()
    pair.steps(2)
    assert pair.log.log_end_offset == 1 and pair.truncated == 1
    assert pair.same()


def test_while_comparing_the_leader_is_told_only_what_is_sure(pair: LeaderAndFollower) -> None:
    """Else it would count records that are about to be cut."""
    pair.leader.append("a", "b")
    pair.alone(message_set("X", "Y"))
    pair.follow()
    pair.steps(1)
    assert pair.asked() == [0]
    assert pair.leader.replicas.partitions[T].high_watermark == 0
    pair.steps(1)
    assert pair.same()


def test_comparing_goes_on_where_a_fetch_ended(make_pair: Make) -> None:
    pair = make_pair()
    pair.leader.lead(replicas=[ME, PEER], isr=[ME])
    sets = [message_set(text * 30) for text in "abcdef"]
    for data in sets:
        pair.leader.produce(("t", 0, data))
    pair.alone(*sets[:5], message_set("X" * 30))
    pair.follow()

    def short(answer: Any) -> Any:
        topic = answer.topics[0]
        part = topic.partitions[0]
        part = part._replace(message_set=part.message_set[:150])
        return answer._replace(topics=[topic._replace(partitions=[part])])

    pair.channel.change = short
    pair.steps(1)
    assert pair.leader.replicas.partitions[T].high_watermark == 6
    assert pair.copy.high_watermark == 2  # the rest of the tail may still differ
    pair.steps(2)
    assert pair.asked() == [0, 2, 4]
    assert pair.log.log_end_offset == 5  # cut at X
    pair.steps(1)
    assert pair.same()


def entries(*items: tuple[int, str]) -> bytes:
    return b"".join([encode_entry(b"k", text.encode(), offset) for offset, text in items])


@pytest.fixture
def compacted(make_pair: Make) -> LeaderAndFollower:
    """The leader has cleaned its offsets 1 to 4."""
    pair = make_pair(replica_fetch_max_bytes=100, message_max_bytes=100)
    pair.leader.topic_settings["t"] = {"cleanup.policy": "compact"}
    pair.follower.topic_settings["t"] = {"cleanup.policy": "compact"}
    pair.leader.lead(replicas=[ME, PEER], isr=[ME])
    leading = pair.leader.replicas.partitions[T]
    leading.any_log().append(entries((0, "a"), (5, "f")), assign_offsets=False)
    leading.maybe_increment_leader_hw()
    return pair


def test_a_tail_that_the_leader_has_cleaned_or_never_had_is_cut(
    compacted: LeaderAndFollower,
) -> None:
    """Nothing tells which: else it stayed, below the high watermark, on this replica alone."""
    compacted.alone(*(entries((0, text)) for text in ("a", "X" * 60, "Y" * 60)))
    compacted.follow()
    ends = []
    for _ in range(4):
        compacted.steps(1)
        ends.append((compacted.log.log_end_offset, compacted.copy.high_watermark))
    assert ends == [(3, 1), (3, 1), (1, 1), (6, 6)]
    assert compacted.asked() == [0, 1, 2, 1]
    assert compacted.same()


def test_what_the_leader_has_cleaned_before_a_common_message_is_kept(
    compacted: LeaderAndFollower,
) -> None:
    """It was committed, and what comes behind it may be needed here before it is copied again."""
    compacted.alone(*(entries((0, text)) for text in "abcdef"))
    compacted.follow()
    compacted.steps(3)
    assert compacted.truncated == 0
    assert [text for _, text in everything(compacted.log)] == list("abcdef")
    assert compacted.copy.high_watermark == 6


def test_behind_the_leaders_end_a_tail_is_cut_where_it_parts_too(
    compacted: LeaderAndFollower,
) -> None:
    compacted.alone(entries((0, "a")))
    compacted.log.append(entries((1, "X"), (2, "Y"), (7, "Z")), assign_offsets=False)
    compacted.follow()
    compacted.steps(4)
    assert compacted.asked() == [0, 3, 6, 1]
    assert compacted.same()


def test_a_gap_at_the_end_of_the_log_is_cut(pair: LeaderAndFollower) -> None:
    """A wrapper goes as a whole: nothing can be compared then."""
    pair.leader.append("x")
    pair.alone(wrapper(message_set("a", "b"), 1))
    pair.log.truncate_to(1)
    assert pair.log.size == 0
    pair.follow()
    pair.steps(2)
    assert pair.same()


def test_retention_may_delete_what_is_to_be_compared(pair: LeaderAndFollower) -> None:
    for data in (message_set("a"), message_set("b")):
        pair.leader.produce(("t", 0, data))
    pair.alone(message_set("a"), message_set("b"))
    pair.follow()
    pair.log.config = pair.log.config.replace(retention_bytes=0)
    assert pair.log.delete_old_segments() == 1
    pair.steps(1)
    pair.leader.append("c")
    pair.steps(1)
    assert pair.asked() == [2, 2]
    assert everything(pair.log) == [(2, "c")]


# Out of range


def behind(pair: LeaderAndFollower) -> None:
    """The leader has deleted what would come next."""
    pair.leader.append(*"abc")
    log = pair.leader.replicas.partitions[T].any_log()
    log.truncate_fully_and_start_at(10)
    pair.leader.append("k")
    pair.alone(message_set("a"))
    pair.copy.high_watermark = 1
    pair.follow()


def test_a_follower_behind_the_leaders_start_starts_over_there(pair: LeaderAndFollower) -> None:
    behind(pair)
    pair.steps(1)
    assert (pair.log.log_start_offset, pair.log.log_end_offset) == (10, 10)
    assert pair.truncated == 1
    times = [
        r.topics[0].partitions[0].time
        for r in pair.channel.requests
        if isinstance(r, OffsetsRequest)
    ]
    assert times == [-1, -2]
    assert all(r.replica_id == PEER for r in pair.channel.requests)
    pair.steps(1)
    assert pair.same()


def test_on_a_full_disk_it_is_empty_until_there_is_room(pair: LeaderAndFollower) -> None:
    behind(pair)
    with no_room_for_files():
        pair.steps(1)
    assert (pair.log.log_end_offset, pair.copy.high_watermark) == (0, 0)
    assert [is_full(each.error) for each in pair.errors] == [True]
    pair.follower.clock.now += 1.0
    pair.steps(2)
    assert pair.same()


def ahead(pair: LeaderAndFollower) -> None:
    """The follower has committed more than the leader has: an unclean election."""
    pair.leader.append("a")
    pair.alone(message_set("a"), message_set("b"), message_set("c"))
    pair.copy.high_watermark = 3
    pair.follow()


def test_a_follower_ahead_of_its_leader_truncates(pair: LeaderAndFollower) -> None:
    ahead(pair)
    pair.steps(1)
    assert pair.log.log_end_offset == 1 and pair.truncated == 1
    assert pair.copy.high_watermark == 1  # or a leader to be would acknowledge what nobody has
    pair.steps(1)
    assert pair.same()


def test_where_unclean_election_is_off_it_stays_out_instead(make_pair: Make) -> None:
    pair = make_pair(unclean_leader_election_enable="false")
    ahead(pair)
    pair.steps(1)
    assert pair.log.log_end_offset == 3 and pair.truncated == 0
    assert len(pair.fetcher) == 0


@pytest.mark.parametrize(("left", "committed"), [((), 1), ((), 3), (("x",), 1)])
def test_a_log_that_begins_above_its_leaders_end_starts_over(
    make_pair: Make, left: tuple[str, ...], committed: int
) -> None:
    """Retention has removed all that was committed, and more than that."""
    pair = make_pair(unclean_leader_election_enable="false")
    pair.leader.append("a")
    pair.alone()
    pair.log.truncate_fully_and_start_at(3)
    pair.alone(*[message_set(each) for each in left])
    pair.copy.high_watermark = committed
    pair.follow()
    pair.steps(2)
    assert pair.same()
    pair.leader.append("b")
    pair.steps(1)
    assert pair.same()


@pytest.mark.parametrize("time", [-1, -2])
def test_who_leads_by_now_cuts_nothing(pair: LeaderAndFollower, time: int) -> None:
    if time == -1:
        ahead(pair)
    else:
        pair.leader.replicas.partitions[T].any_log().truncate_fully_and_start_at(10)
        pair.alone(message_set("a"), message_set("b"), message_set("c"))
        pair.copy.high_watermark = 3
        pair.follow()

    def elected(request: Any) -> None:
        if isinstance(request, OffsetsRequest) and request.topics[0].partitions[0].time == time:
            pair.fetcher.remove([T])

    pair.channel.before_answer = elected
    pair.steps(1)
    assert pair.log.log_end_offset == 3 and pair.truncated == 0


def test_a_leader_that_cannot_say_sets_the_partition_aside(pair: LeaderAndFollower) -> None:
    ahead(pair)

    def away(request: Any) -> None:
        if isinstance(request, OffsetsRequest):
            raise ConnectionResetError("as told")

    pair.channel.before_answer = away
    pair.steps(1)
    assert pair.log.log_end_offset == 3 and len(pair.fetcher) == 1
    pair.channel.before_answer = lambda request: None
    pair.follower.clock.now += 1.0
    pair.steps(2)
    assert pair.same()
