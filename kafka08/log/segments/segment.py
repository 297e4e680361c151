"""One segment of a log: a file of entries and its indexes (kafka.log.LogSegment).

Only the headers of entries are read (int64 offset, int32 size): messages are not decoded, and a
wrapper counts as one entry at the offset of its last message. Does not know its neighbours or
the log's end; kafka08.log.log decides on retention and flushing.
"""

from __future__ import annotations

import os

from kafka08.errors import KafkaError
from kafka08.log.segments import integrity
from kafka08.log.segments.file_slice import FileSlice, SegmentFile
from kafka08.log.segments.file_walk import FileWalk
from kafka08.log.segments.index import MAX_RELATIVE_OFFSET, OffsetIndex
from kafka08.log.segments.indexes import SegmentIndexes
from kafka08.log.segments.names import SUFFIXES, mark_deleted, rebuilt_paths, remove_rebuilt
from kafka08.log.segments.time_index import NO_TIME, MessageTime, TimeIndex
from kafka08.log.segments.transaction_index import TransactionIndex
from kafka08.message.batch import RECORDS_AT
from kafka08.message.entry import ABOVE, LOG_OVERHEAD, MIN_MESSAGE_SIZE, OFFSET_AND_SIZE, SHORT
from kafka08.message.scan import newest_time, walk
from kafka08.settings.topic import LogConfig

_FIRST_READ = 8 << 10
_LONG_READ = 64 << 10


class LogSegment:
    """The segment of ``directory`` that begins at ``base_offset``; missing files are created.

    ``created`` (ms) and ``jitter_ms`` drive rolling by time: as in 0.8.2.2 the age counts from
    when this process opened the segment. ``size`` is bytes of whole, valid entries. ``rebuilt``:
    the same entries as consumers must get them, from the first one to the last one that was made
    (``.rebuilt`` files). ``newest``: the largest timestamp of all messages (``load_newest``).
    ``has_untimed``: there are messages without one, as far as it is known. ``magic_found``: the
    highest format among the entries that the start checked; -1 if it did not check them all.
    ``has_unclear``: ``newest`` and the time index may be wrong, because batches were written
    unchecked (``time_search.holds_unclear``); None if that is not known yet.
    """

    __slots__ = (
        "_aborted", "_file", "_first_timestamp", "_last_set_at", "_last_set_from", "base_offset",
        "bytes_since_index_entry", "created", "has_unclear", "has_untimed", "index", "indexes",
        "jitter_ms", "magic_found", "newest", "path", "rebuilt", "size", "time_index",
    )  # fmt: skip

    def __init__(
        self,
        directory: str,
        base_offset: int,
        created: int,
        jitter_ms: int = 0,
        suffixes: tuple[str, str, str] = SUFFIXES,
    ) -> None:
        stem = os.path.join(directory, f"{base_offset:020d}")
        self.path = stem + suffixes[0]
        self.base_offset = base_offset
        self.index = OffsetIndex(stem + suffixes[1], base_offset)
        self.time_index = TimeIndex(stem + suffixes[2], base_offset)
        self.indexes = SegmentIndexes(self.index, self.time_index)
        self.newest = self.time_index.last
        self.has_untimed = False
        self.has_unclear: bool | None = None
        self._first_timestamp: int | None = None
        self.rebuilt: LogSegment | None = None
        self.created = created
        self.jitter_ms = jitter_ms
        self.bytes_since_index_entry = 0
        self.magic_found = -1
        self._aborted: TransactionIndex | None = None
        self._file: SegmentFile | None = None
        # The position of the last set appended, which waiting readers fetch next.
        self._last_set_from, self._last_set_at = -1, 0
        try:
            self.size = os.stat(self.path).st_size
        except FileNotFoundError:
            self._file = SegmentFile.open(self.path, os.O_RDWR | os.O_CREAT)
            self.size = 0

    @property
    def file(self) -> SegmentFile:
        """The open log file; opened on first use."""
        if self._file is None:
            self._file = SegmentFile.open(self.path)
        return self._file

    @property
    def aborted(self) -> TransactionIndex:
        """The transactions that markers of this segment abort."""
        if self._aborted is None:
            self._aborted = TransactionIndex.beside(self.path)
        return self._aborted

    # Write

    def append(
        self,
        first_offset: int,
        data: memoryview,
        index_interval_bytes: int,
        *,
        sendable: bool = False,
        later: bool = False,
        newest: MessageTime = NO_TIME,
    ) -> bool:
        """Write a checked set whose first message has ``first_offset``, and maybe index it.

        An index entry for the set is added if more than ``index_interval_bytes`` were appended
        since the last one. It is written after the set, with others, so that on a full disk the
        index is sparser but valid. ``sendable``: consumers may be sent the set as it is; ``later``:
        those that read all formats may be; ``newest``: its largest timestamp. Returns whether a
        file was made. Raises OSError if the write fails; then no part of the set is left.
        """
        position = self.size
        self._write(data, position)
        has_untimed = self.has_untimed or newest.timestamp < 0
        if newest.timestamp <= self.newest.timestamp:
            newest = self.newest
        had_file = self.time_index.exists
        if self.bytes_since_index_entry > index_interval_bytes and not self.index.is_full:
            try:
                self.indexes.append(newest, first_offset, position)
            except OSError:
                os.ftruncate(self.file.fd, position)
                raise
            self.bytes_since_index_entry = 0
        self.newest, self.has_untimed = newest, has_untimed
        self.size = position + len(data)
        file = self.file
        if sendable and file.sendable_until == position:
            file.sendable_until = self.size
        if later and file.later_until == position:
            file.later_until = self.size
        file.family.appended(data, position, sendable)
        self.bytes_since_index_entry += len(data)
        self._last_set_from, self._last_set_at = first_offset, position
        return self.time_index.exists and not had_file

    def _write(self, data: memoryview, position: int) -> None:
        fd = self.file.fd
        total = len(data)
        try:
            written = os.pwrite(fd, data, position)
            while written < total:
                count = os.pwrite(fd, data[written:], position + written)
                if not count:
                    raise OSError(f"wrote {written} of {total} bytes to {self.path}")
                written += count
        except OSError:
            os.ftruncate(fd, position)
            raise

    def should_roll(
        self, config: LogConfig, set_bytes: int, last_offset: int, now: int, newest: int
    ) -> bool:
        """Whether a set should rather begin the next segment (LogSegment.shouldRoll). ``newest``:
        the largest timestamp of the set, -1 without one. Raises OSError."""
        age = in_use = now - self.created
        if newest >= 0 and self.first_timestamp >= 0:
            age = newest - self.first_timestamp
        return (
            self.size > config.segment_bytes - set_bytes
            or age > config.segment_ms - self.jitter_ms
            or (config.compact and max(age, in_use) > config.max_compaction_lag_ms)
            or self.index.is_full
            or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
        )

    # Read

    def position_of(self, offset: int, lower_bound: int = 0) -> int | None:
        """Position of the first entry with an offset >= ``offset``; None if there is none.

        The search begins at ``lower_bound`` or later. Raises KafkaError on a broken header.
        """
        if offset == self._last_set_from and lower_bound <= self._last_set_at:
            return self._last_set_at
        position, end = max(self.index.lookup(offset), lower_bound), self.size
        fd = self.file.fd
        want = _FIRST_READ
        while position + LOG_OVERHEAD <= end:
            chunk = os.pread(fd, min(want, end - position), position)
            walked = walk(chunk, 0, len(chunk), up_to=offset - 1, reach=1 << 62)
            position += walked.stop
            if walked.ended == ABOVE:
                return position
            if walked.ended == SHORT:
                size = OFFSET_AND_SIZE.unpack_from(chunk, walked.stop)[1]
                raise KafkaError(f"Invalid message size: {size} in {self.path}")
            if not walked.count:
                raise KafkaError(f"{self.path} ends at {position + len(chunk)}, not at {end}")
            want = _LONG_READ if walked.stop < _LONG_READ else _FIRST_READ
        return None

    def read(self, offset: int, max_bytes: int, max_offset: int | None) -> FileSlice | None:
        """At most ``max_bytes`` from the first entry at or above ``offset``; None if none is.

        Entries at or above ``max_offset`` stay out, so a wrapper that contains it does too.
        """
        position = self.position_of(offset)
        if position is None:
            return None
        end = self.size
        if max_offset is not None and self.index.lookup(max_offset) - position < max_bytes:
            bound = self.position_of(max_offset, position)
            if bound is not None:
                end = bound
        return FileSlice(self.file, position, min(end - position, max_bytes), self.base_offset)

    def for_consumer(self, offset: int) -> LogSegment:
        """The segment to read ``offset`` from for a consumer: ``rebuilt`` if it reaches so far."""
        rebuilt = self.rebuilt
        return self if rebuilt is None or offset >= rebuilt.index.last_offset else rebuilt

    def read_for_consumer(
        self, offset: int, max_bytes: int, max_offset: int | None
    ) -> FileSlice | None:
        """``read``, of rebuilt entries where there are any. A first entry that has become larger
        than ``max_bytes`` is read as stored."""
        rebuilt = self.for_consumer(offset)
        if rebuilt is not self:
            found = rebuilt.read(offset, max_bytes, max_offset)
            header = rebuilt.header_at(found.position) if found is not None and found.size else None
            if found is not None and (not found.size or (header and header[1] <= found.end)):
                return found
        return self.read(offset, max_bytes, max_offset)

    def next_offset(self) -> tuple[int, int]:
        """(offset after the last whole entry, position after it), found from the last index
        entry. The position is below ``size`` if bytes follow that are not an entry."""
        position = self.index.last_position
        walked = FileWalk(
            self.file.fd,
            position,
            self.size,
            headers_only=True,
            last=self.base_offset - 1,
            chunk=_LONG_READ,
        ).step()
        return (walked.last + 1 if walked.count else self.base_offset), walked.stop

    def header_at(self, position: int) -> tuple[int, int] | None:
        """(offset, end position) of the entry at ``position``; None if there is no valid entry."""
        header = os.pread(self.file.fd, LOG_OVERHEAD, position)
        if len(header) < LOG_OVERHEAD:
            return None
        offset, size = OFFSET_AND_SIZE.unpack(header)
        end = position + LOG_OVERHEAD + size
        return (offset, end) if size >= MIN_MESSAGE_SIZE and end <= self.size else None

    def load_newest(self, *, after_cut: bool = False) -> None:
        """Find the largest timestamp: that of the time index, or of what follows the last entry of
        the offset index. Raises OSError.

        ``after_cut``: entries of the time index may have been cut. Each of them stood for the
        messages before it too, so those after the last entry that is left are read.
        """
        noted = self.time_index
        begin = self.index.last_position
        if after_cut:
            begin = self.index.lookup(noted.last.offset) if noted.entries else 0
        self.newest = noted.last
        tail = FileWalk(self.file.fd, begin, self.size, chunk=_LONG_READ)
        tail.step()
        if tail.newest[0] > self.newest.timestamp:
            self.newest = MessageTime(*tail.newest)

    def timestamp_at(self, position: int) -> int:
        """The timestamp of the entry at this position; -1 without one. Raises OSError."""
        start = os.pread(self.file.fd, RECORDS_AT, position)
        timestamp: int = newest_time(start, 0, len(start))[0]
        return timestamp

    @property
    def first_timestamp(self) -> int:
        """The timestamp of the first entry; -1 without one. Raises OSError."""
        if self._first_timestamp is None and self.size:
            self._first_timestamp = self.timestamp_at(0)
        return -1 if self._first_timestamp is None else self._first_timestamp

    @property
    def largest_timestamp(self) -> int:
        """The time of the newest message, ms since the epoch; retention uses it. Messages without
        a timestamp are as old as the last change of the file (LogSegment.largestTimestamp)."""
        if self.newest.timestamp < 0:
            return self.last_modified_ms
        if self.has_untimed:
            return max(self.newest.timestamp, self.last_modified_ms)
        return self.newest.timestamp

    @property
    def oldest_ms(self) -> int:
        """A time before which no message was written, as far as it is known: that of the first
        message, which may be any claim, or of the file's last change if that is earlier (ms).
        Raises OSError."""
        first, modified = self.first_timestamp, self.last_modified_ms
        return min(first, modified) if first > 0 else modified

    @property
    def last_modified_ms(self) -> int:
        """Time of the file's last change, ms since the epoch."""
        return os.stat(self.path).st_mtime_ns // 1_000_000

    def open_for_sync(self) -> list[SegmentFile]:
        """The files, for fsync on any thread while this segment is in use. Syncing the index
        file also writes the pages of its map."""
        files = [self.file]
        paths = [self.index.path]  # one without entries too: a cut may have removed them
        paths += [each.path for each in (self.time_index, self.aborted) if each.exists]
        for path in paths:
            try:
                files.append(SegmentFile.open(path))
            except FileNotFoundError:
                pass  # it can be rebuilt, unlike the log
        return files

    # Cut, rename, close

    def truncate_to(self, offset: int, now: int) -> bool:
        """Cut at the first entry at or above ``offset``, which needs no room on the disk. Whether
        the time index was cut as well. The caller then lets it ``take_appends``.

        A wrapper that contains ``offset`` goes as a whole.
        """
        position = self.position_of(offset)
        if position is None:
            return False
        self.indexes.lose_gathered()
        self.index.truncate_to(offset, position)
        self.cut(position)
        cuts_times = self.time_index.last.offset >= offset
        if cuts_times:
            # If a power cut brings the messages back, their times must still be there.
            os.fsync(self.file.fd)
            self.time_index.truncate_to(offset)
        if self.newest.timestamp >= 0:
            self.load_newest(after_cut=cuts_times)
        self.bytes_since_index_entry = 0
        self.has_unclear = None
        if not self.size:
            self.created = now
        return cuts_times

    def take_appends(self, max_index_bytes: int, *, cuts_times: bool) -> None:
        """Make room in the index, and note the largest timestamp again if ``truncate_to`` cut the
        time index. Raises OSError."""
        if cuts_times and self.newest.timestamp >= 0:
            self.time_index.append(self.newest)
        self.indexes.write_out()
        self.index.preallocate(max_index_bytes)

    def cut(self, position: int) -> None:
        """End the file at ``position``."""
        integrity.remove(self.path)
        self.drop_rebuilt()
        file = self.file
        os.ftruncate(file.fd, position)
        file.sendable_until = min(file.sendable_until, position)
        file.later_until = min(file.later_until, position)
        file.family.cut(position)
        file.renew()
        self.size = position
        self._last_set_from = -1
        self._first_timestamp = None

    def rename_deleted(self) -> list[str]:
        """Give all files the suffix .deleted and close them; returns the new paths."""
        self.release()
        integrity.remove(self.path)
        self.rebuilt = None
        others = (self.time_index.path, self.aborted.path, *rebuilt_paths(self.path))
        return mark_deleted((self.path, self.index.path, *filter(os.path.exists, others)))

    def drop_rebuilt(self) -> None:
        """Remove the rebuilt entries; slices in flight stay readable."""
        self.rebuilt = None
        remove_rebuilt(self.path)

    @property
    def is_open(self) -> bool:
        """Whether the log file is open."""
        return self._file is not None

    def release(self) -> None:
        """Close the files until they are used again. Nothing more is written to them."""
        self.indexes.release()
        self._file = None

    def close(self) -> None:
        """Trim the index and close the files; slices in flight stay readable. Raises OSError."""
        self.indexes.close()
        self._file = None
