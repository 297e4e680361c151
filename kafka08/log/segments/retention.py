"""Which of the oldest segments of a log go: by deleted records, by age, by size.

Mirrors deleteOldSegments of kafka.log.Log. Changes nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import takewhile

from kafka08.log.segments.segment import LogSegment
from kafka08.settings.topic import LogConfig


def deletable(
    segments: Sequence[LogSegment], config: LogConfig, *, now: int, deleted_until: int, end: int
) -> int:
    """How many segments go, the oldest first. The last one may go too, if it is not empty.

    By age and size only if the policy is to delete. ``deleted_until``: the records below were
    deleted. ``end``: the end of the log. Raises OSError.
    """
    subject = segments if segments[-1].size else segments[:-1]
    ends = [segment.base_offset for segment in segments[1:]] + [end]
    count = bisect_right(ends[: len(subject)], deleted_until)
    if not config.deletes:
        return count
    count += _expired(subject[count:], config.retention_ms, now)
    return count + _surplus(subject[count:], config.retention_bytes)


def _expired(segments: Sequence[LogSegment], retention_ms: int, now: int) -> int:
    if retention_ms < 0:  # 0.8.2.2 deletes everything then; users who set -1 want to keep it
        return 0
    old = takewhile(lambda segment: now - segment.largest_timestamp > retention_ms, segments)
    return sum(1 for _ in old)


def _surplus(segments: Sequence[LogSegment], retention_bytes: int) -> int:
    if retention_bytes < 0:
        return 0
    excess = sum(segment.size for segment in segments) - retention_bytes
    count = 0
    for segment in segments:
        excess -= segment.size
        if excess < 0:
            break
        count += 1
    return count
