"""The segments of a log, and the names of their files: what begins, replaces and removes segments.

A removed file gets the suffix ``.deleted`` first, and is unlinked after a delay, since readers may
have it open. Cleaned segments replace the segments they were made from in two steps
(``prepare_swap``, ``replace``), which recovery completes after a crash.

Threads: methods belong to the log's thread, except ``remove_due`` and ``keep_until``. A change of
``list`` holds ``lock``, which other threads take to copy it. Does not know what segments hold.
"""

from __future__ import annotations

import logging
import os
import threading
from bisect import bisect_right
from collections.abc import Sequence

from kafka08.errors import KafkaError
from kafka08.log.directory import CLEANED_SUFFIX, unlink_if_there
from kafka08.log.segments.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SUFFIXES,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from kafka08.log.segments.segment import LogSegment

logger = logging.getLogger("kafka.log.Log")


class SegmentFiles:
    """``list``: the segments of ``directory``, oldest first; ``bases``: their base offsets.

    ``changes`` counts changes of names in the directory, which a flush has to make durable.
    """

    __slots__ = ("_directory", "_due", "_swap", "bases", "changes", "list", "lock")

    def __init__(self, directory: str, segments: list[LogSegment]) -> None:
        self._directory = directory
        self._swap: tuple[int, ...] = ()  # the bases of a group whose .swap files are in place
        self._due: list[tuple[int, str]] = []
        self.list = segments
        self.bases = [segment.base_offset for segment in segments]
        self.changes = 1
        self.lock = threading.RLock()

    @property
    def active(self) -> LogSegment:
        return self.list[-1]

    def index_of(self, offset: int) -> int:
        """The index of the segment that holds ``offset`` if any does; -1 below the first."""
        return bisect_right(self.bases, offset) - 1

    def make_way(self, base: int) -> None:
        """Unlink files with the names of a new segment."""
        for suffix in (*SUFFIXES, TRANSACTION_INDEX_SUFFIX):
            path = os.path.join(self._directory, f"{base:020d}{suffix}")
            if os.path.exists(path):
                logger.warning(
                    "Newly rolled segment file %s already exists; deleting it first", path
                )
                os.unlink(path)

    def add(self, segment: LogSegment) -> None:
        """Make ``segment`` the active one. The caller holds the lock."""
        self.list.append(segment)
        self.bases.append(segment.base_offset)
        self.changes += 1

    # Deletion

    def drop(self, segments: Sequence[LogSegment], due: int) -> None:
        """Take segments off the list; their files may be unlinked at ``due`` (ms). The caller
        holds the lock."""
        self.changes += 1
        for segment in segments:
            number = self.list.index(segment)
            del self.list[number], self.bases[number]
            logger.info(
                "Scheduling log segment %d of %s for deletion.",
                *(segment.base_offset, self._directory),
            )
            self._due += [(due, path) for path in segment.rename_deleted()]

    def keep_until(self, due: int, paths: Sequence[str]) -> None:
        """Let ``remove_due`` unlink these files at ``due`` (ms)."""
        with self.lock:
            self._due += [(due, path) for path in paths]

    def remove_due(self, now: int) -> int:
        """Unlink the files whose delay is over at ``now`` (ms); returns how many."""
        with self.lock:
            due = [path for at, path in self._due if at <= now]
            self._due = [entry for entry in self._due if entry[0] > now]
        for path in due:
            unlink_if_there(path)  # a later segment of the same name may have been deleted too
        return len(due)

    def forget(self) -> None:
        """The directory is about to be removed. The caller holds the lock."""
        for segment in self.list:
            segment.release()
        self._due = []
        self._swap = ()

    # Swap

    def prepare_swap(self, bases: Sequence[int]) -> None:
        """Step 1: rename the cleaned files of the segments with these bases, which must be complete
        and on disk. From now on recovery completes the swap after a crash. The caller then syncs
        the directory, as the old files must not be removed while the new name may be lost.

        Raises KafkaError if the segments are not (or no longer) sealed neighbours, and OSError.
        """
        self._group_at(bases)
        stem = self._stem(bases)
        if os.path.exists(stem + TIME_INDEX_SUFFIX + CLEANED_SUFFIX):
            _rename(stem + TIME_INDEX_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)
        for suffix in (INDEX_SUFFIX, LOG_SUFFIX):  # the log last: recovery looks for its .swap
            _rename(stem + suffix, CLEANED_SUFFIX, SWAP_SUFFIX)
        self._swap = tuple(bases)

    def replace(self, now: int) -> list[str]:
        """Step 2: replace the segments of the prepared group with the cleaned one, which counts as
        created ``now`` (ms).

        Old files are renamed oldest first, so that a crash leaves the newest of them. Returns
        their new names, for ``keep_until`` after the caller has synced the directory again.
        The cleaned segment is complete on disk and does not have side files yet.
        Raises KafkaError if a truncation has undone the swap, and OSError.
        """
        bases, self._swap = self._swap, ()
        if not bases:
            raise KafkaError(f"There are no cleaned segments to swap into {self._directory}")
        number = self._group_at(bases)
        stem = self._stem(bases)
        with self.lock:
            renamed = []
            group = self.list[number : number + len(bases)]
            for segment in group:
                renamed += segment.rename_deleted()
            if os.path.exists(stem + TIME_INDEX_SUFFIX + SWAP_SUFFIX):
                _rename(stem + TIME_INDEX_SUFFIX, SWAP_SUFFIX)
            # the index last: recovery makes the time index again too if it is missing
            for suffix in (LOG_SUFFIX, INDEX_SUFFIX):
                _rename(stem + suffix, SWAP_SUFFIX)
            cleaned = LogSegment(self._directory, bases[0], now)
            cleaned.has_untimed = any(segment.has_untimed for segment in group)
            self.list[number : number + len(bases)] = [cleaned]
            self.bases[number : number + len(bases)] = [bases[0]]
            self.changes += 1
        return renamed

    def abandon_swap(self) -> None:
        """Undo ``prepare_swap`` if the swap was not completed."""
        bases, self._swap = self._swap, ()
        if bases:
            stem = self._stem(bases)
            for suffix in (LOG_SUFFIX, INDEX_SUFFIX):  # the log first, see prepare_swap
                os.unlink(stem + suffix + SWAP_SUFFIX)
            if os.path.exists(stem + TIME_INDEX_SUFFIX + SWAP_SUFFIX):
                os.unlink(stem + TIME_INDEX_SUFFIX + SWAP_SUFFIX)

    def _stem(self, bases: Sequence[int]) -> str:
        return os.path.join(self._directory, f"{bases[0]:020d}")

    def _group_at(self, bases: Sequence[int]) -> int:
        """The index of the group's first segment."""
        number, end = self.index_of(bases[0]), len(bases)
        if number < 0 or self.bases[number : number + end] != list(bases):
            raise KafkaError(f"{self._directory} no longer has the segments {list(bases)}")
        if number + end >= len(self.bases):
            raise KafkaError(f"The active segment of {self._directory} cannot be replaced")
        return number


def _rename(path: str, old: str, new: str = "") -> None:
    """Give a file another suffix behind its own."""
    os.replace(path + old, path + new)
