"""Followers: copying, one bad partition alone, deleted records, and the fetchers of a broker."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.protocol.schemas import FetchPartition, FetchTopic
from kafka08.server.quotas.replication import ReplicationQuota
from kafka08.server.replication.fetchers import Following, ReplicaFetcher, ReplicaFetcherManager
from tests.log.support import everything
from tests.message.sets import wrapper
from tests.server.replication.pair import LEADER, LeaderAndFollower, Make, T
from tests.server.support import ME, PEER, Rig, message_set

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


def test_a_leader_that_refused_is_compared_with_again(pair: LeaderAndFollower) -> None:
    """Fetch 0 does not name the leader epoch."""
    pair.leader.append(*"abc")
    pair.follow()
    pair.steps(2)
    pair.leader.append("uncommitted")
    pair.steps(1)
    between = pair.leader.follow()
    between.any_log().truncate_to(3)
    pair.steps(1)
    pair.leader.lead(replicas=[ME, PEER], leader_epoch=2)
    pair.leader.append("other", "next")
    pair.follower.clock.now += 1.0
    pair.steps(3)
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
