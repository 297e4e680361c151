"""Opening a partition's directory: interrupted swaps, damaged tails, lost indexes.

Mirrors loadSegments and recoverLog of kafka.log.Log and LogSegment.recover, with these safer
differences: an invalid index is rebuilt, and a file that is not a segment is skipped with a
warning (0.8.2.2 refuses to start); only damage cuts a log, not an entry that is larger than the
present max.message.bytes; segments that an interrupted swap has replaced are removed (0.8.2.2
keeps both).

Does not know retention, appends or other partitions.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from kafka08.log.directory import CLEANED_SUFFIX, put_aside, sync_directory, unlink_if_there
from kafka08.log.disk import is_full
from kafka08.log.segments import integrity
from kafka08.log.segments.file_walk import FileWalk
from kafka08.log.segments.index import ENTRY, ENTRY_SIZE, MAX_RELATIVE_OFFSET
from kafka08.log.segments.names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    REBUILT_INDEX_SUFFIX,
    REBUILT_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    remove_rebuilt,
)
from kafka08.log.segments.segment import LogSegment
from kafka08.log.segments.time_index import ENTRY as TIME_ENTRY
from kafka08.log.segments.time_index import MessageTime
from kafka08.log.segments.time_search import is_untimed_from
from kafka08.message.batch import NO_TIMESTAMP
from kafka08.message.entry import PAUSED
from kafka08.settings.topic import LogConfig

_OUR_SUFFIXES = (
    LOG_SUFFIX,
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    integrity.SEAL_SUFFIX,
    integrity.SEAL_SUFFIX + ".tmp",
    DELETED_SUFFIX,
    REBUILT_SUFFIX,
    REBUILT_INDEX_SUFFIX,
    CLEANED_SUFFIX,
    SWAP_SUFFIX,
    SNAPSHOT_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)

_REBUILT = (REBUILT_SUFFIX, REBUILT_INDEX_SUFFIX)
# Files that are derived from a log file, and have no meaning without it.
_INDEXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
_DERIVED = (*_INDEXES, integrity.SEAL_SUFFIX, *_REBUILT)
_INDEX_SWAPS = (INDEX_SUFFIX + SWAP_SUFFIX, TIME_INDEX_SUFFIX + SWAP_SUFFIX)
_UNFINISHED = (DELETED_SUFFIX, CLEANED_SUFFIX, *_INDEX_SWAPS)

_PIECE = 1 << 20

logger = logging.getLogger("kafka.log.Log")


class Loaded(NamedTuple):
    """An opened directory. ``dropped``: files of segments after damage, which may be deleted."""

    segments: list[LogSegment]
    log_end_offset: int
    recovery_point: int
    dropped: list[str]


def tell_nobody(count: int) -> None:
    """For a caller that does not follow the work."""


def bytes_to_recover(directory: str, recovery_point: int) -> int:
    """The size of the segments that ``load`` checks after a crash. Raises OSError."""
    if os.path.isfile(directory):
        return 0
    with os.scandir(directory) as entries:
        named = [(each, _base_of(each.name)) for each in entries if each.name.endswith(LOG_SUFFIX)]
        sizes = {base: each.stat().st_size for each, base in named if base is not None}
    first = max((base for base in sizes if base <= recovery_point), default=0)
    return sum(size for base, size in sizes.items() if base >= first)


def load(
    directory: str,
    config: LogConfig,
    recovery_point: int,
    clean: bool,
    now: int,
    tell: Callable[[int], object],
) -> Loaded:
    """Open every segment, recover those that may not be on disk, find the log's end.

    After a ``clean`` shutdown entries are not checked, and the recovery point is the log's end.
    Otherwise every segment from the one that holds ``recovery_point`` on is checked; ``tell`` is
    called with the numbers of bytes checked, which add up to ``bytes_to_recover`` unless segments
    are dropped.
    """
    if os.path.isfile(directory):
        put_aside(directory)
    if not os.path.isdir(directory):
        os.makedirs(directory)
    _finish_interrupted(directory, clean)
    segments = [LogSegment(directory, base, now) for base in _bases(directory)]
    dropped: list[str] = []
    if segments and not clean:
        dropped = _recover_from(segments, config, recovery_point, tell)
    for segment in segments:
        _ensure_index(segment, config, thorough=not clean)
        _ensure_time_index(segment, config, is_active=segment is segments[-1], thorough=not clean)
    if not clean:
        dropped += _drop_overtaken(segments)
    for segment in segments:
        segment.release()
    if not segments:
        segments = [LogSegment(directory, 0, now)]
    active = segments[-1]
    leo, end = active.next_offset()
    if end != active.size:
        logger.warning(
            "Found %d bytes that are not an entry at the end of %s, recovering it.",
            *(active.size - end, active.path),
        )
        recover(active, config)
        leo, _ = active.next_offset()
    active.load_newest()
    for segment in segments:
        _look_for_untimed(segment)
    _make_room(active, config)
    return Loaded(segments, leo, leo if clean else min(recovery_point, leo), dropped)


def recover(
    segment: LogSegment,
    config: LogConfig,
    before_cut: Callable[[int], object] | None = None,
    tell: Callable[[int], object] = tell_nobody,
) -> int:
    """Cut the segment after its last valid entry and rebuild its indexes; returns the bytes cut.

    ``before_cut`` is called with the offset after that entry, and ``tell`` with the sizes of pieces
    that have been walked, which add up to the size of the segment.

    A valid entry is whole, has a correct crc, and an offset above the previous one. An entry is
    indexed if it is more than index.interval.bytes after the last indexed one. Its index offset is
    one above the previous entry's, which is valid for plain entries and wrappers.
    """
    base, size = segment.base_offset, segment.size
    indexes = _NewIndexes(base, config.segment_index_bytes)
    walk = FileWalk(
        segment.file.fd, 0, size, check_crc=True, last=base - 1, up_to=base + MAX_RELATIVE_OFFSET
    )
    position, last, magic, told = 0, base - 1, 0, 0
    is_due = False  # whether to index the entry at position, if it is valid
    while True:
        newest = walk.newest
        walked = walk.step(until=position + config.index_interval_bytes + 1)
        if is_due and walked.count:
            indexes.add(last + 1, position, newest)
        last = walked.last if walked.count else last
        magic = max(walked.magic, magic)
        position = walked.stop
        is_due = walked.ended == PAUSED
        if position - told >= _PIECE:
            tell(position - told)
            told = position
        if not is_due:
            break
    segment.magic_found = magic
    cut = segment.size - position
    if cut:
        logger.warning(
            "Found invalid messages in log segment %s at byte offset %d: cutting %d bytes.",
            *(segment.path, position, cut),
        )
        if before_cut is not None:
            before_cut(last + 1)
        segment.cut(position)
        # The segment may not be synced again, and the cut bytes must not come back.
        os.fsync(segment.file.fd)
    indexes.write(segment, walk.newest)
    tell(size - told)
    return cut


class _NewIndexes:
    """The indexes of the segment that begins at ``base``, that of offsets in at most
    ``max_bytes``."""

    def __init__(self, base: int, max_bytes: int) -> None:
        self._base = base
        self._room = max(max_bytes // ENTRY_SIZE, 1) * ENTRY_SIZE
        self._entries = bytearray()
        self._times = bytearray()
        self._noted = NO_TIMESTAMP

    def add(self, offset: int, position: int, newest: tuple[int, int]) -> None:
        """Index an entry. ``newest``: the largest timestamp before it, and its offset."""
        if len(self._entries) < self._room:
            self._entries += ENTRY.pack(offset - self._base, position)
            self._note(newest)

    def _note(self, newest: tuple[int, int]) -> None:
        """Add the largest timestamp so far to the time index, if it has risen."""
        if newest[0] > self._noted:
            self._times += TIME_ENTRY.pack(newest[0], newest[1] - self._base)
        self._noted = newest[0]

    def write(self, segment: LogSegment, newest: tuple[int, int]) -> None:
        """Write both; ``newest`` is the largest timestamp of all. Raises OSError."""
        self._note(newest)
        # First: a start that finds a valid index may not come here again.
        _write_time_index(segment, self._times)
        _write_index(segment, self._entries)
        segment.newest = MessageTime(*newest)  # which the index lacks if there was no room


def _write_time_index(segment: LogSegment, entries: bytes | bytearray) -> None:
    """Write the time index; on a full disk without entries, as a start must not need room."""
    try:
        segment.time_index.replace(entries)
    except OSError as error:
        if not is_full(error):
            raise
        logger.warning("No room for the time index of %s: leaving it empty", segment.path)
        segment.time_index.replace(b"")
    if entries:
        sync_directory(os.path.dirname(segment.path))


def _write_index(segment: LogSegment, entries: bytes | bytearray) -> None:
    """Write the index; on a full disk with fewer entries, or no file: a start needs no room."""
    try:
        segment.index.replace(entries)
    except OSError as error:
        if not is_full(error):
            raise
        logger.warning("No room for the index of %s: leaving out entries", segment.path)
        if entries:
            pairs = range(0, len(entries) - ENTRY_SIZE, 2 * ENTRY_SIZE)
            sparser = b"".join(entries[at + ENTRY_SIZE : at + 2 * ENTRY_SIZE] for at in pairs)
            _write_index(segment, sparser)


def _make_room(active: LogSegment, config: LogConfig) -> None:
    """Extend the index of the active segment. On a full disk one without a file takes no entries,
    and the next set begins another segment."""
    try:
        active.index.preallocate(config.segment_index_bytes)
    except OSError as error:
        if not is_full(error):
            raise


def _finish_interrupted(directory: str, clean: bool) -> None:
    """Rename directories that have the names of this log's files. Remove .deleted and .cleaned
    files, complete swaps. After a crash remove the rebuilt entries of all segments: those of one
    may not describe it any more."""
    useless = _UNFINISHED if clean else _UNFINISHED + _REBUILT
    with os.scandir(directory) as entries:
        found = [(each.name, each.path, each.is_dir()) for each in entries]
    for name, path, is_directory in found:
        if is_directory and name.endswith(_OUR_SUFFIXES):
            put_aside(path)
    for name, path, is_directory in found:
        if is_directory:
            continue
        if name.endswith(useless):
            unlink_if_there(path)
        elif name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            _complete_swap(directory, name[: -len(SWAP_SUFFIX)])


def _complete_swap(directory: str, name: str) -> None:
    """Put a cleaned segment in place; it was complete before it got the suffix .swap.

    First remove the remaining segments that it replaces: the one with its own name, and those
    that begin inside it. They are the last of their group, which was renamed oldest first.
    Segments that begin after its last entry, if any, contain only superseded messages and may
    stay. The .swap file exists until the last step, so that a crash repeats all of this.
    """
    base = _base_of(name)
    swap = os.path.join(directory, name + SWAP_SUFFIX)
    logger.info("Found log file %s from interrupted swap operation, repairing.", swap)
    if base is None:
        logger.warning("Skipping %s: its name is not that of a segment.", swap)
        return
    following = _end_of(swap, base)
    for other in _bases(directory):
        if base < other < following:
            path = os.path.join(directory, f"{other:020d}{LOG_SUFFIX}")
            logger.info("Segment %s was replaced by %s, removing it.", path, name)
            _remove_side_files(path)
            os.unlink(path)
    path = os.path.join(directory, name)
    _remove_side_files(path)
    os.replace(swap, path)
    sync_directory(directory)


def _end_of(path: str, base: int) -> int:
    """The offset after the last entry of a log file that may have no index."""
    with open(path, "rb", buffering=0) as file:
        end = os.fstat(file.fileno()).st_size
        walked = FileWalk(file.fileno(), 0, end, headers_only=True, last=base - 1).step()
    return walked.last + 1 if walked.count else base


def _remove_side_files(path: str) -> None:
    """Remove the files derived from a log file: they do not describe its replacement."""
    integrity.remove(path)
    remove_rebuilt(path)
    for suffix in _INDEXES:
        unlink_if_there(path[: -len(LOG_SUFFIX)] + suffix)


def _bases(directory: str) -> list[int]:
    """Base offsets of the segments, ascending. Files derived from none of them are removed."""
    names = os.listdir(directory)
    logs = {name: _base_of(name) for name in names if name.endswith(LOG_SUFFIX)}
    for name in names:
        path = f"{directory}/{name}"
        if name in logs and logs[name] is None:
            logger.warning("Skipping %s: its name is not that of a segment.", path)
        elif name.endswith(_DERIVED) and name.rpartition(".")[0] + LOG_SUFFIX not in logs:
            if name.endswith(INDEX_SUFFIX):
                logger.warning(
                    "Found an orphaned index file, %s, with no corresponding log file.", path
                )
            os.unlink(path)
    return sorted(base for base in logs.values() if base is not None)


def _base_of(name: str) -> int | None:
    """The base offset in a segment's file name; None for other names."""
    digits = name[: -len(LOG_SUFFIX)]
    if len(digits) != 20 or not digits.isascii() or not digits.isdigit():
        return None
    base = int(digits)
    return base if base < 1 << 63 else None


def _recover_from(
    segments: list[LogSegment],
    config: LogConfig,
    recovery_point: int,
    tell: Callable[[int], object],
) -> list[str]:
    """Recover from the segment that holds ``recovery_point``; returns files dropped for damage.

    Segments after damage are removed before the damage is cut: after a crash in between, a log
    with these segments and without the damage would look whole. They stay if they continue with
    the next offset: then the damage is the rest of a failed append or of a truncation. Only
    compaction leaves a gap between segments.
    """
    dropped: list[str] = []

    def drop_behind(end: int) -> None:
        if any(s.base_offset != end for s in segments[number : number + 1]):
            dropped.extend(_drop_from(segments, number))

    number = max(
        (i for i, segment in enumerate(segments) if segment.base_offset <= recovery_point),
        default=0,
    )
    if number:
        _recover_cut(segments[number - 1], segments[number].base_offset, config)
    while number < len(segments):
        segment = segments[number]
        number += 1
        if number < len(segments) and integrity.is_intact(segment.path):
            logger.info("Segment %d (%s) is as sealed.", segment.base_offset, segment.path)
            tell(segment.size)
            continue
        logger.info("Recovering unflushed segment %d (%s).", segment.base_offset, segment.path)
        cut = recover(segment, config, drop_behind, tell)
        end, _ = segment.next_offset()
        if not config.compact:
            drop_behind(end)  # its end may be lost as a whole
        if cut or dropped:
            logger.warning("Corruption found in %s, truncating to offset %d.", segment.path, end)
        integrity.remove(segment.path)  # it does not match these bytes
    return dropped


def _recover_cut(segment: LogSegment, next_base: int, config: LogConfig) -> None:
    """Include the segment before the recovery point: a truncation down to that point may have
    cut it, and may have reached the disk only in part. Entries that reach into the segment after
    it (from ``next_base`` on) had been cut, and need not be whole."""
    _ensure_index(segment, config, thorough=True)
    end, position = segment.next_offset()
    if position != segment.size or end > next_base:
        recover(segment, config)
        return
    # A damaged file is replaced and not written to: a power cut could undo the write in part.
    _ensure_time_index(segment, config, is_active=False, thorough=True)
    # The last entry of the time index is written at the roll, when all else may be synced.
    segment.time_index.truncate_to(end)
    segment.load_newest(after_cut=True)
    segment.indexes.complete(segment.newest)


def _drop_from(segments: list[LogSegment], number: int) -> list[str]:
    """Remove the segments from ``number`` on, newest first; returns their files' new names."""
    renamed = [path for segment in segments[: number - 1 : -1] for path in segment.rename_deleted()]
    del segments[number:]
    if renamed:
        sync_directory(os.path.dirname(renamed[0]))
    return renamed


def _drop_overtaken(segments: list[LogSegment]) -> list[str]:
    """Remove the segments after one that reaches into the next one.

    A power cut undoes unsynced changes in any order: an old end of a segment can come back
    beside segments written after its truncation, or the other way round. Neither was flushed
    since, or the other would not exist.
    """
    for number, (segment, following) in enumerate(pairwise(segments)):
        end, _ = segment.next_offset()
        if end > following.base_offset:
            logger.warning(
                "Segment %s reaches offset %d, into the next one: dropping all segments after it.",
                *(segment.path, end),
            )
            return _drop_from(segments, number + 1)
    return []


def _ensure_index(segment: LogSegment, config: LogConfig, *, thorough: bool) -> None:
    """Rebuild the index if it is missing or does not match this log."""
    index = segment.index
    problem = index.problem(segment.size, thorough=thorough)
    if problem is None and index.entries:
        # An index offset is above the previous message's and at most that of its target.
        target = segment.header_at(index.last_position)
        if target is None or target[0] < index.last_offset:
            problem = "its last entry does not point at an entry of the log"
    if problem is not None:
        logger.warning("Rebuilding the index of %s: %s.", segment.path, problem)
        recover(segment, config)


def _ensure_time_index(
    segment: LogSegment, config: LogConfig, *, is_active: bool, thorough: bool
) -> None:
    """Rebuild the time index if it is damaged, or missing although there are timestamps.

    An active segment gets its first entry with that of the offset index.
    """
    problem = segment.time_index.problem(thorough=thorough)
    if problem is None and not segment.time_index.entries:
        if is_active and not segment.index.entries:
            return
        if segment.timestamp_at(segment.index.last_position) >= 0:
            problem = "it is missing"
    if problem is not None:
        logger.warning("Rebuilding the time index of %s: %s.", segment.path, problem)
        recover(segment, config)


def _look_for_untimed(segment: LogSegment) -> None:
    """See at its start and its end whether a segment with timestamps also has messages without."""
    if segment.newest.timestamp >= 0:
        end = segment.index.last_position
        segment.has_untimed = segment.first_timestamp < 0 or is_untimed_from(segment, end)
