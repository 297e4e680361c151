"""Followers: copying, comparing before cutting, what is out of range, one bad partition alone."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.log.disk import DiskFailure, is_full
from kafka08.message.entry import encode_entry
from kafka08.protocol.schemas import FetchPartition, FetchRequest, FetchTopic, OffsetsRequest
from kafka08.server.quotas.replication import ReplicationQuota
from kafka08.server.replication.fetchers import Following, ReplicaFetcher, ReplicaFetcherManager
from tests.log.support import everything, no_room_for_files
from tests.message.sets import wrapper
from tests.server.support import ME, PEER, Rig, message_set

T = TopicPartition("t", 0)
LEADER = Broker(ME, "leader", 9092)


class ChannelTo:
    """network.channel.Channel straight into the leader's handlers."""

    def __init__(self, leader: Rig) -> None:
        self.leader = leader
        self.requests: list[Any] = []
        self.versions: list[int] = []
        self.error: Exception | None = None
        self.before_answer: Callable[[Any], None] = lambda request: None
        self.change: Callable[[Any], Any] = lambda response: response
        self.closed = 0

    def call(self, request: Any, version: int = 0) -> Any:
        self.requests.append(request)
        self.versions.append(version)
        if self.error is not None:
            raise self.error
        answer = self.leader.call(request, sent_in=version)
        self.before_answer(request)
        return self.change(answer)

    def close(self) -> None:
        self.closed += 1


class LeaderAndFollower:
    """A leader (broker 1) and a follower (broker 2) of t-0, and the fetcher between them."""

    def __init__(self, directory: Path, *, later: bool = False, **settings: Any) -> None:
        self.settings = {"broker_id": PEER, **settings}
        self.leader = Rig(directory / "leader", later=later)
        self.follower = Rig(directory / "follower", **self.settings)
        self.quota = ReplicationQuota(self.follower.clock, seconds=1)
        self.channel = ChannelTo(self.leader)
        self.errors: list[DiskFailure] = []
        self.truncated = 0
        self._checkpoint = self.follower.logs.checkpoint_recovery_points
        self.follower.logs.checkpoint_recovery_points = self._checkpointed  # type: ignore[method-assign]
        self.fetcher = ReplicaFetcher(
            "fetcher",
            LEADER,
            self.channel,  # type: ignore[arg-type]
            Following(
                self.follower.config,
                self.follower.runtime,
                lambda broker_id: self.follower.runtime,
                lambda broker_id: later,
                self.follower.logs,
                self.follower.effects,
                self.errors.extend,
                self.quota,
            ),
        )
        self.leader.lead(replicas=[ME, PEER])

    def _checkpointed(self) -> list[DiskFailure]:
        self.truncated += 1
        return self._checkpoint()

    def close(self) -> None:
        self.leader.close()
        self.follower.close()

    @property
    def copy(self) -> Any:
        return self.follower.replicas.partitions[T]

    @property
    def log(self) -> Any:
        return self.copy.any_log()

    def follow(self, partition: int = 0) -> None:
        self.follower._role("t", partition, {"leader": ME, "replicas": [ME, PEER]})
        key = TopicPartition("t", partition)
        self.fetcher.add(self.follower.replicas.partitions[key])

    def alone(self, *sets: bytes) -> None:
        """Messages that only the follower has, from a time when it led."""
        self.follower._role("t", 0, {"leader": PEER, "replicas": [ME, PEER]})
        for data in sets:
            self.follower.produce(("t", 0, data))

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.fetcher.step()

    def asked(self) -> list[int]:
        """The offsets asked for, request by request."""
        return [
            request.topics[0].partitions[0].offset
            for request in self.channel.requests
            if isinstance(request, FetchRequest)
        ]

    def same(self) -> bool:
        leaders = self.leader.replicas.partitions[T].any_log()
        return everything(self.log) == everything(leaders)


Make = Callable[..., LeaderAndFollower]


@pytest.fixture
def make_pair(tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as stack:

        def make(**settings: Any) -> LeaderAndFollower:
            pair = LeaderAndFollower(tmp_path, **settings)
            stack.callback(pair.close)
            return pair

        yield make


@pytest.fixture
def pair(make_pair: Make) -> LeaderAndFollower:
    return make_pair()


# Copying


def throttled(make_pair: Make, replicas: str = "0:2") -> LeaderAndFollower:
    """A follower whose replica is behind and has used up its rate."""
    pair = make_pair(replica_fetch_max_bytes=1000100, message_max_bytes=1000)
    pair.follower.topic_settings["t"] = {"follower.replication.throttled.replicas": replicas}
    pair.quota.set_rate(1000)
    pair.follow()
    pair.leader.append("x" * 900)
    pair.leader.append("y" * 900)

    def behind(answer: Any) -> Any:
        topic = answer.topics[0]
        parts = [part._replace(high_watermark=9) for part in topic.partitions]
        return answer._replace(topics=[topic._replace(partitions=parts)])

    pair.channel.change = behind
    pair.steps(1)
    assert pair.log.log_end_offset == 2
    return pair


def asks_after(pair: LeaderAndFollower, seconds: float) -> bool:
    """Whether the follower asks for data some time later."""
    pair.follower.clock.advance(seconds)
    asked = len(pair.channel.requests)
    pair.steps(1)
    return len(pair.channel.requests) > asked


@pytest.mark.parametrize("replicas", ["0:2", "*", "5:2,0:2"])
def test_a_throttled_replica_that_is_behind_waits_for_its_rate(
    make_pair: Make, replicas: str
) -> None:
    pair = throttled(make_pair, replicas)
    assert not asks_after(pair, 0.1)
    assert asks_after(pair, 1)  # some 1,850 bytes at 1,000 a second, one second of which was saved


@pytest.mark.parametrize("replicas", ["", "0:1", "1:2"])
def test_other_replicas_do_not_wait(make_pair: Make, replicas: str) -> None:
    assert asks_after(throttled(make_pair, replicas), 0)


def test_without_a_rate_nothing_waits(make_pair: Make) -> None:
    pair = throttled(make_pair)
    pair.quota.set_rate(None)
    assert asks_after(pair, 0)


def test_a_replica_that_has_caught_up_does_not_wait(make_pair: Make) -> None:
    pair = throttled(make_pair)
    pair.channel.change = lambda answer: answer
    assert asks_after(pair, 2)  # it hears that it is not behind
    pair.quota.count(10_000)
    assert asks_after(pair, 0)


def test_what_the_leader_has_is_copied(pair: LeaderAndFollower) -> None:
    pair.leader.append("a", "b")
    pair.follow()
    pair.steps(1)
    assert pair.same()
    assert pair.copy.high_watermark == 0  # the leader did not yet know that we have it
    pair.steps(1)
    assert pair.copy.high_watermark == 2
    assert pair.leader.replicas.partitions[T].high_watermark == 2
    assert pair.asked() == [0, 2]


def test_requests_carry_what_peers_expect(pair: LeaderAndFollower) -> None:
    pair.follow()
    pair.steps(1)
    (request,) = pair.channel.requests
    assert request[:3] == (PEER, 500, 1)
    asked = FetchPartition(0, 0, 1048576, current_leader_epoch=0, log_start_offset=0)
    assert request.topics == [FetchTopic("t", [asked])]


def test_stored_bytes_are_copied_verbatim(pair: LeaderAndFollower) -> None:
    pair.leader.produce(("t", 0, wrapper(message_set("a", "b"), 1)))
    pair.leader.append("c")
    pair.follow()
    pair.steps(1)
    leaders = pair.leader.replicas.partitions[T].any_log()
    assert pair.log.read(0, 1000).read() == leaders.read(0, 1000).read()
    assert pair.log.log_end_offset == 3


def test_a_rolled_segment_is_told(make_pair: Make) -> None:
    pair = make_pair(log_segment_bytes=150)
    pair.follow()
    for text in "ab":
        pair.leader.append(text * 90)
        pair.steps(1)
    assert pair.same()
    assert pair.follower.effects.logs_rolled == [pair.log]


def test_an_entry_larger_than_a_fetch_sets_the_partition_aside(make_pair: Make) -> None:
    pair = make_pair(replica_fetch_max_bytes=1048576, message_max_bytes=1048576)
    pair.follow()

    def cut(answer: Any) -> Any:
        topic = answer.topics[0]
        part = topic.partitions[0]
        part = part._replace(message_set=part.message_set[:20])
        return answer._replace(topics=[topic._replace(partitions=[part])])

    pair.leader.append("a" * 100)
    pair.channel.change = cut
    pair.steps(1)
    assert pair.log.log_end_offset == 0
    asked = len(pair.channel.requests)
    pair.steps(1)  # nothing else to do: the time passes
    assert len(pair.channel.requests) == asked
    pair.channel.change = lambda answer: answer
    pair.steps(1)
    assert pair.same()


def test_one_bad_partition_does_not_stop_the_others(pair: LeaderAndFollower) -> None:
    pair.leader.lead(partition=1, replicas=[ME, PEER])
    pair.leader.append("a")
    pair.leader.append("b", partition=1)
    pair.follow()
    pair.follow(1)

    def damage(answer: Any) -> Any:
        data = bytearray(answer.topics[0].partitions[0].message_set)
        assert answer.topics[0].partitions[0].partition == 0
        data[-1] ^= 1
        answer.topics[0].partitions[0] = answer.topics[0].partitions[0]._replace(message_set=data)
        return answer

    pair.channel.change = damage
    pair.steps(1)
    other = pair.follower.replicas.partitions[TopicPartition("t", 1)].any_log()
    assert (pair.log.log_end_offset, other.log_end_offset) == (0, 1)
    pair.channel.change = lambda answer: answer
    pair.leader.append("c", partition=1)
    pair.steps(1)
    assert (pair.log.log_end_offset, other.log_end_offset) == (0, 2)
    pair.follower.clock.now += 1.0
    pair.steps(1)
    assert pair.same()


def test_nothing_is_fetched_for_a_full_disk(pair: LeaderAndFollower) -> None:
    """Otherwise it would enter the isr with nothing to write, and delay the next write."""
    pair.leader.append("a")
    pair.follow()
    logs = pair.follower.logs
    logs.full_dirs.add(logs.log_dirs[0])
    asked = len(pair.channel.requests)
    pair.steps(3)
    assert len(pair.channel.requests) == asked
    logs.full_dirs.clear()
    pair.steps(1)
    assert pair.same()


def test_without_quota_it_is_silent_until_the_leader_does_without_it(
    make_pair: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make_pair(replica_lag_time_max_ms="3000")
    pair.leader.append("a")
    pair.follow()

    def full(*_: object, **__: object) -> Any:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "pwrite", full)
    pair.steps(1)
    (failure,) = pair.errors
    assert failure.error.errno == errno.EDQUOT
    monkeypatch.undo()
    asked = len(pair.channel.requests)
    pair.follower.clock.now += 2 * 3.0  # a look of the leader's falls into the second half
    pair.steps(1)
    assert len(pair.channel.requests) == asked
    pair.follower.clock.now += 0.7
    pair.steps(1)
    assert pair.same()


def test_errors_in_the_answer_set_the_partition_aside(pair: LeaderAndFollower) -> None:
    pair.follow()
    pair.leader.follow()  # it leads no more: 6
    pair.steps(1)
    assert len(pair.channel.requests) == 1
    before = pair.follower.clock.now
    pair.steps(1)
    assert len(pair.channel.requests) == 1
    assert pair.follower.clock.now == before + 1.0


def test_a_leader_that_is_away_is_tried_again_after_a_while(pair: LeaderAndFollower) -> None:
    pair.follow()
    pair.channel.error = ConnectionRefusedError("as told")
    before = pair.follower.clock.now
    pair.steps(2)
    assert pair.follower.clock.now == before + 2.0
    pair.channel.error = None
    pair.leader.append("a")
    pair.steps(1)
    assert pair.same()


@pytest.mark.parametrize("again", [False, True])
def test_answers_for_what_was_removed_meanwhile_are_dropped(
    pair: LeaderAndFollower, again: bool
) -> None:
    pair.leader.append("a")
    pair.follow()

    def removed(request: Any) -> None:
        pair.fetcher.remove([T])
        if again:
            pair.fetcher.add(pair.copy)

    pair.channel.before_answer = removed
    pair.steps(1)
    assert pair.log.log_end_offset == 0
    assert len(pair.fetcher) == again


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


# Deleted records


def start_file(pair: LeaderAndFollower) -> str:
    path = pair.follower.directory / "log-start-offset-checkpoint"
    return path.read_text() if path.exists() else ""


def test_a_follower_deletes_what_its_leader_has_deleted(make_pair: Make) -> None:
    pair = make_pair(later=True)
    pair.leader.append(*"abcd")
    pair.follow()
    pair.steps(2)
    leading = pair.leader.replicas.partitions[T]
    leading.delete_records(3)
    pair.steps(1)
    assert (pair.log.first_offset, leading.low_watermark([PEER])) == (3, 0)
    assert start_file(pair) == "0\n1\nt 0 3\n"  # before the leader hears of it
    pair.steps(1)
    assert leading.low_watermark([PEER]) == 3
    assert pair.same()
    assert pair.follower.runtime.pooled.count("store_deletions") == 1


def test_a_new_follower_deletes_once_it_has_everything(make_pair: Make) -> None:
    """It copies what is on the leader's disk."""
    pair = make_pair(later=True, replica_fetch_max_bytes=100, message_max_bytes=100)
    for text in "abcd":
        pair.leader.append(text * 30)
    leading = pair.leader.replicas.partitions[T]
    leading.high_watermark = 4
    leading.delete_records(3)
    pair.follow()
    told = []
    for _ in range(6):
        told.append((pair.log.log_end_offset, pair.log.first_offset))
        pair.steps(1)
    assert told[0] == (0, 0) and told[-1] == (4, 3)
    assert all(first == (3 if end >= 3 else 0) for end, first in told)
    assert pair.same()


def test_a_leader_that_did_not_lead_for_a_while_is_compared_with_again(make_pair: Make) -> None:
    """The follower hears neither of the leader between nor, at first, of the new leadership."""
    pair = make_pair(later=True)
    pair.leader.append(*"abc")
    pair.follow()
    pair.steps(2)
    pair.leader.append("uncommitted")
    pair.steps(1)
    assert pair.log.log_end_offset == 4
    between = pair.leader.follow()
    between.any_log().truncate_to(3)
    pair.leader.lead(replicas=[ME, PEER], leader_epoch=2)
    pair.leader.append("other", "next")
    pair.steps(2)
    assert pair.log.log_end_offset == 4
    pair.follower._role("t", 0, {"leader": ME, "replicas": [ME, PEER], "leader_epoch": 2})
    pair.fetcher.add(pair.copy)
    pair.steps(4)
    assert pair.log.log_end_offset == 5
    assert pair.same()


@pytest.mark.parametrize("later", [True, False])
def test_a_leader_that_does_not_tell_is_asked_as_ever(make_pair: Make, later: bool) -> None:
    pair = make_pair(later=later)
    pair.leader.append(*"abcd")
    pair.follow()
    pair.steps(2)
    assert {frame.topics[0].partitions[0].log_start_offset for frame in pair.channel.requests} == {
        0
    }
    assert set(pair.channel.versions) == {9 if later else 0}
    first = pair.leader.replicas.partitions[T].remote[PEER].first_offset
    assert first == (0 if later else -1)


def test_a_high_watermark_below_the_log(pair: LeaderAndFollower) -> None:
    """A new leader may know a lower one; retention has deleted what is below ours."""
    pair.leader.append(*"abcd")
    pair.follow()
    pair.steps(2)
    pair.log.delete_records(4)
    assert pair.log.delete_old_segments() == 1
    pair.copy.high_watermark = 2
    pair.fetcher.remove([T])
    pair.follow()
    pair.leader.append("e")
    pair.steps(1)
    assert everything(pair.log) == [(4, "e")]


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


def test_a_partition_whose_directory_has_failed_is_dropped(
    pair: LeaderAndFollower, caplog: Any
) -> None:
    pair.leader.append("a")
    pair.follow()
    log = pair.log
    pair.channel.before_answer = lambda request: pair.copy.go_offline()
    pair.steps(1)
    assert log.log_end_offset == 0 and len(pair.fetcher) == 1
    pair.follower.runtime.while_waiting = [pair.fetcher._changed.set]  # nothing is left to copy
    pair.steps(1)
    assert len(pair.fetcher) == 0
    assert "set aside" not in caplog.text


# The manager


def manager(rig: Rig) -> ReplicaFetcherManager:
    shared = Following(
        rig.config,
        rig.runtime,
        lambda broker_id: rig.runtime,
        lambda broker_id: False,
        rig.logs,
        rig.effects,
        rig.replicas.disk_failed,
        ReplicationQuota(rig.clock, 1.0),
    )
    return ReplicaFetcherManager(shared)


def test_partitions_spread_over_the_fetchers_of_a_leader(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(num_replica_fetchers=3)
    fetchers = manager(rig)
    for number in range(12):
        fetchers.add_fetcher_for_partition(rig.follow(partition=number), LEADER)
    names = [task.name for task in rig.runtime.tasks]
    assert sorted(names) == [f"ReplicaFetcherThread-{lane}-{ME}" for lane in range(3)]
    assert sorted(map(len, fetchers.fetchers)) == [4, 4, 4]
    fetchers.remove_fetcher_for_partitions([TopicPartition("t", number) for number in range(12)])
    assert {len(fetcher) for fetcher in fetchers.fetchers} == {0}


def test_idle_fetchers_end_and_busy_ones_stay(rig: Rig) -> None:
    fetchers = manager(rig)
    first, second = Broker(7, "a", 1), Broker(8, "b", 1)
    fetchers.add_fetcher_for_partition(rig.follow(partition=0), first)
    fetchers.add_fetcher_for_partition(rig.follow(partition=1), second)
    fetchers.remove_fetcher_for_partitions([TopicPartition("t", 0)])
    fetchers.shutdown_idle_fetchers()
    assert {fetcher.leader for fetcher in fetchers.fetchers} == {second}


def test_a_fetcher_that_gets_work_while_another_is_stopped_goes_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetchers = manager(rig)
    leaders = [Broker(7, "a", 1), Broker(8, "b", 1)]
    partition = rig.follow()
    for leader in leaders:
        fetchers.add_fetcher_for_partition(partition, leader)
        fetchers.remove_fetcher_for_partitions([T])
    stop = ReplicaFetcher.stop
    stopped = []

    def stop_slowly(fetcher: ReplicaFetcher) -> None:
        stopped.append(fetcher.leader)
        stop(fetcher)
        # a LeaderAndIsr arrives meanwhile
        fetchers.add_fetcher_for_partition(partition, leaders[1])

    monkeypatch.setattr(ReplicaFetcher, "stop", stop_slowly)
    fetchers.shutdown_idle_fetchers()
    assert stopped == [leaders[0]]
    assert {each.leader: len(each) for each in fetchers.fetchers} == {leaders[1]: 1}


def test_stopping_ends_all_and_starts_none_any_more(rig: Rig) -> None:
    fetchers = manager(rig)
    fetchers.add_fetcher_for_partition(rig.follow(), LEADER)
    fetchers.stop()
    assert fetchers.fetchers == []
    fetchers.add_fetcher_for_partition(rig.follow(), LEADER)
    assert fetchers.fetchers == []


def test_stopping_closes_the_channel_before_it_waits(pair: LeaderAndFollower) -> None:
    pair.follow()
    pair.fetcher.start()
    closed_at_join = []
    task = pair.fetcher._task
    task.join = lambda timeout=None: closed_at_join.append(pair.channel.closed) or True  # type: ignore[union-attr,method-assign,func-returns-value]
    pair.fetcher.stop()
    assert closed_at_join == [1]
    assert len(pair.fetcher) == 0


def test_a_leaving_broker_goes_on_with_what_it_follows_and_begins_nothing(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig()
    fetchers = manager(rig)
    kept, late = (rig.follow(partition=number) for number in (0, 1))
    fetchers.add_fetcher_for_partition(kept, LEADER)
    fetchers.leave()
    fetchers.add_fetcher_for_partition(late, LEADER)
    (fetcher,) = fetchers.fetchers
    assert list(fetcher._positions) == [kept.topic_partition]
