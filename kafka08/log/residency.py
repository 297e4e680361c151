"""Whether stored bytes lie in the page cache, and getting them there.

A read of what is not there makes its whole thread wait for the disk. Who must not wait asks
first, and has another thread read. Asking takes microseconds; newer kernels begin to read then.
"""

from __future__ import annotations

import mmap
import os

from kafka08.log.segment import FileSlice, LogSegment

# The kernel reads ahead, and forgets, in runs about this long: one page of each tells.
SAMPLE_BYTES = 128 << 10
# A reader of cold data is likely to go on: so many times what it asked for is read ahead, within
# these bounds.
AHEAD_TIMES, MIN_AHEAD_BYTES, MAX_AHEAD_BYTES = 4, 128 << 10, 4 << 20
# The memory map of an index cannot be asked; it is read as a whole when nobody has done so lately.
INDEX_STAYS_MS = 60_000
# An entry is looked for from the indexed one before it, mostly in the first of these bytes.
_SEARCHED_BYTES = 8 << 10
_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_one_byte = [bytearray(1)]
# Nobody looks at what is read into it, so threads may share it.
_scratch = memoryview(mmap.mmap(-1, 1 << 20))


def is_resident(part: FileSlice) -> bool:
    """Whether a read would not wait, by samples. Where nobody can tell: True."""
    fd, position, size = part.file.fd, part.position, part.size
    if not _NOWAIT or not size:
        return True
    try:
        for at in range(position, position + size, SAMPLE_BYTES):
            os.preadv(fd, _one_byte, at, _NOWAIT)
        os.preadv(fd, _one_byte, position + size - 1, _NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without the flag; an error shows when it is read
    return True


def read_in(part: FileSlice) -> None:
    """Have the disk read the slice, and wait; some of what follows it reads meanwhile.

    To be called on a thread that may wait. Raises OSError.
    """
    fd, position, end = part.file.fd, part.position, part.position + part.size
    ahead = min(max(AHEAD_TIMES * part.size, MIN_AHEAD_BYTES), MAX_AHEAD_BYTES)
    os.posix_fadvise(fd, position, part.size + ahead, os.POSIX_FADV_WILLNEED)
    while position < end:
        count = os.preadv(fd, [_scratch[: end - position]], position)
        if not count:
            break  # truncated meanwhile: who sends it will see
        position += count


def can_look_up(segment: LogSegment, offset: int, now_ms: int) -> bool:
    """Whether the segment's file is open and its index can be searched without waiting."""
    index = segment.index
    if offset >= index.last_offset:
        return segment.is_open  # the last entry is known without the index
    return segment.is_open and 0 <= now_ms - index.read_in_ms < INDEX_STAYS_MS


def read_in_index(log_path: str, index_path: str, index_bytes: int) -> None:
    """Have the disk read an index, and what it takes to open the segment's file.

    To be called on a thread that may wait. Raises OSError.
    """
    os.close(os.open(log_path, os.O_RDONLY))
    fd = os.open(index_path, os.O_RDONLY)
    try:
        position = 0
        while position < index_bytes:
            count = os.preadv(fd, [_scratch[: index_bytes - position]], position)
            if not count:
                break
            position += count
    finally:
        os.close(fd)


def extent(segment: LogSegment, offset: int, max_bytes: int) -> FileSlice:
    """What a read of ``max_bytes`` from ``offset`` touches, as far as the index tells."""
    position = segment.index.lookup(offset)
    size = min(max(max_bytes, 0) + _SEARCHED_BYTES, segment.size - position)
    return FileSlice(segment.file, position, size, segment.base_offset)
