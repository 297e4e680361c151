"""The end of a log: whether consumers are near it, and which of its data was appended recently.

Data that is prepared for consumers is kept in bounded memory elsewhere. So none is prepared for a
log that has no consumers, or only consumers far behind: after ``AHEAD_BYTES`` preparation stops
until a consumer has reached the start of the prepared data. Data that was appended recently is in
the page cache. Does not know what is prepared or who reads, and does not know files.
"""

from __future__ import annotations

from typing import Final

AHEAD_BYTES: Final = 16 << 20
# Data appended within the last two or three such periods is assumed to be in the page cache.
FRESH_MS: Final = 1000


class TailReaders:
    """``offset`` is the log's end at first."""

    __slots__ = ("_prepared", "_since")

    def __init__(self, offset: int) -> None:
        self._since = offset
        self._prepared = 0

    @property
    def are_near(self) -> bool:
        return self._prepared < AHEAD_BYTES

    def prepared(self, count: int) -> None:
        """Record that more bytes were prepared at the log's end."""
        self._prepared += count

    def read_at(self, offset: int, log_end_offset: int) -> None:
        """Record that a consumer fetches from ``offset``."""
        if offset >= self._since:
            self._since = log_end_offset
            self._prepared = 0

    def cut_at(self, offset: int) -> None:
        """Record that the log now ends at ``offset``."""
        self._since = min(self._since, offset)


class Freshness:
    """The fresh data of a log that ends at offset ``end`` at the time ``now`` (ms): none at first.
    Time is divided into periods with appends: it is enough to know where the log ended when the
    last two of them began.

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
