"""Checks whether stored bytes are in the page cache, and reads them into it.

A read of other bytes makes its whole thread wait for the disk. Code that must not wait checks
first, and lets another thread read. A check takes microseconds.

Newer kernels start to read what a check misses, one page for each sample. A quick disk, or a busy
processor, delivers it before the kernel answers, and the rest of the run is still missing. The
kernel's account of the thread's reads distinguishes this from a page that was there.
"""

from __future__ import annotations

import errno
import os
import resource

from kafka08.log.segments.file_slice import FileSlice
from kafka08.log.segments.segment import LogSegment

# The kernel reads ahead, and evicts, in runs about this long: one page of each is checked.
SAMPLE_BYTES = 128 << 10
# A reader of cold data is likely to continue: read ahead this multiple of its request, within
# these bounds.
AHEAD_TIMES, MIN_AHEAD_BYTES, MAX_AHEAD_BYTES = 4, 128 << 10, 4 << 20
# The memory map of an index cannot be checked; it is read as a whole if not done recently.
INDEX_STAYS_MS = 60_000
# After the last index entry there is mostly not more than one message set.
_UNINDEXED_BYTES = 1 << 20
_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_one_byte = [bytearray(1)]
# Systems that can send files only to sockets.
_NOT_TO_NULL = (errno.EINVAL, errno.ENOSYS, errno.ENOTSOCK)
_PIECE = 1 << 20
_null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def is_resident(part: FileSlice) -> bool:
    """Whether a read would not wait, judged by samples. True if the system does not say."""
    file, position, size = part.file, part.position, part.size
    if not _NOWAIT or not size or file.cannot_tell:
        return True
    fd = file.fd
    before = _blocks_read()
    try:
        for at in range(position, position + size, SAMPLE_BYTES):
            os.preadv(fd, _one_byte, at, _NOWAIT)
        os.preadv(fd, _one_byte, position + size - 1, _NOWAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        # a file system without the flag is not asked again; the read itself reports other errors
        file.cannot_tell = error.errno == errno.EOPNOTSUPP
        return True
    return _blocks_read() == before


def _blocks_read() -> int:
    """The blocks that disks have read for this thread. Constant where the kernel does not count."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock


def read_in(part: FileSlice) -> None:
    """Read the slice from the disk and wait; the kernel reads some bytes after it meanwhile.

    Must be called on a thread that may wait. Raises OSError.
    """
    fd, position, end = part.file.fd, part.position, part.position + part.size
    ahead = min(max(AHEAD_TIMES * part.size, MIN_AHEAD_BYTES), MAX_AHEAD_BYTES)
    os.posix_fadvise(fd, position, part.size + ahead, os.POSIX_FADV_WILLNEED)
    _read_through(fd, position, end)


def _read_through(fd: int, position: int, end: int) -> None:
    """Wait for the bytes without copying them. Ends early at the end of the file."""
    while position < end:
        try:
            count = os.sendfile(_null, fd, position, end - position)
        except OSError as error:
            if error.errno not in _NOT_TO_NULL:
                raise
            count = len(os.pread(fd, min(end - position, _PIECE), position))
        if not count:
            break
        position += count


def can_look_up(segment: LogSegment, offset: int, now_ms: int) -> bool:
    """Whether the segment's file is open and its index can be searched without waiting."""
    if not _NOWAIT:
        return True
    index = segment.index
    if offset >= index.last_offset:
        return segment.is_open  # the last entry does not need the index
    return segment.is_open and 0 <= now_ms - index.read_in_ms < INDEX_STAYS_MS


def read_in_index(log_path: str, index_path: str, index_bytes: int) -> None:
    """Read an index from the disk, and open the segment's file.

    Must be called on a thread that may wait. Raises OSError.
    """
    os.close(os.open(log_path, os.O_RDONLY))
    fd = os.open(index_path, os.O_RDONLY)
    try:
        _read_through(fd, 0, index_bytes)
    finally:
        os.close(fd)


def extent(segment: LogSegment, offset: int, max_bytes: int) -> FileSlice:
    """The slice that a read of ``max_bytes`` from ``offset`` may touch, judged by the index."""
    low, high = segment.index.bounds(offset)
    if high < 0:
        high = low + _UNINDEXED_BYTES
    end = min(high + max(max_bytes, 0), segment.size)
    return FileSlice(segment.file, low, end - low, segment.base_offset)
