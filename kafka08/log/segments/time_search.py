"""Finds the first message of a segment with a timestamp at or after a time.

The time index says where to begin, and entries are read from there. In a segment that has
batches whose headers do not have their newest time, its index may not either: these are found near
its start and its end, and such a segment is read from its start. ``snapshot`` takes what
is needed from a segment in use; everything else may run on any thread, and does not see later
changes of the segment: the caller compares ``SegmentFiles.changes`` and ``Log.truncations`` before
and after. Does not know which segments to search.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from kafka08.log.segments.file_slice import SegmentFile
from kafka08.log.segments.index import position_below
from kafka08.log.segments.segment import LogSegment
from kafka08.log.segments.time_index import offset_below
from kafka08.message.entry import LAST_OFFSET_BYTES, offset_and_stop
from kafka08.message.scan import iter_entries, newest_time, walk
from kafka08.message.times import Found, first_since, has_unclear

# This many bytes are searched in one go.
PIECE_BYTES = 8 << 20
_CHUNK = 64 << 10
_LAST = (1 << 63) - 1


class Snapshot(NamedTuple):
    """A segment at some moment: its open log file, and the sizes of its files in entries."""

    base_offset: int
    file: SegmentFile
    size: int
    index_path: str
    index_entries: int
    time_index_path: str
    time_index_entries: int
    has_unclear: bool


class Searched(NamedTuple):
    """``found`` or, if it is None, the position to go on from; the end if that is ``size``."""

    found: Found | None
    position: int


def snapshot(segment: LogSegment) -> Snapshot:
    """Raises OSError."""
    segment.indexes.settle()
    index, time_index = segment.index, segment.time_index
    return Snapshot(
        segment.base_offset,
        segment.file,
        segment.size,
        index.path,
        index.entries,
        time_index.path,
        time_index.entries,
        bool(segment.has_unclear),
    )


def holds_unclear(of: Snapshot) -> bool:
    """Whether a batch near the start or the end of the segment does not have its newest time.
    Raises OSError."""
    last = position_below(of.index_path, of.index_entries, of.base_offset, _LAST)
    for position in {0, last}:
        if has_unclear(os.pread(of.file.fd, min(_CHUNK, of.size - position), position)):
            return True
    return False


def search(
    of: Snapshot, position: int | None, time: int, start: int, max_inflated: int
) -> Searched:
    """Search a piece from ``position``, or from where the indexes say. Messages below the offset
    ``start`` do not count.

    Raises OSError, and as ``first_since`` does.
    """
    if position is None:
        position = _position_of(of, start)
        if not of.has_unclear:
            position = max(_start_of(of, time), position)
    until, want = min(position + PIECE_BYTES, of.size), _CHUNK
    while position < until:
        data = os.pread(of.file.fd, min(want, of.size - position), position)
        stop = walk(data, 0, len(data), wrappers=True).stop
        if stop:
            found = first_since(data, time, start, max_inflated=max_inflated, stop=stop)
            if found is not None:
                return Searched(found, position)
            position += stop
            want = _CHUNK
            continue
        want = offset_and_stop(data, 0)[1] if len(data) >= LAST_OFFSET_BYTES else 0
        if not len(data) < want <= of.size - position:
            return Searched(None, of.size)  # the segment was cut after the snapshot, or is damaged
    return Searched(None, position)


def _start_of(of: Snapshot, time: int) -> int:
    """The position from which on the first message since ``time`` is."""
    offset = offset_below(of.time_index_path, of.time_index_entries, of.base_offset, time)
    return _position_of(of, offset)


def _position_of(of: Snapshot, offset: int) -> int:
    """A position at or before the entry that holds ``offset``."""
    if offset <= of.base_offset:
        return 0
    return position_below(of.index_path, of.index_entries, of.base_offset, offset)


def is_untimed_from(segment: LogSegment, position: int) -> bool:
    """Whether an entry that is near and not before this position has no timestamp, or a batch a
    wrong one. Raises OSError."""
    data = os.pread(segment.file.fd, min(_CHUNK, segment.size - position), position)
    data = data[: walk(data, 0, len(data), wrappers=True).stop]
    times = [newest_time(data, each.position, each.stop)[0] for each in iter_entries(data)]
    return min(times, default=segment.timestamp_at(position)) < 0 or has_unclear(data)
