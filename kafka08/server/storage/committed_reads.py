"""The messages that consumers before 0.11 get of a topic that hides open and aborted transactions
from them.

They know nothing of transactions. With ``message.downconversion.isolation.level=read_committed``
they get what is below the last stable offset, without the batches of aborted transactions. An
answer ends where such a batch begins; the next one goes on behind it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from kafka08.common import READ_COMMITTED
from kafka08.log.log import Log
from kafka08.log.segments.file_slice import FileSlice
from kafka08.message.batch import RECORDS_AT, header_of
from kafka08.message.entry import BATCH, magic_of
from kafka08.message.markers import IN_TRANSACTION
from kafka08.message.scan import producer_batches, walk

# So much is read to look for such batches, and then sent at most.
_MOST_BYTES: Final = 1 << 20


class _Batch(NamedTuple):
    """A batch of a transaction."""

    producer_id: int
    base_offset: int
    last_offset: int


def hides_transactions(log: Log) -> bool:
    """Whether consumers that know no transactions get committed messages alone."""
    return log.config.message_downconversion_isolation_level == READ_COMMITTED


def up_to_aborted(log: Log, stored: FileSlice, offset: int) -> tuple[FileSlice, int]:
    """The part of ``stored`` before the first batch of an aborted transaction, and the offset to
    read from next: ``offset``, or the one behind that batch if it comes first. Raises OSError."""
    part = stored
    if stored.size > _MOST_BYTES:
        part = FileSlice(stored.file, stored.position, _MOST_BYTES, stored.base_offset)
    data = part.read()
    stop = walk(data, 0, len(data), wrappers=True).stop
    if not stop:  # not even the first entry is whole
        part = stored
    batches = _batches(data, stop) if stop else _first(stored)
    for batch in _aborted(log, batches):
        at = walk(data, 0, stop, up_to=batch.base_offset - 1, wrappers=True).stop if stop else 0
        if not at:
            return stored, batch.last_offset + 1
        return FileSlice(stored.file, stored.position, at, stored.base_offset), offset
    return part, offset


def _batches(data: bytes, stop: int) -> list[_Batch]:
    return [
        _Batch(producer_id, base, base + delta)
        for producer_id, _, _, base, delta, _, part, _ in producer_batches(data, 0, stop)
        if part == IN_TRANSACTION
    ]


def _first(stored: FileSlice) -> list[_Batch]:
    data = os.pread(stored.file.fd, RECORDS_AT, stored.position)
    if len(data) < RECORDS_AT or magic_of(data) != BATCH:
        return []
    header = header_of(data)
    if not header.is_transactional or header.is_control:
        return []
    return [_Batch(header.producer_id, header.base_offset, header.last_offset)]


def _aborted(log: Log, batches: Sequence[_Batch]) -> list[_Batch]:
    if not batches:
        return []
    found = log.aborted.between(batches[0].base_offset, batches[-1].last_offset + 1)
    ranges: dict[int, list[tuple[int, int]]] = {}
    for each in found:
        ranges.setdefault(each.producer_id, []).append((each.first_offset, each.last_offset))
    return [
        batch
        for batch in batches
        if any(
            first <= batch.base_offset <= last for first, last in ranges.get(batch.producer_id, ())
        )
    ]
