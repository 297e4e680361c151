"""Runs of equal-sized entries, handled column by column instead of one entry at a time.

Producers tend to send entries of one size. Such a run is a table whose rows have a fixed width:
its sizes and attributes are checked, and its offsets written, as strided slices, and its crcs
come out of one struct call per block of rows. Whatever does not fit is left to the caller's plain
loop, which also words the errors. Knows nothing of codecs or of what a set means.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct, pack
from typing import Any

from kafka08.message.crc import crc32
from kafka08.message.message import CRC_START, ENTRY_OVERHEAD, MIN_MESSAGE_SIZE

# Below this a plain loop is as quick.
MIN_RUN = 20
# No run can start closer to the end than this: spares the call for the many small sets.
MIN_RUN_BYTES = MIN_RUN * (ENTRY_OVERHEAD + MIN_MESSAGE_SIZE)
# After a miss the caller's loop does about so many entries before it looks for a run again.
RETRY_AFTER = 32
# Above this a row's crc outweighs all else, and copying rows costs more than the loop.
_MAX_SIZE = 1024
# Rows are worked on in a copy of at most this many bytes, whatever the size of the set.
_GROUP_BYTES = 256 * 1024
_GROUP_ROWS = 2048
_BLOCK_ROWS = 64


def plain_run(
    buffer: memoryview, position: int, end: int, size: int, *, check_crc: bool
) -> bytearray | None:
    """A copy of the rows from ``position`` on that are plain messages of ``size`` bytes.

    None when there are too few of them, when they are large, or when one is compressed or, if
    looked at, has a wrong crc. At most one group of rows is taken: the caller comes back for more.
    """
    if not MIN_MESSAGE_SIZE <= size <= _MAX_SIZE:
        return None
    rows = _find_run(buffer, position, end, size)
    if not rows:
        return None
    table = bytearray(buffer[position : position + rows * (ENTRY_OVERHEAD + size)])
    if table[17 :: ENTRY_OVERHEAD + size].count(0) != rows:
        return None
    return None if check_crc and not _has_right_crcs(table, size) else table


def _find_run(buffer: memoryview, position: int, end: int, size: int) -> int:
    """How many entries from ``position`` have the message size of the first; 0 if too few."""
    width = ENTRY_OVERHEAD + size
    rows = min((end - position) // width, _GROUP_ROWS, _GROUP_BYTES // width)
    if rows < MIN_RUN:
        return 0
    first = buffer[position + 8 : position + 12].tobytes()
    second = position + width
    if buffer[second + 8 : second + 12] != first:
        return 0
    stop = position + rows * width
    for index in (3, 2, 1, 0):
        column = buffer[position + 8 + index : stop : width].tobytes()
        # a run can only be the rows before the first one of another size
        rows = min(rows, len(column) - len(column.lstrip(first[index : index + 1])))
    return rows if rows >= MIN_RUN else 0


def _has_right_crcs(table: bytearray, size: int) -> bool:
    """Whether the crc of every row is right."""
    for row_block in _crcs_and_bodies(table, size):
        if tuple(map(crc32, row_block[1::2])) != row_block[::2]:
            return False
    return True


def offsets_of(table: bytearray, size: int) -> tuple[int, ...]:
    """The offsets of the rows."""
    row = _row(f"q{size + 4}x")
    return tuple([offset for (offset,) in row.iter_unpack(table)])


def write_offsets(table: bytearray, size: int, first: int) -> None:
    """Number the rows from ``first``."""
    width = ENTRY_OVERHEAD + size
    rows = len(table) // width
    offsets = pack(f">{rows}q", *range(first, first + rows))
    for index in range(8):
        table[index::width] = offsets[index::8]


def _crcs_and_bodies(table: bytearray, size: int) -> Iterator[tuple[Any, ...]]:
    """Blocks of (crc, body, crc, body, ...)."""
    row = f"{ENTRY_OVERHEAD}xI{ENTRY_OVERHEAD + size - CRC_START}s"
    rows = len(table) // (ENTRY_OVERHEAD + size)
    whole = rows - rows % _BLOCK_ROWS
    position = 0
    if whole:
        block = _block(row)
        for _ in range(0, whole, _BLOCK_ROWS):
            yield block.unpack_from(table, position)
            position += block.size
    if whole < rows:
        yield tuple(
            [field for fields in _row(row).iter_unpack(table[position:]) for field in fields]
        )


@lru_cache(maxsize=256)
def _row(layout: str) -> Struct:
    return Struct(">" + layout)


@lru_cache(maxsize=64)
def _block(layout: str) -> Struct:
    return Struct(">" + layout * _BLOCK_ROWS)
