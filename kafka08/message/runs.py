"""Runs of equal-sized entries, handled column by column instead of one entry at a time.

Producers tend to send entries of one size. Such a run is a table whose rows have a fixed width:
sizes and attributes are checked, and offsets written, as strided slices. Whatever does not fit
is left to the caller's plain loop, which also words the errors. Knows nothing of codecs or of
what a set means.

All crcs of a table are checked by one crc over it. A message followed by its own crc, low byte
first, takes the crc register to a state that does not depend on the message; so does a chain of
such messages with fixed bytes in between. Each row's crc is therefore copied behind its message,
over the offset of the next row, everything else between two messages is made constant, and the
crc of the whole must be the one that any table of that shape with right crcs has. A row with a
wrong crc (or size) changes it for certain; several could cancel out by a chance of 2^-32.

Where ``rows`` has been compiled it does the same to the rows where they lie, without copies.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, pack
from typing import Any

from kafka08.message.crc import crc32
from kafka08.message.message import CRC_START, ENTRY_OVERHEAD, MIN_MESSAGE_SIZE

native: Any = None
try:
    from kafka08.message import rows as native
except ImportError:
    pass

# Below this a plain loop is as quick.
MIN_RUN = 12
# No run can start closer to the end than this: spares the call for the many small sets.
MIN_RUN_BYTES = MIN_RUN * (ENTRY_OVERHEAD + MIN_MESSAGE_SIZE)
# After a miss the caller's loop does about so many entries before it looks for a run again.
RETRY_AFTER = 32
# Rows are worked on in copies that stay in the processor's cache.
_GROUP_BYTES = 64 * 1024
_GROUP_ROWS = 1024

# The two lowest bytes of the numbers from 0 on, and each byte for as many rows as a group has.
_LOW_BYTES = bytes(range(256)) * ((0x10000 + _GROUP_ROWS) // 256)
_SECOND_BYTES = bytes(number >> 8 & 0xFF for number in range(0x10000 + _GROUP_ROWS))
_ROWS_OF = [bytes([byte]) * _GROUP_ROWS for byte in range(256)]

_LOW_FIRST = Struct("<I")
_HIGH_FIRST = Struct(">i")


def plain_run(
    buffer: memoryview, position: int, end: int, size: int, *, check_crc: bool
) -> bytearray | None:
    """A copy of the rows from ``position`` on that are plain messages of ``size`` bytes.

    None when there are too few of them, or when one is compressed or, if looked at, has a wrong
    crc. At most one group of rows is taken: the caller comes back for more.
    """
    rows = _most_rows(position, end, size)
    if rows < MIN_RUN:
        return None
    width = ENTRY_OVERHEAD + size
    wanted = _HIGH_FIRST.pack(size)
    if native is not None:
        rows = native.uniform_rows(buffer, position, rows, width, wanted)
        if rows < MIN_RUN:
            return None
        table = bytearray(buffer[position : position + rows * width])
        good = not check_crc or _chain_is_right(memoryview(bytearray(table)), 0, rows, width, 0)
        return table if good else None
    second = position + width + 8
    if buffer[second : second + 4] != wanted:
        return None
    table = bytearray(buffer[position : position + rows * width])
    rows = _uniform_rows(table, width, wanted)
    if rows < MIN_RUN:
        return None
    del table[rows * width :]
    if table[17::width].count(0) != rows:
        return None
    return (
        None if check_crc and _chained_crc(table, rows, width) != _right_crc(rows, width) else table
    )


def _most_rows(position: int, end: int, size: int) -> int:
    """How many rows of ``size`` there is room for, at most one group; 0 if it fits no message."""
    if size < MIN_MESSAGE_SIZE:
        return 0
    width = ENTRY_OVERHEAD + size
    return min((end - position) // width, _GROUP_ROWS, _GROUP_BYTES // width)


def stamp_run(buffer: memoryview, position: int, end: int, size: int, first: int) -> int:
    """Check the crcs of a run as ``plain_run`` does and number its rows from ``first``, in place.

    The bytes of the rows; 0 where ``plain_run`` gives None. After a wrong crc the rows' offsets
    are undefined. ``buffer`` must be writable.
    """
    if native is None:
        table = plain_run(buffer, position, end, size, check_crc=True)
        if table is None:
            return 0
        write_offsets(table, size, first)
        buffer[position : position + len(table)] = table
        return len(table)
    rows: int = _most_rows(position, end, size)
    if rows < MIN_RUN:
        return 0
    width = ENTRY_OVERHEAD + size
    rows = native.uniform_rows(buffer, position, rows, width, _HIGH_FIRST.pack(size))
    if rows < MIN_RUN or not _chain_is_right(buffer, position, rows, width, first):
        return 0
    return rows * width


def _chain_is_right(buffer: memoryview, position: int, rows: int, width: int, first: int) -> bool:
    """Whether all crcs are right; the rows are numbered from ``first``."""
    last: int = native.chain(buffer, position, rows, width)
    found = crc32(buffer[position + CRC_START : position + rows * width])
    found = crc32(_LOW_FIRST.pack(last), found)
    native.unchain(buffer, position, rows, width, last, first)
    return found == _right_crc(rows, width)


def _uniform_rows(table: bytearray, width: int, wanted: bytes) -> int:
    """How many rows from the first on have the size ``wanted``."""
    rows = len(table) // width
    for index in (3, 2, 1, 0):
        column = table[8 + index : rows * width : width]
        if column.count(wanted[index]) != rows:
            rows = rows - len(column.lstrip(wanted[index : index + 1]))
    return rows


def _chained_crc(table: bytearray, rows: int, width: int) -> int:
    """The crc over the messages, each followed by its crc and constant bytes (see above)."""
    message = width - CRC_START
    chain = table[CRC_START:]
    chain += b"\0\0\0\0"
    for index in range(4):
        chain[message + 3 - index :: width] = table[12 + index :: width]
    if rows > 1:
        zeros = bytes(rows - 1)
        for index in (4, 5, 6, 7, 12, 13, 14, 15):
            chain[message + index :: width] = zeros
    return crc32(chain)


@lru_cache(maxsize=4096)
def _right_crc(rows: int, width: int) -> int:
    """What ``_chained_crc`` gives when every crc is right."""
    message = bytes(width - CRC_START)
    between = b"\0\0\0\0" + _HIGH_FIRST.pack(width - ENTRY_OVERHEAD) + b"\0\0\0\0"
    row = message + _LOW_FIRST.pack(crc32(message)) + between
    return crc32((row * rows)[: -len(between)])


def offsets_of(table: bytearray, size: int) -> tuple[int, ...]:
    """The offsets of the rows."""
    row = _row(f">q{size + 4}x")
    return tuple([offset for (offset,) in row.iter_unpack(table)])


def write_offsets(table: bytearray, size: int, first: int) -> None:
    """Number the rows from ``first``."""
    width = ENTRY_OVERHEAD + size
    rows = len(table) // width
    start = first & 0xFFFF
    table[7::width] = _LOW_BYTES[start : start + rows]
    table[6::width] = _SECOND_BYTES[start : start + rows]
    if start + rows <= 0x10000:
        for index, byte in enumerate((first >> 16).to_bytes(6, "big")):
            table[index::width] = _ROWS_OF[byte][:rows]
    else:
        offsets = pack(f">{rows}q", *range(first, first + rows))
        for index in range(6):
            table[index::width] = offsets[index::8]


@lru_cache(maxsize=256)
def _row(layout: str) -> Struct:
    return Struct(layout)
