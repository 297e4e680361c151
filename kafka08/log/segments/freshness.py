"""Tracks which data of a log was appended recently, and is therefore in the page cache.

Time is divided into periods with appends: it is enough to know where the log ended when the last
two of them began. Does not know files.
"""

from __future__ import annotations

from typing import Final

# Data appended within the last two or three such periods is assumed to be in the page cache.
FRESH_MS: Final = 1000


class Freshness:
    """The fresh data of a log that ends at offset ``end`` at the time ``now`` (ms): none at first.

    ``began``: when the last period with appends began. An append after that period begins another.
    """

    __slots__ = ("_from", "_next", "began")

    def __init__(self, end: int, now: int) -> None:
        self.began = now
        # The end of the log when the last period began, and when the one before it did.
        self._next = self._from = end

    def begin_period(self, end: int, now: int) -> None:
        """A period begins with an append at offset ``end``."""
        is_next = 0 <= now - self.began < 2 * FRESH_MS
        self._from = self._next if is_next else end
        self._next, self.began = end, now

    def holds(self, offset: int, now: int) -> bool:
        """Whether all data from ``offset`` on is fresh."""
        return offset >= self._from and 0 <= now - self.began < 2 * FRESH_MS
