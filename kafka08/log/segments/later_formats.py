"""Finds the end of the entries in a log that brokers of 0.8.2.2 cannot read.

These are entries of formats 1 and 2. The log is searched for them at the first request for the
time, from its newest segment on; from then on appends alone can add some.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafka08.log.segments.file_walk import FileWalk
from kafka08.log.segments.segment import LogSegment
from kafka08.message.entry import PAUSED

# The end is found to within this many bytes of entries.
_STEP = 1 << 20


class LaterFormats:
    """``end``: the offset after the newest entry that was appended in such a format since the log
    was opened; 0 if there was none. ``is_empty``: the log was when it was opened."""

    def __init__(self, is_empty: bool) -> None:
        self.end = 0
        self._found = 0 if is_empty else None

    def until(self, segments: Sequence[LogSegment]) -> int:
        """All such entries of the log with these segments are below this offset; 0 without any.

        Reads the headers of all entries of the log the first time. Safe on any thread. Raises
        OSError.
        """
        if self._found is None:
            self._found = _search(segments)
        return max(self._found, self.end)

    @property
    def is_known(self) -> bool:
        """Whether ``until`` answers without reading the log."""
        return self._found is not None


def _search(segments: Sequence[LogSegment]) -> int:
    for segment in reversed(segments):
        fd = os.open(segment.path, os.O_RDONLY)
        try:
            found = _search_file(fd, segment.size)
        finally:
            os.close(fd)
        if found:
            return found
    return 0


def _search_file(fd: int, size: int) -> int:
    found = 0
    walk = FileWalk(fd, 0, size, headers_only=True)
    walked = walk.step(until=_STEP)
    while True:
        if walked.magic:
            found = walked.last + 1
        if walked.ended != PAUSED:
            return found
        walked = walk.step(until=walked.stop + _STEP)
