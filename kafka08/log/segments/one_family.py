"""Remembers a stretch of a file in which the family of formats does not change.

One family is formats 0 and 1, messages; the other is format 2, batches. Many clients of later
releases choose the parser for a whole answer by its first entry. So that an answer can end where
the family changes, appends note their family, and readers of what was there before look at the
headers of the entries once. A file is mostly of one family: one stretch is all that is kept. Does
not know segments, and relies on their file holding whole entries.
"""

from __future__ import annotations

import os
from typing import Final

from kafka08.message.entry import BATCH, MAGIC_AT
from kafka08.message.scan import family_end

_HEADER: Final = MAGIC_AT + 1
FIRST_READ = 4 << 10
_LONG_READ = 64 << 10
# This many bytes of unknown entries are read for one answer, which takes 2 ms.
_LONGEST = 16 << 20


class OneFamily:
    """Entries of one family lie from position ``start`` to ``stop`` of a file."""

    __slots__ = ("is_batches", "start", "stop")

    def __init__(self) -> None:
        self.start = 0
        self.stop = 0
        self.is_batches = False

    def appended(self, data: memoryview, position: int, is_one: bool) -> None:
        """Note entries that were written to the end of the file, which was at ``position``.
        ``is_one``: they are known to be of one family."""
        if self.stop > position:
            self.cut(position)
        size = len(data)
        if self.stop == position and (is_one or family_end(data, 0, size) == size):
            self._note(data[MAGIC_AT] == BATCH, position, position + size)

    def cut(self, position: int) -> None:
        """Forget what was known of the bytes from ``position`` on."""
        if self.stop > position:
            self.stop = position
            self.start = min(self.start, position)

    def end(self, fd: int, position: int, end: int) -> int:
        """Where the family of the entry at ``position`` ends; at most ``end``.

        The headers of entries from there on are read unless they are known. Entries after a
        damaged one count to its family. Of a long stretch the result is the end of a part, which
        has one entry at least. Raises OSError.
        """
        is_inside = self.start <= position < self.stop
        at = begin = self.stop if is_inside else position
        is_batches = self.is_batches
        want = FIRST_READ
        while at < end:
            if at - begin >= _LONGEST:
                end = at
                break
            # the header of the last entry may be cut
            data = os.pread(fd, min(want, end + MAGIC_AT - at), at)
            if len(data) < _HEADER:
                return end
            found = data[MAGIC_AT] == BATCH
            if at == position:
                is_batches = found
            elif found != is_batches:
                end = at
                break
            passed = family_end(data, 0, len(data))
            if not passed:
                return end
            at += passed
            want = min(2 * want, _LONG_READ)
        self._note(is_batches, position, at)
        return end

    def _note(self, is_batches: bool, position: int, stop: int) -> None:
        """Note a stretch, which is added to the known one if it continues that."""
        if is_batches != self.is_batches or not self.start <= position <= self.stop:
            self.start = position
            self.is_batches = is_batches
        self.stop = stop
