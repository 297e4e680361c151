"""The leader epochs of the batches in a log, with the offsets at which they begin.

Only logs with batches (format 2) have any. The file ``leader-epoch-checkpoint`` has the lines ``0``
(version), the number of entries, then ``<epoch> <first offset>`` for each. It is written when the
log is synced, before the recovery point moves: what it says below the recovery point is true. After
a crash the rest is read from the batches. Mirrors kafka.server.epoch.LeaderEpochFileCache.

Threads: the entries change on the thread of the log; ``write`` may run on any thread.
"""

from __future__ import annotations

import logging
import os
import threading
from bisect import bisect_right
from collections.abc import Sequence

from kafka08.log.checkpoint import read_lines, write_lines
from kafka08.log.disk import is_shortage
from kafka08.log.segments.file_walk import FileWalk
from kafka08.log.segments.segment import LogSegment
from kafka08.message.batch import header_of, leader_epoch_of
from kafka08.message.entry import BATCH, OFFSET, BytesLike
from kafka08.message.scan import iter_entries

FILE = "leader-epoch-checkpoint"
NO_EPOCH = -1
_PIECE = 1 << 20

logger = logging.getLogger("kafka.server.epoch.LeaderEpochFileCache")


class LeaderEpochs:
    """The leader epochs of the log in ``directory``. The file is valid below ``recovery_point``, or
    as a whole after a clean stop (None). Raises OSError."""

    __slots__ = ("_entries", "_is_written", "_lock", "_path")

    def __init__(
        self,
        directory: str,
        segments: Sequence[LogSegment],
        log_end: int,
        recovery_point: int | None,
    ) -> None:
        self._path = os.path.join(directory, FILE)
        self._lock = threading.Lock()
        self._entries: list[tuple[int, int]] = []  # replaced, never changed
        self._is_written = True
        known = log_end if recovery_point is None else recovery_point
        try:
            self._entries = _parse(read_lines(self._path))
        except FileNotFoundError:
            pass  # as for a log of format 0
        except ValueError as error:
            logger.warning("Reading the batches of the log instead of %s: %s", self._path, error)
            known = segments[0].base_offset
        self.truncate_to(known)
        if known < log_end:
            self._read_batches(segments, known)

    def _read_batches(self, segments: Sequence[LogSegment], start: int) -> None:
        for number, segment in enumerate(segments):
            ends = segments[number + 1].base_offset if number + 1 < len(segments) else start + 1
            if ends <= start or not segment.size:
                continue
            fd = os.open(segment.path, os.O_RDONLY)
            try:
                walk = FileWalk(fd, 0, segment.size, headers_only=True)
                position = 0
                while position < segment.size:
                    walked = walk.step(until=position + _PIECE)
                    if walked.magic == BATCH:
                        self.appended(os.pread(fd, walked.stop - position, position))
                    if walked.stop == position:
                        break
                    position = walked.stop
            finally:
                os.close(fd)

    def assign(self, epoch: int, offset: int) -> None:
        """A batch of ``epoch`` begins at ``offset``, the log's end."""
        if epoch > (self._entries[-1][0] if self._entries else NO_EPOCH):
            self._entries = [*self._entries, (epoch, offset)]
            self._is_written = False

    def appended(self, data: BytesLike, *, one_epoch: bool = False) -> None:
        """Whole entries were produced, copied from a leader, or found in the log. ``one_epoch``:
        they are batches of one epoch."""
        if one_epoch:
            self.assign(leader_epoch_of(data), OFFSET.unpack_from(data)[0])
            return
        for entry in iter_entries(data):
            if entry.magic == BATCH:
                header = header_of(data, entry.position)
                self.assign(header.leader_epoch, header.base_offset)

    def truncate_to(self, offset: int) -> None:
        """Drop the epochs that begin at or above ``offset``, where the log now ends."""
        if self._entries and self._entries[-1][1] >= offset:
            self._entries = [entry for entry in self._entries if entry[1] < offset]
            self._is_written = False

    def epoch_at(self, offset: int) -> int:
        """The epoch of the batches around ``offset``; NO_EPOCH if there are none."""
        found = bisect_right([start for _, start in self._entries], offset)
        return self._entries[found - 1][0] if found else NO_EPOCH

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """(the newest epoch up to ``epoch``, the offset at which it ends); (-1, -1) for a log
        without batches."""
        if not self._entries or epoch < 0:
            return NO_EPOCH, -1
        found = bisect_right([each for each, _ in self._entries], epoch)
        end = self._entries[found][1] if found < len(self._entries) else log_end
        return (self._entries[found - 1][0] if found else epoch), end

    def write(self, log_start: int) -> bool:
        """Put the entries on disk if they have changed; false if the disk is full. Entries that end
        at or below ``log_start`` are left out. Safe on any thread. Raises OSError."""
        with self._lock:
            entries = self._entries
            if self._is_written:
                return True
            self._is_written = True
            ended = bisect_right([start for _, start in entries], log_start) - 1
            lines = [
                f"{epoch} {max(start, log_start)}" for epoch, start in entries[max(ended, 0) :]
            ]
            try:
                write_lines(self._path, lines)
            except OSError as error:
                self._is_written = False
                if not is_shortage(error):
                    raise
                return False
            return True


def _parse(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Raises ValueError."""
    entries: list[tuple[int, int]] = []
    for line in lines:
        epoch, start = map(int, line.split())
        if entries and (epoch <= entries[-1][0] or start < entries[-1][1]):
            raise ValueError(f"{line!r} is not in order")
        entries.append((epoch, start))
    return entries
