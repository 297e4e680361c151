"""The walk over the entries of a file: ``FileWalk`` checks and counts them as far as is asked, and
``stretches`` reads them piece by piece. Memory is bounded by a chunk, however large an entry is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from operator import itemgetter

from kafka08.message.batch import BATCH_ATTRIBUTES_AT, NO_TIMESTAMP
from kafka08.message.crc import crc32, crc32c
from kafka08.message.entry import (
    BAD_CRC,
    BATCH,
    CUT,
    DISORDER,
    END,
    LAST_OFFSET_BYTES,
    LOG_OVERHEAD,
    MAGIC_AT,
    MIN_ENTRY,
    Walked,
    codec_of,
    crc_of,
)
from kafka08.message.scan import newest_time, walk

CHUNK = 1 << 20  # bytes of a file read at once


def stretches(fd: int, position: int, end: int) -> Iterator[tuple[bytes, int]]:
    """The entries of a file from ``position`` to ``end`` in pieces: (bytes, where they stop).

    Of an entry larger than a chunk only the first chunk is read; the piece stops with it. Ends at
    an entry that is not whole or has an impossible size. Raises OSError.
    """
    while position < end:
        data = os.pread(fd, min(CHUNK, end - position), position)
        walked = walk(data, 0, len(data), wrappers=True)
        size = walked.stop
        if not walked.count and len(data) > LAST_OFFSET_BYTES:
            size = walk(data, 0, LAST_OFFSET_BYTES, reach=end - position).stop
        if not size:
            return
        yield data, min(size, len(data))
        position += size


class FileWalk:
    """A walk over the entries of an open file from ``position`` to ``end``, wrappers included.

    ``checks`` are those of ``walk``; with ``headers_only`` only offsets and sizes are read. An
    entry larger than a chunk is checked piece by piece: ``chunk`` (default CHUNK) bounds the
    memory. ``newest`` is the ``newest_time`` of all entries passed so far, but with
    ``headers_only``.
    """

    def __init__(
        self,
        fd: int,
        position: int,
        end: int,
        *,
        headers_only: bool = False,
        check_crc: bool = False,
        last: int | None = None,
        up_to: int | None = None,
        chunk: int | None = None,
    ) -> None:
        self.newest = (NO_TIMESTAMP, NO_TIMESTAMP)
        self._fd = fd
        self._position = position
        self._end = end
        self._headers_only = headers_only
        self._check_crc = check_crc
        self._last = last
        self._up_to = up_to
        self._chunk = max(chunk or CHUNK, LAST_OFFSET_BYTES)
        self._data = b""
        self._start = position  # of the chunk

    def step(self, until: int | None = None) -> Walked:
        """Walk to the first entry at ``until`` or later, the end, or an entry that fails a check.

        ``stop`` and ``until`` are positions in the file; ``count``, ``first`` and ``last`` are
        those of this step. Raises OSError.
        """
        count, first, last, codec, magic = 0, -1, -1, 0, 0
        while True:
            is_fresh = bool(self._data) and self._position == self._start
            walked = self._walk(until)
            ended = walked.ended
            if walked.magic and not self._headers_only:
                at, stop = self._position - self._start, min(walked.stop, len(self._data))
                newest = newest_time(self._data, at, stop)
                self.newest = max(self.newest, newest, key=itemgetter(0))
            self._position = self._start + walked.stop
            if walked.count:
                first = first if count else walked.first
                count += walked.count
                last = walked.last
                codec = walked.codec or codec
                magic = max(walked.magic, magic)
                if self._last is not None:
                    self._last = last
            if ended not in (END, CUT):
                break
            ended = END if self._position >= self._end else CUT
            if ended == END or (is_fresh and not walked.count) or not self._read():
                break
        return Walked(self._position, count, first, last, codec, ended, magic)

    def _read(self) -> bool:
        """Read the chunk that begins here; False if no entry can begin in it."""
        self._start = self._position
        self._data = os.pread(self._fd, min(self._chunk, self._end - self._start), self._start)
        return len(self._data) >= LOG_OVERHEAD

    def _walk(self, until: int | None) -> Walked:
        """Walk over the rest of the chunk, or over the one entry that continues after it."""
        at, end = self._position - self._start, self._end - self._start
        walked = walk(
            self._data,
            at,
            len(self._data),
            check_crc=self._check_crc,
            last=self._last,
            up_to=self._up_to,
            until=None if until is None else until - self._start,
            wrappers=True,
            reach=end if self._headers_only else None,
        )
        is_larger = walked.ended == CUT and walked.stop == 0 and len(self._data) < end
        if not is_larger or self._headers_only or len(self._data) < MIN_ENTRY:
            return walked
        head = min(len(self._data), LAST_OFFSET_BYTES)
        walked = walk(self._data, 0, head, up_to=self._up_to, reach=end)
        if walked.count and self._check_crc and not self._large_crc_is_right(walked.stop):
            return Walked(0, 0, -1, -1, 0, BAD_CRC)
        if walked.count and self._last is not None and walked.first <= self._last:
            return Walked(0, 0, -1, -1, 0, DISORDER)
        return walked._replace(codec=codec_of(self._data)) if walked.count else walked

    def _large_crc_is_right(self, size: int) -> bool:
        is_batch = self._data[MAGIC_AT] == BATCH
        checksum = crc32c if is_batch else crc32
        crc = checksum(self._data[BATCH_ATTRIBUTES_AT if is_batch else MAGIC_AT :])
        position, end = self._start + len(self._data), self._start + size
        while position < end:
            piece = os.pread(self._fd, min(self._chunk, end - position), position)
            if not piece:
                return False
            crc = checksum(piece, crc)
            position += len(piece)
        return crc == crc_of(self._data)
