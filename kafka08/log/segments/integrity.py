"""Side files of sealed segments: the size and CRC-32C of a log file.

``<20 digits>.crc32c`` lies beside its ``.log``; 0.8.2.2 ignores such names. It is written when the
segment takes no more appends and has been synced. It shows a flipped bit or a lost block later,
also in fields that no message's own crc covers (offsets and sizes). It is removed before its
segment is cut, deleted or replaced. A side file that cannot be read, or whose size is larger than
its segment, is ignored.

Text: a version, then ``<size> <crc in hex>``. Does not know logs, or when to check.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from typing import NamedTuple

from kafka08.log.directory import unlink_if_there
from kafka08.log.segments.file_walk import FileWalk
from kafka08.message.crc import crc32c
from kafka08.message.entry import (
    BAD_CRC,
    BAD_DELTA,
    CUT,
    DISORDER,
    END,
    LOG_OVERHEAD,
    OFFSET_AND_SIZE,
    SHORT,
)

SEAL_SUFFIX = ".crc32c"
LOG_SUFFIX = ".log"
PIECE = 4 << 20
_VERSION = "0"
_NOWAIT = getattr(os, "RWF_NOWAIT", 0)

logger = logging.getLogger("kafka.log.Integrity")


class Seal(NamedTuple):
    """The content of a side file: the segment's size in bytes, and its CRC-32C."""

    size: int
    crc: int


class Damage(NamedTuple):
    """The first damaged entry of a segment: its position and offset, and the reason."""

    position: int
    offset: int
    reason: str


def seal_path(log_path: str) -> str:
    return log_path[: -len(LOG_SUFFIX)] + SEAL_SUFFIX


def read(log_path: str) -> Seal | None:
    """The seal of a segment; None if there is no readable one."""
    path = seal_path(log_path)
    try:
        with open(path, encoding="ascii") as file:
            version, line = file.read(100).splitlines()
        size, crc = line.split()
        if version != _VERSION:
            raise ValueError(f"version {version}")
        return Seal(int(size), int(crc, 16))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("Ignoring the side file %s: %s", path, error)
        return None


def write(log_path: str, seal: Seal) -> str:
    """Write and sync a side file under a temporary name; returns that name.

    The caller renames it to ``seal_path`` if the segment has not changed since it was read.
    """
    path = seal_path(log_path) + ".tmp"
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{_VERSION}\n{seal.size} {seal.crc:08x}\n")
        file.flush()
        os.fsync(file.fileno())
    return path


def remove(log_path: str) -> None:
    """Remove the side file: the segment is about to change."""
    unlink_if_there(seal_path(log_path))


def sum_up(log_path: str, piece: int = PIECE) -> Generator[int, None, Seal]:
    """Read a whole log file; yields the number of bytes of each piece, and returns its seal.

    Pages that were not in the page cache before are dropped again. Raises OSError.
    """
    crc = position = 0
    buffer = memoryview(bytearray(piece))
    fd = os.open(log_path, os.O_RDONLY)
    try:
        while True:
            count, was_cached = _read(fd, buffer, position)
            if not count:
                return Seal(position, crc)
            crc = crc32c(buffer[:count], crc)
            if not was_cached:
                os.posix_fadvise(fd, position, count, os.POSIX_FADV_DONTNEED)
            position += count
            yield count
    finally:
        os.close(fd)


def _read(fd: int, buffer: memoryview, position: int) -> tuple[int, bool]:
    """(bytes read, whether all of them lay in the page cache)."""
    if _NOWAIT:
        try:
            count = os.preadv(fd, [buffer], position, _NOWAIT)
            if count == len(buffer):
                return count, True
        except OSError:
            pass  # the read would wait, or the file system does not say
    return os.preadv(fd, [buffer], position), False


def is_intact(log_path: str) -> bool:
    """Whether a side file covers every byte of the segment and matches it."""
    seal = read(log_path)
    if seal is None or os.stat(log_path).st_size != seal.size:
        return False
    return summed(log_path) == seal


def summed(log_path: str) -> Seal:
    """``sum_up`` in one call."""
    pieces = sum_up(log_path)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            seal: Seal = end.value
            return seal


def find_damage(log_path: str) -> Damage | None:
    """The first entry that is not whole, fails its crc or is out of order; None if there is
    none. Wrappers are not opened: their own crc covers the messages inside."""
    before = int(os.path.basename(log_path)[: -len(LOG_SUFFIX)]) - 1
    with open(log_path, "rb", buffering=0) as file:
        end = os.fstat(file.fileno()).st_size
        walked = FileWalk(file.fileno(), 0, end, check_crc=True, last=before).step()
        if walked.ended == END:
            return None
        last = walked.last if walked.count else before
        header = os.pread(file.fileno(), LOG_OVERHEAD, walked.stop)
    if len(header) < LOG_OVERHEAD:
        return Damage(walked.stop, last + 1, "cut short")
    offset, size = OFFSET_AND_SIZE.unpack(header)
    reasons = {
        SHORT: f"size {size} is too small for a message",
        DISORDER: f"offset {offset} does not rise",
        CUT: f"size {size} goes past the end",
        BAD_CRC: "wrong crc",
        BAD_DELTA: "the last offset of a batch is impossible",
    }
    damaged = offset if walked.ended in (CUT, BAD_CRC) else last + 1
    return Damage(walked.stop, damaged, reasons[walked.ended])
