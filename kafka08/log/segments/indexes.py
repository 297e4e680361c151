"""The two indexes of a segment, which get their entries together.

Entries are gathered in memory, and many are written at once: one by one they would take two small
writes beside that of each set. A crash loses what is gathered: the start after it makes both
indexes again. A full disk may lose it too, and then they are sparser.
"""

from __future__ import annotations

from typing import Final

from kafka08.log.disk import is_shortage
from kafka08.log.segments.index import OffsetIndex
from kafka08.log.segments.time_index import MessageTime, TimeIndex

# Written at once. 8,000 partitions gather 10 MB at most.
MOST_GATHERED: Final = 64


class SegmentIndexes:
    """``by_offset`` and ``by_time``.

    The time index knows of all messages before the last entry of the other one
    (``LogSegment.load_newest``). So its entries are written first, and those of both are lost.
    """

    __slots__ = ("by_offset", "by_time")

    def __init__(self, by_offset: OffsetIndex, by_time: TimeIndex) -> None:
        self.by_offset = by_offset
        self.by_time = by_time

    def append(self, newest: MessageTime, offset: int, position: int) -> None:
        """A set that begins at ``offset`` is at ``position`` of the file; ``newest``: the largest
        timestamp up to its end. Raises OSError, and there is no entry for it."""
        try:
            self.by_time.append(newest)
            self.by_offset.append(offset, position)
            if self.by_offset.gathered >= MOST_GATHERED:
                self.settle()
        except OSError:
            self.lose_gathered()
            self.by_time.truncate_to(offset)
            raise

    @property
    def has_gathered(self) -> bool:
        return self.by_offset.gathered > 0 or self.by_time.gathered > 0

    def settle(self) -> bool:
        """Write what is gathered, or lose it where a disk is full. True if there was something.
        Raises OSError for other reasons."""
        if not self.has_gathered:
            return False
        try:
            self.write_out()
        except OSError as error:
            if not is_shortage(error):
                raise
        return True

    def write_out(self) -> None:
        """Write what is gathered. Raises OSError, and it is lost."""
        try:
            self.by_time.write_out()
            self.by_offset.write_out()
        except OSError:
            self.lose_gathered()
            raise

    def complete(self, newest: MessageTime) -> bool:
        """Write all entries and the largest timestamp, as the segment takes no more appends; true
        if that was not done before. Raises OSError."""
        self.by_time.append(newest)
        is_new = self.has_gathered
        self.write_out()
        self.by_time.close()
        return is_new

    def lose_gathered(self) -> None:
        self.by_time.lose_gathered()
        self.by_offset.lose_gathered()

    def release(self) -> None:
        """Close the files until they are used again. Nothing more is written to them."""
        self.lose_gathered()
        self.by_offset.close()
        self.by_time.close()

    def close(self) -> None:
        """Trim the offset index, and close the files. Raises OSError."""
        self.settle()
        self.by_offset.trim()
        self.by_time.close()
