"""Stored bytes that are not in the page cache are read by another thread before they are needed.

The broker is one event loop: a read that waits for the disk would make every connection wait.
Knows logs, no partitions and no requests.
"""

from __future__ import annotations

import os

from kafka08.log.log import Log
from kafka08.log.segments import residency
from kafka08.log.segments.segment import LogSegment
from kafka08.runtime import Runtime


def read_in(
    runtime: Runtime, log: Log, offset: int, max_bytes: int, *, for_consumer: bool = False
) -> None:
    """Read the bytes on another thread, so that ``log.read`` does not wait for the disk. Raises
    OSError.

    A log that is cut, compacted or deleted meanwhile is left as it is: its reader will see.
    """
    now = runtime.clock.millis()
    segment = _read_from(log, offset, for_consumer)
    if segment is None:
        return
    try:
        if not residency.can_look_up(segment, offset, now):
            index = segment.index
            size = index.entries * 8
            runtime.blocking(residency.read_in_index, segment.path, index.path, size)
            index.read_in_ms = now
            if _read_from(log, offset, for_consumer) is not segment:
                return
        part = residency.extent(segment, offset, max_bytes)
        if not residency.is_resident(part):
            runtime.blocking(residency.read_in, part)
    except FileNotFoundError:
        pass


def _read_from(log: Log, offset: int, for_consumer: bool) -> LogSegment | None:
    segment = log.segment_of(offset)
    return segment.for_consumer(offset) if for_consumer and segment is not None else segment


def stat_files(runtime: Runtime, log: Log) -> None:
    """Read the files' times on another thread, so that the kernel has them cached."""
    runtime.blocking(_stat_all, [segment.path for segment in log.segments])


def _stat_all(paths: list[str]) -> None:
    for path in paths:
        try:
            os.stat(path)
        except FileNotFoundError:
            pass  # deleted meanwhile
