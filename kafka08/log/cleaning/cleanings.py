"""How far a log was cleaned, and when: the age of the tombstones in its clean part.

A reader that starts at the head of a log may have read a value that a cleaning then removes. It has
``delete.retention.ms`` from the end of that cleaning to meet the tombstone of the key. Therefore a
tombstone may be removed once so much time has passed since the end of the first cleaning that
covered it. The times of messages and of files say nothing about this: see ADR 56.

The times are in a file of the log's directory, ``cleaning-times``: lines with ``0`` (version), the
number of entries, and ``<ms> <offset>`` for each, oldest first. The file holds for one checkpoint
of the cleaner only, that of its last entry. Another checkpoint shows that the log was truncated,
replaced, or cleaned by another program since, and the waiting begins again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import NamedTuple

from kafka08.log.checkpoint import read_lines, write_lines

CLEANING_TIMES_FILE = "cleaning-times"

# Between two entries that are kept lies at least this part of delete.retention.ms, which bounds
# both the number of entries and how much longer than that a tombstone waits.
_PARTS = 16

logger = logging.getLogger("kafka.log.LogCleaner")


class Cleaning(NamedTuple):
    """At ``ended`` (ms since the epoch) all messages below ``offset`` had been cleaned."""

    ended: int
    offset: int


def read(directory: str, checkpoint: int | None, now: int) -> list[Cleaning]:
    """The cleanings of the log in ``directory``, oldest first; none if they do not end at
    ``checkpoint``, or if the file cannot be understood.

    A time after ``now`` (ms), from a clock that was set back, counts as ``now``. Raises OSError.
    """
    try:
        found = _parse(read_lines(os.path.join(directory, CLEANING_TIMES_FILE)))
    except FileNotFoundError:
        return []
    except ValueError as error:
        logger.warning("Ignoring %s in %s: %s", CLEANING_TIMES_FILE, directory, error)
        return []
    if not found or found[-1].offset != checkpoint:
        return []
    return [Cleaning(min(each.ended, now), each.offset) for each in found]


def with_one_more(known: Sequence[Cleaning], last: Cleaning, retention_ms: int) -> list[Cleaning]:
    """``known`` and the cleaning that has just ended, without those that are not needed."""
    expired = [each for each in known if each.ended + retention_ms <= last.ended]
    kept = [*expired[-1:], *known[len(expired) :]]
    if len(kept) > 1 and kept[-1].ended - kept[-2].ended < retention_ms // _PARTS:
        kept.pop()
    return [*kept, last]


def write(directory: str, cleanings: Sequence[Cleaning]) -> None:
    """Replace the file; it is on disk on return. Raises OSError."""
    lines = [f"{each.ended} {each.offset}" for each in cleanings]
    write_lines(os.path.join(directory, CLEANING_TIMES_FILE), lines)


def tombstones_below(cleanings: Sequence[Cleaning], retention_ms: int, now: int) -> int:
    """The offset below which tombstones may be removed at ``now`` (ms); 0 if none may."""
    old = [each.offset for each in cleanings if each.ended + retention_ms <= now]
    return max(old, default=0)


def _parse(lines: Sequence[str]) -> list[Cleaning]:
    """Raises ValueError."""
    found: list[Cleaning] = []
    for line in lines:
        ended, offset = map(int, line.split())
        if found and offset < found[-1].offset:
            raise ValueError(f"{line!r} is not in order")
        found.append(Cleaning(ended, offset))
    return found
