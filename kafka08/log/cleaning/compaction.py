"""Compacts the sealed segments of one log into new files beside them.

Mirrors kafka.log.Cleaner up to the swap: a group of segments becomes ``<first base>.log.cleaned``
and ``.index.cleaned`` on disk, and is reported to the caller. Existing files are not changed. The
broker runs this module as a child process (``main``), because in the broker the interpreter's lock
would block requests meanwhile.

Differences from the original, all of them faults there: wrappers are read by their own sizes and
stay compressed; messages without a key survive; the checkpoint need not be a segment's base, and a
full map ends a pass at any offset; damage ends the cleaning of only this log, with an error. Does
not know Log, checkpoints or schedules.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from kafka08.errors import InvalidMessageError, KafkaError
from kafka08.log.child_process import print_event, received_job
from kafka08.log.cleaning.cleaner_job import (
    CleanedGroup,
    CleanerStats,
    CompactionEvent,
    Job,
    SealedSegment,
    decode_job,
    remove_cleaned,
)
from kafka08.log.cleaning.key_map import KeyMap, refuse, with_true_offsets, wrapper_leaves
from kafka08.log.cleaning.throttler import Throttler
from kafka08.log.cleaning.transactions import Aborted, Markers
from kafka08.log.directory import CLEANED_SUFFIX
from kafka08.log.disk import write_all
from kafka08.log.segments.index import MAX_RELATIVE_OFFSET
from kafka08.log.segments.names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from kafka08.log.segments.time_index import ENTRY as TIME_ENTRY
from kafka08.log.segments.time_index import MessageTime
from kafka08.message.batch import NO_TIMESTAMP, header_of
from kafka08.message.compression import SMALLER, compress
from kafka08.message.entry import (
    BATCH,
    OFFSET,
    PAUSED,
    TIMED,
    WRAPPER,
    Walked,
    codec_of,
    encode_entry,
    key_and_value,
    magic_of,
    offset_and_stop,
)
from kafka08.message.retained import emptied, retained
from kafka08.message.scan import newest_time, walk

MAX_SEGMENT_BYTES = (1 << 31) - 1
NICENESS = 10

_MIN_BUFFER = 4096
_INDEX_ENTRY_BYTES = 8
_STRETCH = 256 * 1024  # bytes of messages processed at a time


Say = Callable[[str], None]
Done = Callable[[CleanedGroup], None]


def clean(job: Job, say: Say, done: Done, throttler: Throttler) -> tuple[int, CleanerStats]:
    """Clean one log as far as one map reaches; returns the first offset not cleaned and statistics.

    ``say`` receives the lines of the original's log, ``done`` each group when it is on disk.
    Raises KafkaError (damage in the log) and OSError.
    """
    started = time.monotonic()
    say(f"Beginning cleaning of log {job.name}.")
    say(f"Building offset map for {job.name}...")
    reader = ThrottledReader(job.io_buffer_bytes, throttler)
    aborted = Aborted(job.aborted)
    key_map = KeyMap(job.max_entries, aborted)
    end_offset = build_offset_map(job, key_map, reader, say)
    map_bytes, map_seconds = reader.bytes_read, time.monotonic() - started
    below = job.tombstones_below
    say(f"Cleaning log {job.name} (discarding tombstones prior to offset {below})...")
    # The last mapped message stays: its offset shows followers how far the log reaches.
    below = min(below, key_map.last_offset)
    survival = Survival(key_map, below, aborted, Markers(below, job.producer_epochs))
    writers = [
        _clean_group(job, group, survival, reader, say, done)
        for group in group_segments(job, end_offset)
    ]
    return end_offset, CleanerStats(
        map_bytes,
        map_seconds,
        reader.bytes_read - map_bytes,
        sum([writer.size for writer in writers]),
        sum([writer.messages_read for writer in writers]),
        sum([writer.messages_written for writer in writers]),
        time.monotonic() - started,
        len(key_map) / job.max_entries,
    )


class ThrottledReader:
    """Reads log files in pieces of whole entries, at the throttled rate."""

    def __init__(self, buffer_bytes: int, throttler: Throttler) -> None:
        self.buffer_bytes = max(buffer_bytes, _MIN_BUFFER)
        self.throttler = throttler
        self.bytes_read = 0

    def walk(self, path: str, size: int, take: Callable[[bytes], int | None]) -> None:
        """Pass the first ``size`` bytes of a file to ``take``, which returns how many it used:
        0 if it needs more for a whole entry, None to stop."""
        with open(path, "rb", buffering=0) as file:
            position, want = 0, self.buffer_bytes
            while position < size:
                data = os.pread(file.fileno(), min(want, size - position), position)
                used = take(data)
                if used is None:
                    return
                self.bytes_read += used
                self.throttler.maybe_throttle(used)
                position += used
                if used:
                    want = self.buffer_bytes
                elif len(data) < min(want, size - position) or position + len(data) >= size:
                    raise InvalidMessageError(f"{path} ends inside an entry at {position}")
                else:
                    want = len(data) * 2


def build_offset_map(job: Job, key_map: KeyMap, reader: ThrottledReader, say: Say) -> int:
    """Map as much of the dirty part as fits; returns the first offset not mapped.

    That offset is the base of a segment, as the original's checkpoint must be, unless not even
    the first dirty segment fits into the map; then it lies within that segment.
    """
    dirty = [s for s in job.sources if s.next_base_offset > job.first_dirty_offset]
    start, end = job.first_dirty_offset, job.first_dirty_offset
    say(
        f"Building offset map for log {job.name} for {len(dirty)} segments in offset range "
        f"[{start}, {dirty[-1].next_base_offset if dirty else start})."
    )

    def take(data: bytes) -> int | None:
        used = key_map.add(data, start)
        return None if key_map.is_full else used

    for source in dirty:
        if key_map.is_full:
            break
        reader.walk(job.path(source.base_offset), source.size, take)
        if not key_map.is_full:
            end = source.next_base_offset
    if end == start and key_map.last_offset >= start:
        end = key_map.last_offset + 1
    say(f"Offset map for log {job.name} complete.")
    return end


def group_segments(job: Job, end_offset: int) -> list[list[SealedSegment]]:
    """The segments below ``end_offset``, in runs that fit one segment (groupSegmentsBySize).

    Sizes are those before the cleaning. A run spans at most the offsets that an index can hold.
    """
    groups: list[list[SealedSegment]] = []
    size = index_size = 0
    for source in job.sources:
        if source.base_offset >= end_offset:
            break
        if (
            groups
            and size + source.size < job.segment_bytes
            and index_size + source.index_size < job.segment_index_bytes
            and source.next_base_offset - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
        ):
            groups[-1].append(source)
            size += source.size
            index_size += source.index_size
        else:
            groups.append([source])
            size, index_size = source.size, source.index_size
    return groups


def _clean_group(
    job: Job,
    group: list[SealedSegment],
    survival: Survival,
    reader: ThrottledReader,
    say: Say,
    done: Done,
) -> Writer:
    base = group[0].base_offset
    writer = Writer(job, base, survival, reader.throttler)
    try:
        for source in group:
            path = job.path(source.base_offset)
            retain = source.base_offset >= job.tombstones_below
            say(
                f"Cleaning segment {source.base_offset} in log {job.name} (last modified "
                f"{_date(os.stat(path).st_mtime)}) into {base}, "
                f"{'retaining' if retain else 'discarding'} deletes."
            )
            reader.walk(path, source.size, writer.take)
        changed = writer.dropped or len(group) > 1
        if changed:
            writer.finish(os.stat(job.path(group[-1].base_offset)).st_mtime_ns)
    finally:
        writer.close()
    if not changed:
        remove_cleaned(job.directory, base)
    done(CleanedGroup(tuple([s.base_offset for s in group]), changed, writer.size))
    return writer


class Survival(NamedTuple):
    """The grounds for a pass to keep messages."""

    key_map: KeyMap
    tombstones_below: int
    aborted: Aborted
    markers: Markers


class Writer:
    """The cleaned segment of a group, being written.

    Stretches of the source in which all messages survive are copied unchanged. ``dropped`` is
    true if the content differs from the source's.
    """

    def __init__(
        self, job: Job, base_offset: int, survival: Survival, throttler: Throttler
    ) -> None:
        self._job = job
        self._throttler = throttler
        self._base_offset = base_offset
        self._survival = survival
        self._key_map = survival.key_map
        self._producer_ends = frozenset(job.producer_ends)
        stem = job.path(base_offset).removesuffix(LOG_SUFFIX)
        self._path = stem + LOG_SUFFIX + CLEANED_SUFFIX
        self._index_path = stem + INDEX_SUFFIX + CLEANED_SUFFIX
        self._time_index_path = stem + TIME_INDEX_SUFFIX + CLEANED_SUFFIX
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        self._index = bytearray()
        self._index_room = max(job.segment_index_bytes // _INDEX_ENTRY_BYTES, 1) * (
            _INDEX_ENTRY_BYTES
        )
        self._indexed = 0  # position of the last index entry
        self._times = bytearray()
        self._newest = self._last_time = MessageTime(NO_TIMESTAMP, base_offset)
        self._last = base_offset - 1  # offset of the last entry read
        self.tombstones_below = survival.tombstones_below
        self.size = 0
        self.messages_read = 0
        self.messages_written = 0
        self.dropped = False

    def take(self, data: bytes) -> int:
        """Write the surviving entries of ``data``; returns the bytes processed.

        Raises InvalidMessageError (crc, sizes, order) and the errors of ``wrappers.leaves``.
        """
        view = memoryview(data)
        position, end = 0, len(data)
        while True:
            walked = walk(
                data, position, end, check_crc=True, last=self._last, until=position + _STRETCH
            )
            if walked.count:
                self._take_plain(data, view, position, walked)
            position = walked.stop
            if walked.ended == WRAPPER:
                position = self._take_wrapper(data, view, position)
            elif walked.ended != PAUSED:
                refuse(data, walked, self._last)
                break
        return position

    def _take_plain(self, data: bytes, view: memoryview, position: int, walked: Walked) -> None:
        """Write the surviving messages of a stretch of plain messages."""
        stretches, kept = self._key_map.survivors(
            data, position, walked.stop, self.tombstones_below
        )
        place = self.size
        for start, stop in stretches:
            self._index_stretch(data, start, stop, place - start)
            place += stop - start
        self.dropped = self.dropped or kept < walked.count
        self._last = walked.last
        self.messages_read += walked.count
        self.messages_written += kept
        if stretches:
            parts = [view[start:stop] for start, stop in stretches]
            self._write(parts[0] if len(parts) == 1 else b"".join(parts))

    def _index_stretch(self, data: bytes, position: int, stop: int, shift: int) -> None:
        """Note the entries that are far enough apart, at the places they will have."""
        interval = self._job.index_interval_bytes
        while position < stop:
            due = max(self._indexed + interval + 1 - shift, position)
            position = walk(data, position, stop, until=due).stop
            if position < stop:
                self._indexed = position + shift
                self._add_index_entry(OFFSET.unpack_from(data, position)[0], self._indexed)

    def _take_wrapper(self, data: bytes, view: memoryview, position: int) -> int:
        """Write the surviving messages of a wrapper; returns where it ends."""
        offset, stop = offset_and_stop(data, position)
        instead, first = self._wrapper(data, position, stop, offset)
        self._last = offset
        self.messages_read += 1
        self.dropped = self.dropped or instead is not None
        if instead == b"":
            return stop
        self.messages_written += 1
        if self.size - self._indexed > self._job.index_interval_bytes:
            self._indexed = self.size
            self._add_index_entry(first, self.size)
        kept = view[position:stop] if instead is None else instead
        if magic_of(kept):
            newest = MessageTime(*newest_time(kept, 0, len(kept)))
            self._newest = newest if newest.timestamp > self._newest.timestamp else self._newest
        self._write(kept)
        return stop

    def _add_index_entry(self, offset: int, position: int) -> None:
        """Index an entry by the offset of its first message, as an append does."""
        if len(self._index) < self._index_room:
            relative = offset - self._base_offset
            self._index += relative.to_bytes(4, "big") + position.to_bytes(4, "big")
            self._add_time()

    def _add_time(self) -> None:
        """Note the largest timestamp if it has risen."""
        if self._newest.timestamp > self._last_time.timestamp:
            self._last_time = self._newest
            relative = self._newest.offset - self._base_offset
            self._times += TIME_ENTRY.pack(self._newest.timestamp, relative)

    def _wrapper(
        self, data: bytes, position: int, stop: int, offset: int
    ) -> tuple[bytes | None, int]:
        """The bytes to write instead of a wrapper (none, a smaller wrapper, or None to keep it),
        and the offset of their first message, or one below it that no earlier entry has."""
        magic = magic_of(data, position)
        if magic == BATCH:
            first = OFFSET.unpack_from(data, position)[0]
            return self._batch(data[position:stop]), first
        if magic == TIMED:
            entry = data[position:stop]
            return self._limited(retained(entry, self._goes), len(entry)), self._last + 1
        found = wrapper_leaves(data, position, stop)
        table = with_true_offsets(found, offset)
        stretches, kept = self._key_map.survivors(table, 0, len(table), self.tombstones_below)
        if not kept:
            return b"", offset
        first = OFFSET.unpack_from(table, stretches[0][0])[0]
        if kept == found.count and found.exact and table is found.data:
            return None, first
        table = b"".join([table[start:end] for start, end in stretches])
        last = walk(table, 0, len(table)).last
        span, _ = key_and_value(data, position, stop)
        key = None if span is None else data[span[0] : span[1]]
        codec = codec_of(data, position)
        instead = encode_entry(key, compress(codec, table, level=SMALLER), last, codec)
        return self._limited(instead, stop - position), first

    def _batch(self, entry: bytes) -> bytes | None:
        """The bytes to write instead of a batch, or None to keep it."""
        header = header_of(entry)
        survival = self._survival
        instead: bytes | None
        if header.is_control:
            return None if survival.markers.stays(header) else b""
        if header in survival.aborted:
            instead = b""
            if header.last_offset in self._producer_ends:
                instead = emptied(entry) if header.count else None
        else:
            instead = self._limited(retained(entry, self._goes, self._producer_ends), len(entry))
        if header.is_transactional and instead != b"":
            survival.markers.kept(header)
        return instead

    def _goes(self, key: bytes, offset: int, is_null: bool) -> bool:
        """Whether compaction removes a message."""
        if self._key_map.is_superseded(key, offset):
            return True
        return is_null and offset < self.tombstones_below

    def _limited(self, instead: bytes | None, size: int) -> bytes | None:
        """``instead`` of an entry with ``size`` bytes, or None. A message larger than the limit
        would block consumers; superseded ones are harmless."""
        limit = max(size, self._job.max_message_bytes)
        return instead if instead is None or len(instead) <= limit else None

    def _write(self, data: bytes | memoryview) -> None:
        if self.size + len(data) > MAX_SEGMENT_BYTES:
            raise KafkaError(f"{self._path} would not fit a segment")
        write_all(self._fd, data, self.size)
        self.size += len(data)
        self._throttler.maybe_throttle(len(data))

    def finish(self, modified_ns: int) -> None:
        """Sync the files, with the modification time of the group's last segment."""
        os.utime(self._fd, ns=(modified_ns, modified_ns))
        os.fsync(self._fd)
        _write_synced(self._index_path, self._index, modified_ns)
        self._add_time()
        if self._times:
            _write_synced(self._time_index_path, self._times, modified_ns)

    def close(self) -> None:
        os.close(self._fd)


def _write_synced(path: str, data: bytearray, modified_ns: int) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        write_all(fd, data, 0)
        os.utime(fd, ns=(modified_ns, modified_ns))
        os.fsync(fd)
    finally:
        os.close(fd)


def _date(seconds: float) -> str:
    """A time in the format of Java's Date."""
    return time.strftime("%a %b %d %H:%M:%S %Z %Y", time.localtime(seconds))


# The child process


def events(job: Job, emit: Callable[[CompactionEvent], None], throttler: Throttler) -> None:
    """Run ``clean`` and emit its events; the last one is the end or an error."""
    try:
        end, stats = clean(
            job,
            lambda text: emit({"say": text}),
            lambda group: emit({"group": group}),
            throttler,
        )
    except (KafkaError, OSError) as error:
        event: CompactionEvent = {"error": str(error) or type(error).__name__}
        if isinstance(error, OSError) and error.errno is not None:
            event["errno"] = error.errno
        emit(event)
    else:
        emit({"end": end, "stats": stats})


def main() -> None:
    """Run the job read from standard input, and print events as lines of JSON."""
    job = decode_job(received_job(NICENESS))
    rate = job.rate if job.throttle_fd >= 0 else float("inf")
    events(job, print_event, Throttler(rate, job.throttle_fd))


if __name__ == "__main__":
    main()
