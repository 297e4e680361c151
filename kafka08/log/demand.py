"""Whether consumers are near enough to a log's end for work done ahead of them to be of use.

What is prepared for them is kept in bounded memory elsewhere, so a log that nobody reads, or only
from far behind, shall not have it made: at most ``AHEAD_BYTES`` are prepared, then nothing more
until a consumer has come to where these began. Knows neither what is prepared nor who reads.
"""

from __future__ import annotations

AHEAD_BYTES = 16 << 20


class Demand:
    """``offset`` is the log's end at first."""

    __slots__ = ("_prepared", "_since")

    def __init__(self, offset: int) -> None:
        self._since = offset
        self._prepared = 0

    @property
    def is_there(self) -> bool:
        return self._prepared < AHEAD_BYTES

    def prepared(self, octets: int) -> None:
        """So much more has been made ready at the log's end."""
        self._prepared += octets

    def read_at(self, offset: int, log_end_offset: int) -> None:
        """A consumer asks for what lies at ``offset``."""
        if offset >= self._since:
            self._since = log_end_offset
            self._prepared = 0

    def cut_at(self, offset: int) -> None:
        """The log ends at ``offset`` now."""
        self._since = min(self._since, offset)
