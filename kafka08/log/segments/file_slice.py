"""Open files of segments, and slices of them.

A slice travels from a fetch to the socket and keeps its file open. Does not know indexes or names.
"""

from __future__ import annotations

import itertools
import os
from typing import Final

from kafka08.errors import KafkaError
from kafka08.log.segments.one_family import OneFamily

# Not an attribute of the class: in a compiled class each object would get its own counter.
_serials = itertools.count()
_PAGE_BYTES: Final = 4096


class SegmentFile:
    """An open file; the descriptor closes with the last reference to this object.

    Slices waiting in a socket's queue keep the file readable after its segment is deleted.
    ``serial`` identifies these bytes among all files ever opened: appends keep it, a cut changes
    it. Below ``sendable_until`` the bytes can be sent to all consumers as they are: plain entries
    of format 0, or wrappers with true offsets inside. Below ``later_until`` they can be sent to
    consumers that read all formats. Readers that check more may raise both. ``family``: a stretch
    without a change between formats 0 and 1 and format 2. ``cannot_tell``: the file system was
    asked what of the file is in the page cache, and does not say.
    """

    __slots__ = ("cannot_tell", "family", "fd", "later_until", "sendable_until", "serial")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.cannot_tell = False
        self.sendable_until = 0
        self.later_until = 0
        self.family = OneFamily()
        self.serial = next(_serials)

    @classmethod
    def open(cls, path: str, flags: int = os.O_RDWR) -> SegmentFile:
        """Raises OSError."""
        return cls(os.open(path, flags, 0o666))

    def __del__(self) -> None:
        os.close(self.fd)

    def fileno(self) -> int:
        return self.fd

    def renew(self) -> None:
        """Take a new serial, as the bytes have changed."""
        self.serial = next(_serials)


class FileSlice:
    """``size`` bytes of stored entries from ``position`` of a segment's file, not decoded.

    May end in the middle of an entry. ``base_offset`` names the segment.
    """

    __slots__ = ("base_offset", "file", "position", "size")

    def __init__(self, file: SegmentFile, position: int, size: int, base_offset: int = 0) -> None:
        self.file = file
        self.position = position
        self.size = size
        self.base_offset = base_offset

    def __len__(self) -> int:
        return self.size

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.position + self.size

    def fileno(self) -> int:
        return self.file.fd

    def of_one_family(self) -> FileSlice:
        """The slice, at most up to where formats 0 and 1 are followed by format 2, or the reverse.
        Raises OSError."""
        file, position, end = self.file, self.position, self.position + self.size
        family = file.family
        if family.start <= position and end <= family.stop:
            return self
        found = family.end(file.fd, position, end)
        return (
            self if found == end else FileSlice(file, position, found - position, self.base_offset)
        )

    def read(self) -> bytes:
        """The bytes. Raises KafkaError if the segment has been truncated under the slice."""
        return self._read(self.size)

    def read_to_page(self) -> bytes:
        """The bytes up to the next page of the file. Raises KafkaError as ``read`` does."""
        return self._read(min(-self.position % _PAGE_BYTES, self.size))

    def _read(self, size: int) -> bytes:
        data = os.pread(self.file.fd, size, self.position) if size else b""
        while len(data) < size:
            more = os.pread(self.file.fd, size - len(data), self.position + len(data))
            if not more:
                raise KafkaError(
                    f"Size of segment {self.base_offset} has been truncated during read: "
                    f"{len(data)} of {size} bytes at {self.position}"
                )
            data += more
        return data
