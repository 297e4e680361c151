"""Segments with entries that 0.8.2.2 cannot read, rewritten as 0.8.2.2 would have them.

A wrapper whose inner offsets are not the true ones becomes one that has them, like what 0.8.2.2
makes at append: null key, nesting flattened. No message changes its offset. A wrapper that would
grow past the largest message allowed is split, for 0.8.2.2 takes a larger one for damage when it
recovers a log, and its followers refuse it; a file that would reach 2 GiB goes on in another
segment. Entries of later formats become messages of format 0 (``lowering``); those of aborted
transactions go. Knows the files of one segment, which no other process may have open.

New files are written beside the segment as ``.converted``. When all of them are on disk, they are
renamed to ``.swap``: a broker of either kind that finds such a file puts it in the segment's place,
as after a cleaning, and so does the next run.
"""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from typing import BinaryIO, NamedTuple

from kafka08.common import Closing
from kafka08.errors import InvalidMessageError, KafkaError
from kafka08.log.cleaning.transactions import Aborted
from kafka08.log.directory import sync_directory, unlink_if_there
from kafka08.log.log import Log
from kafka08.log.segments import integrity
from kafka08.log.segments.index import ENTRY, ENTRY_SIZE, OffsetIndex
from kafka08.log.segments.names import INDEX_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX, remove_rebuilt
from kafka08.message.batch import header_of
from kafka08.message.compression import LZ4, NONE, compress
from kafka08.message.entry import (
    BATCH,
    OFFSET,
    BytesLike,
    Entry,
    codec_of,
    encode_entry,
    has_right_crc,
    key_and_value,
    magic_of,
)
from kafka08.message.leaves import leaves
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.message.wrappers import number, numbered_from
from kafka08.runtime import SystemClock
from kafka08.settings.topic import LogConfig
from tools.logs.lowering import LOSSES, Lowered, filler, lowered, lowered_offsets

CONVERTED_SUFFIX = ".converted"
# Files beside a segment that belong to later formats.
LATER_SUFFIXES = (".timeindex", ".snapshot", ".txnindex")
MAX_SEGMENT_BYTES = (1 << 31) - 1
_STEP = 4 << 20
_BUFFER = 1 << 20
_LZ4_HEADER_BYTES = 7


class SegmentLimits(NamedTuple):
    """How a segment is written: by the settings of the broker that is to take it."""

    max_message_bytes: int
    index_interval_bytes: int = 4096
    max_index_bytes: int = 10 << 20
    max_segment_bytes: int = MAX_SEGMENT_BYTES
    gzip_level: int = 6
    offsets_topic: bool = False


NOTHING = Aborted()
COUNTS = ("wrappers", "made", "oversized", "later", *LOSSES, "fillers")
"""How many wrappers were rewritten, into how many ``made`` ones, and how many of these are
``oversized``: they hold one message and still are above the limit. How many entries of ``later``
formats or versions were rewritten, and what they lost. ``fillers``: messages in the place of a lost
last entry."""


class Done(NamedTuple):
    """The result of converting a segment, or of a dry run.

    ``bases``: of the segments there are now. ``problems``: what was left as it is because it cannot
    be read. ``counts``: see COUNTS.
    """

    size_before: int
    size_after: int
    bases: tuple[int, ...]
    problems: tuple[str, ...]
    counts: Counter[str]


class NotWalkableError(KafkaError):
    """A log file has bytes that are not an entry: the entries after them cannot be found."""


def index_path(log_path: str) -> str:
    return log_path[: -len(LOG_SUFFIX)] + INDEX_SUFFIX


def base_of(log_path: str) -> int:
    return int(os.path.basename(log_path)[: -len(LOG_SUFFIX)])


# Entries


class Right(NamedTuple):
    """The replacement of an entry; ``low`` if it could not be read for its format or versions."""

    entries: list[bytes]
    low: Lowered | None = None


def right_entries(
    entry: BytesLike, limits: SegmentLimits, aborted: Aborted = NOTHING
) -> Right | None:
    """The entries of format 0 that replace an entry; None if it stays as it is. Raises KafkaError
    when it fails its crc or cannot be inflated, or is a wrapper that holds nothing."""
    if not has_right_crc(entry, 0, len(entry)):
        raise InvalidMessageError("wrong crc")
    if magic_of(entry) == BATCH and (batch := header_of(entry)) in aborted:
        return Right([], Lowered(b"", NONE, Counter(aborted=batch.count)))
    low = lowered_offsets(entry) if limits.offsets_topic else lowered(entry)
    if low is None:
        return _right_wrappers(entry, limits) if codec_of(entry) else None
    table = memoryview(low.table)
    rows = list(iter_entries(table))
    if low.codec and rows:
        return Right(list(_wrap(table, rows[-1].offset, low.codec, limits)), low)
    return Right([bytes(table[row.position : row.stop]) for row in rows], low)


def _right_wrappers(entry: BytesLike, limits: SegmentLimits) -> Right | None:
    """The wrappers that replace a wrapper, with its messages."""
    offset, codec = OFFSET.unpack_from(entry)[0], codec_of(entry)
    found = leaves(entry, 0, len(entry), codec)
    if not found.count:
        raise InvalidMessageError("a wrapper without messages")
    first = numbered_from(found, offset)
    if first is None and found.exact and not (codec == LZ4 and _is_foreign_lz4(entry)):
        return None
    table = bytearray(found.data)
    if first is not None:
        number(table, first)
    return Right(list(_wrap(memoryview(table), offset, codec, limits)))


def _is_foreign_lz4(entry: BytesLike) -> bool:
    """0.8.2.2 reads no frames but such as its own; later clients write others."""
    _, value = key_and_value(entry, 0, len(entry))
    return value is None or bytes(entry[slice(*value)][:_LZ4_HEADER_BYTES]) != _lz4_header()


@cache
def _lz4_header() -> bytes:
    return compress(LZ4, b"")[:_LZ4_HEADER_BYTES]


def _wrap(table: memoryview, last: int, codec: int, limits: SegmentLimits) -> Iterator[bytes]:
    """Plain entries up to offset ``last`` in a wrapper, or in several if it would be too large."""
    made = encode_entry(None, compress(codec, table, level=limits.gzip_level), last, codec)
    if len(made) <= limits.max_message_bytes:
        yield made
        return
    rows = list(iter_entries(table))
    if len(rows) == 1:
        yield made
        return
    cut = next((n for n, row in enumerate(rows) if n and 2 * row.position >= len(table)), -1)
    yield from _wrap(table[: rows[cut].position], rows[cut - 1].offset, codec, limits)
    yield from _wrap(table[rows[cut].position :], last, codec, limits)


# Segments


def convert_segment(
    log_path: str,
    limits: SegmentLimits,
    *,
    aborted: Aborted = NOTHING,
    dry_run: bool = False,
    is_last: bool = False,
) -> Generator[int, None, Done]:
    """Convert the segment if there is need; yields numbers of bytes gone through. ``aborted``: the
    batches that are left out. ``is_last``: it is the log's newest, whose end must stay.

    A segment that cannot be walked to its end stays as it is. Raises OSError.
    """
    with mapped(log_path) as view, _Writer(log_path, limits, dry_run) as writer:
        size = len(view)
        bases = (base_of(log_path),)
        try:
            problems, counts = yield from _rewrite(view, writer, limits, aborted, is_last)
        except NotWalkableError as error:
            discard(os.path.dirname(log_path))
            return Done(size, size, bases, (str(error),), Counter())
        if not writer.bases:
            return Done(size, size, bases, tuple(problems), counts)
        writer.finish()
    if not dry_run:
        commit(log_path)
    return Done(size, writer.total, tuple(writer.bases), tuple(problems), counts)


def is_index_wrong(log_path: str) -> bool:
    """Whether the segment has no index, or one with which 0.8.2.2 does not start."""
    with closing(OffsetIndex(index_path(log_path), base_of(log_path))) as index:
        return index.problem(os.stat(log_path).st_size, thorough=True) is not None


def rebuild_index(log_path: str, limits: SegmentLimits) -> None:
    """Write the index that 0.8.2.2 would make for the segment. Raises NotWalkableError, OSError."""
    index = _IndexWriter(base_of(log_path), limits)
    with mapped(log_path) as view:
        for entry in walk(view):
            index.note(view[entry.position : entry.stop], entry.position)
            index.last = entry.offset
    _write_synced(index_path(log_path) + CONVERTED_SUFFIX, index.entries)
    os.replace(index_path(log_path) + CONVERTED_SUFFIX, index_path(log_path))


@contextmanager
def mapped(path: str) -> Iterator[memoryview]:
    """The bytes of a file that no process changes meanwhile."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield memoryview(b"")
            return
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data, memoryview(data) as view:
            yield view


def walk(view: memoryview) -> Iterator[Entry]:
    """The entries by their headers. Raises NotWalkableError."""
    position, last = 0, -1
    try:
        for entry in iter_entries(view):
            if entry.offset <= last:
                raise NotWalkableError(f"position {position}: offset {entry.offset} after {last}")
            yield entry
            position, last = entry.stop, entry.offset
    except InvalidMessageError as error:
        raise NotWalkableError(f"position {position}: {error}") from error
    if position < len(view):
        raise NotWalkableError(f"position {position}: cut short")


def _rewrite(
    view: memoryview, writer: _Writer, limits: SegmentLimits, aborted: Aborted, is_last: bool
) -> Generator[int, None, tuple[list[str], Counter[str]]]:
    """Write all entries if one of them must be rewritten, otherwise none. Returns problems, and
    COUNTS."""
    problems: list[str] = []
    counts: Counter[str] = Counter()
    told = last = 0
    for entry in walk(view):
        if entry.position - told >= _STEP:
            yield entry.position - told
            told = entry.position
        last = entry.offset
        right = _rewritten(view, entry, limits, aborted, problems)
        if right is None:
            if writer.bases:
                writer.add(view[entry.position : entry.stop], last)
            continue
        if not writer.bases:
            writer.begin(base_of(writer.log_path))
            for same in walk(view[: entry.position]):
                writer.add(view[same.position : same.stop], same.offset)
        if right.low is None:
            counts.update(wrappers=1, made=len(right.entries))
        else:
            counts.update(right.low.lost, later=1)
        counts["oversized"] += sum(len(each) > limits.max_message_bytes for each in right.entries)
        for each in right.entries:
            writer.add(each, OFFSET.unpack_from(each)[0])
    if is_last and writer.bases and writer.last < last:
        writer.add(filler(last, offsets_topic=limits.offsets_topic), last)
        counts["fillers"] = 1
    yield len(view) - told
    return problems, counts


def _rewritten(
    view: memoryview,
    entry: Entry,
    limits: SegmentLimits,
    aborted: Aborted,
    problems: list[str],
) -> Right | None:
    if not entry.codec and not entry.magic and not limits.offsets_topic:
        return None
    try:
        return right_entries(view[entry.position : entry.stop], limits, aborted)
    except KafkaError as error:
        problems.append(f"position {entry.position}, offset {entry.offset}: {error}")
        return None


class _IndexWriter:
    """The entries that 0.8.2.2 makes when it rebuilds an index (kafka.log.LogSegment.recover)."""

    def __init__(self, base: int, limits: SegmentLimits) -> None:
        self.base = base
        self.entries = bytearray()
        self.last = base - 1
        self._interval = limits.index_interval_bytes
        self._room = limits.max_index_bytes // ENTRY_SIZE * ENTRY_SIZE
        self._indexed = 0

    def note(self, entry: BytesLike, position: int) -> None:
        if position - self._indexed > self._interval and len(self.entries) < self._room:
            self.entries += ENTRY.pack(self._first_offset(entry) - self.base, position)
            self._indexed = position

    def _first_offset(self, entry: BytesLike) -> int:
        """The offset of the first message in the entry. For a wrapper that cannot be read it is
        the lowest possible one, which keeps every lookup in the index right."""
        try:
            return next(iter_messages(entry, check_crc=False)).offset
        except (KafkaError, StopIteration):
            return self.last + 1


class _Writer(Closing):
    """The ``.converted`` files of a segment. ``bases``: of the segments begun, ``total`` bytes."""

    def __init__(self, log_path: str, limits: SegmentLimits, dry_run: bool) -> None:
        self.bases: list[int] = []
        self.total = 0
        self.log_path = log_path
        self._limits = limits
        self._is_dry = dry_run
        self._file: BinaryIO | None = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def last(self) -> int:
        """The last offset written."""
        return self._index.last

    def add(self, entry: BytesLike, last: int) -> None:
        """Write an entry whose last offset is ``last``."""
        if self._position + len(entry) > self._limits.max_segment_bytes and self._position:
            self.finish()
            self.begin(self._index.last + 1)
        self._index.note(entry, self._position)
        if self._file is not None:
            self._file.write(entry)
        self._position += len(entry)
        self.total += len(entry)
        self._index.last = last

    def begin(self, base: int) -> None:
        """Go on in a segment that begins at ``base``."""
        self._path = _log_path(os.path.dirname(self.log_path), base)
        self._index = _IndexWriter(base, self._limits)
        self._position = 0
        self.bases.append(base)
        if not self._is_dry:
            path = self._path + CONVERTED_SUFFIX
            self._file = open(path, "wb", buffering=_BUFFER)  # noqa: SIM115  (close)

    def finish(self) -> None:
        """Have the segment that was begun on disk, with its index."""
        if self._file is None:
            return
        self._file.flush()
        copy_times(self.log_path, self._path + CONVERTED_SUFFIX)
        os.fsync(self._file.fileno())
        self._file.close()
        self._file = None
        _write_synced(index_path(self._path) + CONVERTED_SUFFIX, self._index.entries)
        sync_directory(os.path.dirname(self._path))


# The files beside a segment


def copy_times(source: str, target: str) -> None:
    """Retention goes by the time of the last change."""
    stat = os.stat(source)
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def commit(log_path: str) -> None:
    """Put what was made in the segment's place."""
    directory = os.path.dirname(log_path)
    integrity.remove(log_path)
    remove_rebuilt(log_path)
    for suffix in LATER_SUFFIXES:
        unlink_if_there(log_path.removesuffix(LOG_SUFFIX) + suffix)
    bases = _converted(directory)
    _rename_to_swap(directory, bases)
    for base in bases:
        log = _log_path(directory, base)
        index = index_path(log)
        unlink_if_there(index)
        sync_directory(directory)  # no index at all is better than the old one
        os.replace(log + SWAP_SUFFIX, log)
        os.replace(index + CONVERTED_SUFFIX, index)
    sync_directory(directory)


def discard(directory: str) -> None:
    """Remove what was made and not committed."""
    for name in os.listdir(directory):
        if name.endswith(CONVERTED_SUFFIX):
            os.unlink(os.path.join(directory, name))


def settle(directory: str) -> None:
    """After an interruption: finish what was committed, drop what was not."""
    if any(name.endswith(SWAP_SUFFIX) for name in os.listdir(directory)):
        _rename_to_swap(directory, _converted(directory))
        Log(directory, LogConfig(), clean_shutdown=True, clock=SystemClock()).close()
    discard(directory)


def _rename_to_swap(directory: str, bases: list[int]) -> None:
    for base in reversed(bases):
        log = _log_path(directory, base)
        with suppress(FileNotFoundError):
            os.replace(log + CONVERTED_SUFFIX, log + SWAP_SUFFIX)
    sync_directory(directory)


def _converted(directory: str) -> list[int]:
    """Bases of the segments with ``.converted`` files, ascending."""
    names = [name for name in os.listdir(directory) if name.endswith(CONVERTED_SUFFIX)]
    return sorted({int(name.partition(".")[0]) for name in names})


def _log_path(directory: str, base: int) -> str:
    return os.path.join(directory, f"{base:020d}{LOG_SUFFIX}")


def _write_synced(path: str, data: bytes | bytearray) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
