"""The sparse index beside a segment: relative offset -> file position (kafka.log.OffsetIndex).

A file of 8-byte big-endian entries, int32 (offset - base offset) and int32 position, both rising
strictly, without header or checksum. Only the active segment's file is preallocated (sparse
zeros); every other one ends with its last entry, since 0.8.2.2 takes the whole length of a file
it opens for valid entries.

Lookups read a memory map. Entries are written with pwrite, which Linux keeps coherent with the
map: on a full disk a store into a sparse map would kill the process, a write raises OSError. The
last entries are gathered in memory, and the segment writes many at once. A crash loses them: the
start after it makes the index again.

Does not know messages: the segment interprets positions.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left, bisect_right
from itertools import pairwise
from struct import Struct, iter_unpack
from typing import Final

from kafka08.errors import KafkaError
from kafka08.log.disk import write_all

ENTRY: Final = Struct(">ii")
ENTRY_SIZE = ENTRY.size
MAX_RELATIVE_OFFSET: Final = (1 << 31) - 1

_relative_offset_at = Struct(">i").unpack_from
_entry_at = ENTRY.unpack_from


class OffsetIndex:
    """The index file at ``path`` for a segment that begins at ``base_offset``.

    Opening accepts every whole entry of an existing file as valid; a missing file is empty.
    The file is opened when a lookup or an append needs it. ``allocated`` is the number of entries
    the file has room for, ``read_in_ms`` the time when all of it was last read into memory.
    Lookups may run on any thread beside ``append`` and ``write_out``.
    """

    __slots__ = (
        "_before", "_fd", "_map", "_tail", "allocated", "base_offset", "entries", "last_offset",
        "last_position", "path", "read_in_ms",
    )  # fmt: skip

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._fd = -1
        self._map: mmap.mmap | None = None
        self.read_in_ms = 0
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:
            size = 0
        self.allocated = size // ENTRY_SIZE
        self._set_entries(self.allocated)

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            os.close(self._fd)

    @property
    def is_full(self) -> bool:
        return self.entries >= self.allocated

    @property
    def gathered(self) -> int:
        """How many of the last entries are not in the file."""
        return self.entries - self._tail[0]

    def _set_entries(self, count: int) -> None:
        """The file has this many entries, and there are no others."""
        self.entries = count
        # The number of the first entry that is not in the file, and these entries. Replaced as a
        # whole, so that other threads see both as they belong together.
        self._tail: tuple[int, bytearray] = (count, bytearray())
        self.last_offset, self.last_position = self._read_last_entry()
        self._before = self.last_offset, self.last_position  # the last entry of the file

    def _read_last_entry(self) -> tuple[int, int]:
        if not self.entries:
            return self.base_offset, 0
        relative, position = ENTRY.unpack(self._pread((self.entries - 1) * ENTRY_SIZE, ENTRY_SIZE))
        return self.base_offset + relative, position

    def entry(self, slot: int) -> tuple[int, int]:
        """(offset, position) of entry number ``slot``."""
        first, gathered = self._tail
        if slot >= first:
            relative, position = _entry_at(gathered, (slot - first) * ENTRY_SIZE)
        else:
            relative, position = _entry_at(self._mapped(), slot * ENTRY_SIZE)
        return self.base_offset + relative, position

    def lookup(self, offset: int) -> int:
        """Position of the last entry at or below ``offset``; 0 if there is none."""
        if offset >= self.last_offset:
            return self.last_position
        slot = self._slot(offset)
        return self.entry(slot)[1] if slot >= 0 else 0

    def bounds(self, offset: int) -> tuple[int, int]:
        """Positions of the last entry at or below ``offset`` (else 0) and of the next one (else
        -1). The message at ``offset`` lies between them."""
        slot = self._slot(offset)
        low = self.entry(slot)[1] if slot >= 0 else 0
        return low, self.entry(slot + 1)[1] if slot + 1 < self.entries else -1

    def offset_behind(self, position: int) -> int | None:
        """An offset that no message in front of ``position`` reaches; None if the index has none
        there."""
        if position > self.last_position or not self.entries:
            return None
        slot = bisect_left(range(self.entries), position, key=lambda slot: self.entry(slot)[1])
        return self.entry(slot)[0]

    def _slot(self, offset: int) -> int:
        """Number of the last entry at or below ``offset``; -1 if there is none."""
        if not self.entries:
            return -1
        if offset >= self.last_offset:
            return self.entries - 1
        relative = offset - self.base_offset
        first, gathered = self._tail
        if gathered and _relative_offset_at(gathered)[0] <= relative:
            return first + _last_up_to(relative, gathered, len(gathered) >> 3)
        return _last_up_to(relative, self._mapped(), first) if first else -1

    def append(self, offset: int, position: int) -> None:
        """Gather an entry. The first one is not checked to be above the base offset (as in
        0.8.2.2).

        Raises KafkaError if ``offset`` does not rise or the index is full. The index does not
        change then.
        """
        if self.is_full:
            raise KafkaError(f"Attempt to append to a full index (size = {self.entries}).")
        if self.entries and offset <= self.last_offset:
            raise KafkaError(
                f"Attempt to append an offset ({offset}) to position {position} no larger than "
                f"the last offset appended ({self.last_offset}) to {self.path}."
            )
        gathered = self._tail[1]
        gathered += ENTRY.pack(offset - self.base_offset, position)
        self.entries += 1
        self.last_offset, self.last_position = offset, position

    def write_out(self) -> None:
        """Write what is gathered. Raises OSError, and nothing changes."""
        first, gathered = self._tail
        if gathered:
            write_all(self._descriptor(), gathered, first * ENTRY_SIZE)
            self._before = self.last_offset, self.last_position
            self._tail = (self.entries, bytearray())

    def lose_gathered(self) -> None:
        """Forget the entries that are not in the file: without them the index is sparser."""
        self.entries = self._tail[0]
        self._tail = (self.entries, bytearray())
        self.last_offset, self.last_position = self._before

    def replace(self, entries: bytes | bytearray) -> None:
        """Replace the content of the file with ``entries`` (packed), and trim it to them."""
        self._release()
        descriptor = self._descriptor()
        os.ftruncate(descriptor, 0)
        write_all(descriptor, entries, 0)
        self._close_descriptor()
        self.allocated = len(entries) // ENTRY_SIZE
        self._set_entries(self.allocated)

    def truncate_to(self, offset: int, log_size: int) -> None:
        """Drop every entry at or above ``offset``, and those that point past ``log_size``: the
        index entry of a removed wrapper may be below the wrapper's own offset. Raises OSError."""
        self.write_out()
        slot = self._slot(offset)
        while slot >= 0 and (self.entry(slot)[0] >= offset or self.entry(slot)[1] >= log_size):
            slot -= 1
        self._set_entries(slot + 1)

    def preallocate(self, max_bytes: int) -> None:
        """Resize the file to ``max_bytes`` of entries, at least the present ones and one more.

        The active segment's index has this size. Stale entries past the valid ones are zeroed.
        Raises OSError.
        """
        self.write_out()
        self._release()
        descriptor = self._descriptor()
        os.ftruncate(descriptor, self.entries * ENTRY_SIZE)
        self.allocated = max(max_bytes // ENTRY_SIZE, self.entries, 1)
        os.ftruncate(descriptor, self.allocated * ENTRY_SIZE)

    def trim(self) -> None:
        """Trim the file to its last entry, and release map and descriptor. Raises OSError."""
        self.write_out()
        self._release()
        if self.allocated > self.entries:
            os.ftruncate(self._descriptor(), self.entries * ENTRY_SIZE)
            self.allocated = self.entries
        self._close_descriptor()

    def close(self) -> None:
        """Release map and descriptor. The file keeps its length, and does not get what is
        gathered."""
        self._release()
        self._close_descriptor()

    def problem(self, log_size: int, *, thorough: bool) -> str | None:
        """Why this file cannot be the index of a log of ``log_size`` bytes; None if it can be.

        ``thorough`` also checks that all entries rise, in time proportional to their number.
        """
        if not os.path.exists(self.path):
            return "it is missing"
        size = os.stat(self.path).st_size
        if size % ENTRY_SIZE:
            return f"its length {size} is not a multiple of {ENTRY_SIZE}"
        if not self.entries:
            return None
        if self.last_offset <= self.base_offset:
            return f"its last offset {self.last_offset} is not above the base offset"
        if not 0 <= self.last_position < log_size:
            return f"its last position lies past the end of the log ({log_size} bytes)"
        if thorough and not self._rises():
            return "its entries do not rise"
        return None

    def _rises(self) -> bool:
        entries = list(iter_unpack(">ii", self._pread(0, self.entries * ENTRY_SIZE)))
        return entries[0] >= (0, 0) and all(
            before[0] < after[0] and before[1] < after[1] for before, after in pairwise(entries)
        )

    def _pread(self, position: int, size: int) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(position)
            return file.read(size)

    def _descriptor(self) -> int:
        if self._fd < 0:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        return self._fd

    def _mapped(self) -> mmap.mmap:
        if self._map is None:
            self._map = mmap.mmap(self._descriptor(), 0, prot=mmap.PROT_READ)
            if self.is_full:
                self._close_descriptor()  # no more appends; the map has its own descriptor
        return self._map

    def _release(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None

    def _close_descriptor(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _last_up_to(relative: int, data: mmap.mmap | bytearray, high: int) -> int:
    """The last of ``high`` entries whose offset is at most ``relative``; -1 if there is none."""
    low = 0
    while low < high:
        middle = (low + high) >> 1
        if _relative_offset_at(data, middle << 3)[0] <= relative:
            low = middle + 1
        else:
            high = middle
    return low - 1


def position_below(path: str, entries: int, base_offset: int, offset: int) -> int:
    """``OffsetIndex.lookup`` in the first ``entries`` entries of a file, on any thread.

    0 if the file is not there. Raises OSError.
    """
    if not entries or not os.path.exists(path):
        return 0
    with open(path, "rb", buffering=0) as file:
        fd = file.fileno()

        def entry(slot: int) -> tuple[int, int]:
            data = os.pread(fd, ENTRY_SIZE, slot * ENTRY_SIZE)
            if len(data) < ENTRY_SIZE:
                return MAX_RELATIVE_OFFSET, 0  # the file was cut meanwhile
            relative, position = ENTRY.unpack(data)
            return relative, position

        relative = min(offset - base_offset, MAX_RELATIVE_OFFSET - 1)
        slot = bisect_right(range(entries), (relative, MAX_RELATIVE_OFFSET), key=entry)
        return entry(slot - 1)[1] if slot else 0
