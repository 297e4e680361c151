"""The offsets that version 0 of ListOffsets asks for: of segments, by the times of their files.

Mirrors getOffsetsBefore of kafka.log.Log and kafka.server.KafkaApis. The times of messages do not
matter; ``time_search`` finds those.
"""

from __future__ import annotations

from kafka08.common import EARLIEST_TIME, LATEST_TIME
from kafka08.log.log import Log


def offsets_before(log: Log, time_ms: int, max_num: int, *, start: int, now: int) -> list[int]:
    """Segment bases (and the log's end) last written at or before ``time_ms``, descending.

    ``time_ms`` -1 asks for the log's end, -2 for its start; the log's end was written ``now``. The
    lowest offset is ``start``, which stands for the segment that holds it.
    Raises OSError.
    """
    segments = log.segments[log.files.index_of(start) :]
    known = [start, *[segment.base_offset for segment in segments[1:]]]
    if segments[-1].size and log.log_end_offset > start:
        known.append(log.log_end_offset)
    if time_ms == LATEST_TIME:
        count = len(known)
    elif time_ms == EARLIEST_TIME:
        count = 1
    else:
        times = [segment.last_modified_ms for segment in segments]
        times.append(now)
        ends = (i + 1 for i, at in enumerate(times[: len(known)]) if at <= time_ms)
        count = max(ends, default=0)
    return known[:count][::-1][: max(max_num, 0)]
