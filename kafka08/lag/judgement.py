"""Whether a consumer keeps up: Burrow's judgement over the last commits for a partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

OK, WARN, STALL, STOP, REWIND = STATUSES = ("OK", "WARN", "STALL", "STOP", "REWIND")
"""From good to bad. WARN: it falls behind. STALL: it commits the same offset. STOP: it does not
commit. REWIND: it went back."""

WINDOW = 10
"""Commits that are judged together."""

RECENT_MS = 100_000
"""A consumer of a log that was quiet until now has not stopped."""

_UNSURE_MS = 600_000
"""A window with fewer commits spans at least that: ten commits at the interval that consumers of
0.8 have by default."""


class Commit(NamedTuple):
    """The next offset to read, and when it was committed, ms since the epoch. ``end``: that of the
    log at that time, None if unknown."""

    offset: int
    time_ms: int
    end: int | None = None

    @property
    def lag(self) -> int | None:
        return None if self.end is None else max(self.end - self.offset, 0)


def judge(commits: Sequence[Commit], lag: int, lag_before: int, now_ms: int) -> str:
    """``commits``: the last ones, oldest first. ``lag``: messages that are not consumed now.
    ``lag_before``: the same at the log's end of ``RECENT_MS`` ago, or at the first end that was
    seen since."""
    if not commits or lag == 0:
        return OK
    span = commits[-1].time_ms - commits[0].time_ms
    if len(commits) < WINDOW:
        span = max(span, _UNSURE_MS)
    if now_ms - commits[-1].time_ms > span and lag_before > 0:
        return STOP
    if len(commits) == 1 or any(commit.lag == 0 for commit in commits):
        return OK
    # It went back, and has not come up to the highest offset yet.
    if commits[-1].offset < max(commit.offset for commit in commits):
        return REWIND
    if all(commit.offset == commits[0].offset for commit in commits):
        return STALL
    lags = [commit.lag for commit in commits if commit.lag is not None]
    if all(after >= before for before, after in pairwise(lags)):
        return WARN
    return OK


def worst(statuses: Iterable[str]) -> str:
    """That of a group with these partitions."""
    return max(statuses, key=STATUSES.index, default=OK)
