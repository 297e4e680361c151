"""Finds the offset of a time in a partition, for clients of later releases.

Earliest and latest are known without the disk. The search for a message runs on other threads,
segment by segment and piece by piece. If files were cut, replaced or removed meanwhile, it begins
again.
"""

from __future__ import annotations

from functools import partial

from kafka08.cluster.partition import Partition
from kafka08.common import EARLIEST_TIME, LATEST_TIME, TopicPartition
from kafka08.errors import (
    KafkaError,
    NotLeaderForPartitionError,
    ReplicaNotAvailableError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
)
from kafka08.log.log import Log
from kafka08.log.segments import time_search
from kafka08.log.segments.segment import LogSegment
from kafka08.message.batch import NO_TIMESTAMP
from kafka08.message.compression import MAX_INFLATED
from kafka08.message.times import Found
from kafka08.protocol.schemas import CONSUMER_REPLICA_ID, DEBUG_REPLICA_ID
from kafka08.server.requests.long_work import LongWork
from kafka08.server.storage.committed_reads import hides_transactions
from kafka08.server.storage.replica_manager import ReplicaManager

NOTHING = Found(-1, NO_TIMESTAMP)
_TRIES = 8


class BehindLeadershipError(KafkaError):
    """The high watermark of a new leader may be below one that consumers have seen."""


class OffsetsByTime:
    """``find`` answers for one partition; it may wait."""

    def __init__(self, replicas: ReplicaManager, long_work: LongWork) -> None:
        self._replicas = replicas
        self._long_work = long_work

    def find(
        self, key: TopicPartition, time: int, replica_id: int, *, committed: bool | None = False
    ) -> Found:
        """The offset of ``time``: -1 latest, -2 earliest, else the first message with at least this
        timestamp (ms). ``NOTHING`` if there is no such message. For readers of ``committed``
        transactions the partition ends at the last stable offset; None are readers that know no
        transactions.

        Raises UnknownTopicOrPartitionError, NotLeaderForPartitionError, ReplicaNotAvailableError
        (replica -2), UnsupportedForMessageFormatError (no message has a timestamp),
        BehindLeadershipError, RequestTimedOutError (the files change all the time), and the errors
        of damaged messages.
        """
        try:
            partition = self._replicas.partition(key)
        except UnknownTopicOrPartitionError:
            if replica_id == DEBUG_REPLICA_ID:
                raise ReplicaNotAvailableError() from None
            raise
        log = _log(partition, replica_id)
        if time == EARLIEST_TIME:
            return Found(start_of(log, replica_id), NO_TIMESTAMP)
        if time == LATEST_TIME:
            return Found(_end(partition, log, replica_id, committed), NO_TIMESTAMP)
        try:
            found = self._search(log, time, start_of(log, replica_id))
        except OSError as error:
            raise self._replicas.disk_error(partition, error) from error
        if _log(partition, replica_id) is not log:
            raise NotLeaderForPartitionError(f"{key} has another log by now")
        if found is None and log.size and not any(map(_has_times, log.segments)):
            raise UnsupportedForMessageFormatError(f"No message of {key} has a timestamp")
        if found is None or found.offset >= _end(partition, log, replica_id, committed):
            return NOTHING
        return found

    def _search(self, log: Log, time: int, start: int) -> Found | None:
        for _ in range(_TRIES):
            before = log.truncations, log.files.changes
            try:
                found = self._search_once(log, time, start)
            except (KafkaError, OSError):
                if before == (log.truncations, log.files.changes):
                    raise
            else:
                if before == (log.truncations, log.files.changes):
                    return found
        raise RequestTimedOutError(f"The files of {log.name} change all the time")

    def _search_once(self, log: Log, time: int, start: int) -> Found | None:
        for segment in log.segments[max(log.files.index_of(start), 0) :]:
            if not self._may_hold(segment, time):
                continue
            of = time_search.snapshot(segment)
            position: int | None = None
            while position is None or position < of.size:
                search = partial(time_search.search, of, position, time, start)
                found, position = self._long_work.run(search, MAX_INFLATED)
                if found is not None:
                    return found
        return None

    def _may_hold(self, segment: LogSegment, time: int) -> bool:
        """Whether a message of the segment may have at least this timestamp."""
        if segment.has_unclear is None and segment.size:
            of = time_search.snapshot(segment)
            segment.has_unclear = self._long_work.run(lambda _: time_search.holds_unclear(of), 0)
        return segment.newest.timestamp >= time or bool(segment.has_unclear)


def start_of(log: Log, replica_id: int) -> int:
    """The first offset of a log for a consumer, or for a follower with its id."""
    return log.log_start_offset if replica_id >= 0 else log.first_offset


def _log(partition: Partition, replica_id: int) -> Log:
    return partition.any_log() if replica_id == DEBUG_REPLICA_ID else partition.leader_log()


def _end(partition: Partition, log: Log, replica_id: int, committed: bool | None) -> int:
    """The offset after the last one that the asking replica may read."""
    if replica_id != CONSUMER_REPLICA_ID:
        return log.log_end_offset
    if partition.high_watermark < partition.leadership_start:
        raise BehindLeadershipError()
    if committed is None:
        committed = hides_transactions(log)
    return partition.last_stable_offset if committed else partition.high_watermark


def _has_times(segment: LogSegment) -> bool:
    return segment.newest.timestamp >= 0 or bool(segment.has_unclear)
