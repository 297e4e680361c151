"""The time index beside a segment: timestamp -> relative offset (kafka.log.TimeIndex).

``<base>.timeindex`` is a file of 12-byte big-endian entries, int64 timestamp and int32 (offset -
base offset), both rising strictly. An entry says: the message at this offset has this timestamp,
and no earlier one of the segment has a larger one. Messages without a timestamp are not in it: a
segment that has no others does not have the file. 0.8.2.2 ignores it.

An entry is added when the offset index gets one, if the largest timestamp has risen since, and
when the segment is closed. As in the offset index the last entries are gathered in memory. Unlike
that of the original the file is not preallocated.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from itertools import pairwise
from struct import Struct
from typing import Final, NamedTuple

from kafka08.log.directory import CLEANED_SUFFIX
from kafka08.log.disk import write_all
from kafka08.message.batch import NO_TIMESTAMP

ENTRY: Final = Struct(">qi")
ENTRY_SIZE: Final = ENTRY.size
# Stands for an entry that the file has lost meanwhile.
_BEYOND = (1 << 63) - 1, (1 << 31) - 1


class MessageTime(NamedTuple):
    """A timestamp (ms), and the offset of the first message that has it."""

    timestamp: int
    offset: int


NO_TIME: Final = MessageTime(NO_TIMESTAMP, -1)


class TimeIndex:
    """The index file at ``path`` for a segment that begins at ``base_offset``.

    ``last`` is the last entry; without entries its timestamp is -1. The file is opened when an
    append needs it. ``exists``: there is one, perhaps without entries.
    """

    __slots__ = (
        "_before", "_fd", "_gathered", "base_offset", "entries", "exists", "last", "path",
    )  # fmt: skip

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._fd = -1
        try:
            self.entries, self.exists = os.stat(path).st_size // ENTRY_SIZE, True
        except FileNotFoundError:
            self.entries, self.exists = 0, False
        self.last = self._last_entry()
        self._before = self.last  # the last entry of the file
        self._gathered = bytearray()  # the entries that are not in the file

    def __del__(self) -> None:
        self.close()

    def append(self, newest: MessageTime) -> bool:
        """Gather an entry if its timestamp is above the last one's; true if it is. Makes the file
        if there is none. Raises OSError, and the index does not change.
        """
        if newest.timestamp <= self.last.timestamp:
            return False
        self._descriptor()
        self._gathered += ENTRY.pack(newest.timestamp, newest.offset - self.base_offset)
        self.entries += 1
        self.last = newest
        return True

    @property
    def gathered(self) -> int:
        """How many of the last entries are not in the file."""
        return len(self._gathered) // ENTRY_SIZE

    def write_out(self) -> None:
        """Write what is gathered. Raises OSError, and nothing changes."""
        if not self._gathered:
            return
        fd, start = self._descriptor(), (self.entries - self.gathered) * ENTRY_SIZE
        try:
            write_all(fd, self._gathered, start)
        except OSError:
            os.ftruncate(fd, start)
            raise
        self._gathered = bytearray()
        self._before = self.last

    def lose_gathered(self) -> None:
        """Forget the entries that are not in the file."""
        self.entries -= self.gathered
        self._gathered = bytearray()
        self.last = self._before

    def truncate_to(self, offset: int) -> None:
        """Drop every entry at or above ``offset``. Raises OSError."""
        if self.last.timestamp == NO_TIMESTAMP or self.last.offset < offset:
            return
        self.write_out()
        fd = self._descriptor()
        self.entries = _first_slot(fd, self.entries, 1, offset - self.base_offset)
        os.ftruncate(fd, self.entries * ENTRY_SIZE)
        self.last = self._before = self._last_entry()

    def replace(self, entries: bytes | bytearray) -> None:
        """Replace the content of the file with ``entries`` (packed), in one step: a crash leaves
        the old content or the new. Without any entries, the file is not made, and this takes no
        space. Raises OSError."""
        self.close()
        if entries or os.path.exists(self.path):
            unfinished = self.path + CLEANED_SUFFIX if entries else self.path
            with open(unfinished, "wb") as file:
                file.write(entries)
                file.flush()
                os.fsync(file.fileno())
            if entries:
                os.replace(unfinished, self.path)
            self.exists = True
        self.entries = len(entries) // ENTRY_SIZE
        self._gathered = bytearray()
        self.last = self._before = self._last_entry()

    def close(self) -> None:
        """Release the descriptor. The file does not get what is gathered."""
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            os.close(fd)

    def problem(self, *, thorough: bool) -> str | None:
        """Why this file cannot be a time index; None if it can be, or does not exist.

        ``thorough`` also checks that all entries rise, in time proportional to their number.
        """
        try:
            size = os.stat(self.path).st_size
        except FileNotFoundError:
            return None
        if size % ENTRY_SIZE:
            return f"its length {size} is not a multiple of {ENTRY_SIZE}"
        if self.entries and not (self.last.timestamp >= 0 and self.last.offset >= self.base_offset):
            return f"its last entry {tuple(self.last)} is impossible"
        if self.entries > 1 and not self._rises(self.entries if thorough else 1):
            return "its entries do not rise"
        if thorough and self.entries and self._begins_with_zeros():
            return "its first entry has only zeros"
        return None

    def _begins_with_zeros(self) -> bool:
        """After a power cut a file may be as long as it was and not have all its bytes. In other
        entries they do not rise then. Here they may be real, but hardly ever are."""
        with open(self.path, "rb") as file:
            return not any(file.read(ENTRY_SIZE))

    def _rises(self, checked: int) -> bool:
        """Whether the first ``checked`` entries rise, up to below the last one."""
        with open(self.path, "rb") as file:
            entries = list(ENTRY.iter_unpack(file.read(checked * ENTRY_SIZE)))
        if checked < self.entries:
            entries.append((self.last.timestamp, self.last.offset - self.base_offset))
        return entries[0] >= (0, 0) and all(
            before[0] < after[0] and before[1] < after[1] for before, after in pairwise(entries)
        )

    def _last_entry(self) -> MessageTime:
        if not self.entries:
            return MessageTime(NO_TIMESTAMP, self.base_offset)
        with open(self.path, "rb", buffering=0) as file:
            timestamp, relative = _entry_at(file.fileno(), self.entries - 1)
        return MessageTime(timestamp, self.base_offset + relative)

    def _descriptor(self) -> int:
        if self._fd < 0:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            self.exists = True
        return self._fd


def offset_below(path: str, entries: int, base_offset: int, timestamp: int) -> int:
    """The offset up to which all messages of a segment are older than ``timestamp``, as far as
    the first ``entries`` entries of its time index say; its base offset if they do not.

    To be called on any thread. Raises OSError.
    """
    if not entries or not os.path.exists(path):
        return base_offset
    with open(path, "rb", buffering=0) as file:
        slot = _first_slot(file.fileno(), entries, 0, timestamp)
        return base_offset + (_entry_at(file.fileno(), slot - 1)[1] if slot else 0)


def _first_slot(fd: int, entries: int, field: int, least: int) -> int:
    """The first entry with at least ``least`` in this field; ``entries`` if there is none."""
    return bisect_left(range(entries), least, key=lambda slot: _entry_at(fd, slot)[field])


def _entry_at(fd: int, slot: int) -> tuple[int, int]:
    data = os.pread(fd, ENTRY_SIZE, slot * ENTRY_SIZE)
    if len(data) < ENTRY_SIZE:
        return _BEYOND
    timestamp, relative = ENTRY.unpack(data)
    return timestamp, relative
