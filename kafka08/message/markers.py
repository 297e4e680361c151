"""Markers: the control batches that end a producer's transaction in a partition.

A marker is a batch with the attributes CONTROL and TRANSACTIONAL, the producer's id and epoch, no
sequence, and one record: ``key: version i16 = 0 | type i16`` and ``value: version i16 = 0 |
coordinator epoch i32``. Mirrors org.apache.kafka.common.record.EndTransactionMarker. ``scan``
reads markers where they stand in a log.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from kafka08.message.batch import CONTROL, TRANSACTIONAL, Batch, encode_batch

# The part of a batch in its producer's transaction.
NO_TRANSACTION: Final = 0
IN_TRANSACTION: Final = 1
ABORT: Final = 2
COMMIT: Final = 3
OTHER_CONTROL: Final = 4  # a control batch that is not a marker

_TYPES: Final = {ABORT: 0, COMMIT: 1}
# The record: length, attributes, timestamp delta, offset delta, length of the key, key, length of
# the value, value, number of headers. Lengths are varints, which take one byte each here.
RECORD: Final = Struct(">BBBBBhhBhiB")
RECORD_LENGTH, KEY_LENGTH, VALUE_LENGTH = 2 * (RECORD.size - 1), 2 * 4, 2 * 6


def encode_marker(
    producer_id: int, epoch: int, kind: int, coordinator_epoch: int, now: int
) -> bytes:
    """A marker of the ``kind`` ABORT or COMMIT with the timestamp ``now`` (ms)."""
    key, value = (0, _TYPES[kind]), (0, coordinator_epoch)
    record = RECORD.pack(RECORD_LENGTH, 0, 0, 0, KEY_LENGTH, *key, VALUE_LENGTH, *value, 0)
    attributes = CONTROL | TRANSACTIONAL
    header = Batch(0, 0, -1, 2, 0, attributes, 0, now, now, producer_id, epoch, -1, 1)
    return encode_batch(header, record)


def marker_of(record: bytes | bytearray | memoryview) -> tuple[int, int]:
    """(kind, coordinator epoch) of a control batch's records; OTHER_CONTROL and -1 if they are not
    those of a marker."""
    if len(record) != RECORD.size:
        return OTHER_CONTROL, -1
    length, _, _, _, key_length, _, kind, value_length, _, epoch, _ = RECORD.unpack(record)
    if (length, key_length, value_length) != (RECORD_LENGTH, KEY_LENGTH, VALUE_LENGTH):
        return OTHER_CONTROL, -1
    return {0: ABORT, 1: COMMIT}.get(kind, OTHER_CONTROL), epoch
