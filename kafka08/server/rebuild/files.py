"""Rebuilt entries of a segment: what consumers get, in files beside the stored ones.

Stored wrappers mostly have their producer's inner offsets (``message.wrappers``).
``<base>.rebuilt`` holds the entries of the segment from its start on, at the same offsets, with the
true inner offsets. ``<base>.rebuilt-index`` is an index of it, whose last entry is its end: what
follows is not complete. 0.8.2.2 ignores both names. They are a cache: they can be removed at any
time, go with their segment, and are removed before it is cut or replaced, and after a crash.

Opens, checks and removes them. Does not know who makes them, or when.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafka08.errors import KafkaError
from kafka08.log.segments.file_slice import FileSlice
from kafka08.log.segments.index import ENTRY_SIZE
from kafka08.log.segments.names import REBUILT_INDEX_SUFFIX, REBUILT_SUFFIX, rebuilt_paths
from kafka08.log.segments.segment import LogSegment
from kafka08.message.entry import ATTRIBUTES_AT, codec_of, is_later
from kafka08.message.scan import iter_entries
from kafka08.message.wrappers import same_messages

# This many places of a segment are read to see whether it has compressed entries.
_SAMPLES = 8
_CODEC_BYTES = ATTRIBUTES_AT + 1  # of an entry of format 0


def open_rebuilt(segment: LogSegment) -> LogSegment | None:
    """The rebuilt entries that are on disk for a segment; None if there are none.

    Files that do not belong to the segment as it is are removed. Safe on any thread. Raises
    OSError.
    """
    if not all(map(os.path.exists, rebuilt_paths(segment.path))):
        return None
    rebuilt = LogSegment(
        os.path.dirname(segment.path),
        segment.base_offset,
        segment.created,
        suffixes=(REBUILT_SUFFIX, REBUILT_INDEX_SUFFIX, ".rebuilt-timeindex"),  # never made
    )
    index = rebuilt.index
    try:
        usable = (
            index.entries
            and index.problem(rebuilt.size + 1, thorough=True) is None
            and _belongs(rebuilt, index.last_position, segment)
        )
    except KafkaError:
        usable = False
    if not usable:
        segment.drop_rebuilt()
        return None
    rebuilt.size = rebuilt.file.sendable_until = index.last_position
    return rebuilt


def _belongs(rebuilt: LogSegment, size: int, segment: LogSegment) -> bool:
    """Whether the last rebuilt entry holds the messages of the stored one at its offset: no cut
    and no other content leaves that in place."""
    index = rebuilt.index
    start = index.entry(index.entries - 2)[1] if index.entries > 1 else 0
    data = FileSlice(rebuilt.file, start, size - start).read()
    last = max(iter_entries(data), default=None)
    if last is None or last.stop != len(data) or last.offset + 1 != index.last_offset:
        return False
    position = segment.position_of(last.offset)
    header = None if position is None else segment.header_at(position)
    if position is None or header is None or header[0] != last.offset:
        return False
    stored = FileSlice(segment.file, position, header[1] - position).read()
    return same_messages(stored, data[last.position :])


def stored_until(segment: LogSegment, rebuilt: LogSegment | None) -> int:
    """Where the first stored entry is that was not rebuilt. Raises OSError, KafkaError."""
    if rebuilt is None:
        return 0
    position = segment.position_of(rebuilt.index.last_offset)
    return segment.size if position is None else position


def holds_wrappers(segment: LogSegment) -> bool:
    """Whether a segment has wrappers of format 0, judged by some of its places. Raises OSError."""
    return any(_is_wrapper(segment, position) for position in _places(segment))


def _places(segment: LogSegment) -> Sequence[int]:
    index = segment.index
    count = min(index.entries, _SAMPLES)
    return [0, *(index.entry(index.entries * n // count)[1] for n in range(count))]


def _is_wrapper(segment: LogSegment, position: int) -> bool:
    start = os.pread(segment.file.fd, _CODEC_BYTES, position)
    return len(start) == _CODEC_BYTES and not is_later(start) and codec_of(start) != 0


def disk_bytes(rebuilt: LogSegment) -> int:
    return rebuilt.size + rebuilt.index.entries * ENTRY_SIZE
