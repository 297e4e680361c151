"""Whether stored bytes lie in the page cache, and getting them there.

A read of what is not there makes its whole thread wait for the disk. Who must not wait asks
first, and has another thread read. Knows no logs, only slices of files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from kafka08.log.segment import FileSlice

# The kernel reads ahead, and forgets, in runs about this long: one page of each tells.
SAMPLE_BYTES = 128 << 10
# What a reader of cold data wants next is asked for along with what it wants now.
READ_AHEAD_BYTES = 4 << 20
_PIECE = 1 << 20
_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_one_byte = [bytearray(1)]


def is_resident(part: FileSlice) -> bool:
    """Whether a read would not wait, by samples. Where nobody can tell: True.

    Some microseconds; nothing is read from the disk.
    """
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


def read_in(parts: Iterable[FileSlice]) -> None:
    """Have the disk read the slices, and wait; what follows them it reads meanwhile.

    To be called on a thread that may wait. Raises OSError.
    """
    scratch = memoryview(bytearray(_PIECE))
    for part in parts:
        fd, position, end = part.file.fd, part.position, part.position + part.size
        os.posix_fadvise(fd, position, part.size + READ_AHEAD_BYTES, os.POSIX_FADV_WILLNEED)
        while position < end:
            count = os.preadv(fd, [scratch[: end - position]], position)
            if not count:
                break  # truncated meanwhile: who sends it will see
            position += count
