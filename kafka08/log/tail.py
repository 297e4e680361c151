"""Knows whether consumers are near a log's end, so that preparing data for them is of use.

Prepared data is kept in bounded memory elsewhere. So none is prepared for a log that has no
consumers, or only consumers far behind: after ``AHEAD_BYTES`` preparation stops until a consumer
has reached the start of the prepared data. Does not know what is prepared or who reads.
"""

from __future__ import annotations

from typing import Final

AHEAD_BYTES: Final = 16 << 20


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
