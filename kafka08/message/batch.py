"""The layout of a record batch, an entry of format 2: the positions of its fields.

``base offset i64 | batch length i32 | leader epoch i32 | magic i8 | crc u32 | attributes i16 |
last offset delta i32 | base timestamp i64 | max timestamp i64 | producer id i64 | producer epoch
i16 | base sequence i32 | count i32 | records``. The length counts from the leader epoch on. The crc
is CRC-32C of everything from the attributes to the end: the leader may change base offset and
leader epoch without a new crc. A codec compresses the records alone. A compacted batch keeps its
base offset and last offset delta, and may hold fewer records, or none. Does not know records.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from kafka08.message.crc import crc32c
from kafka08.named import named

# Positions within a batch; offset, length and magic are where they are in every entry.
EPOCH_AT: Final = 12
BATCH_CRC_AT: Final = 17
BATCH_ATTRIBUTES_AT: Final = 21
BATCH_CODEC_AT: Final = 22  # the low byte of the attributes
LAST_DELTA_AT: Final = 23
BASE_TIMESTAMP_AT: Final = 27
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_AT: Final = 43
RECORDS_AT: Final = 61

MIN_BATCH_SIZE: Final = RECORDS_AT - 12  # as the length counts
CODEC: Final = 0x07
LOG_APPEND_TIME: Final = 0x08  # attributes bit of formats 1 and 2: timestamps are the broker's
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
# The base timestamp is the time until which compaction keeps tombstones, and not that of a record.
DELETE_HORIZON: Final = 0x40
# Only a broker may set these attributes.
CLAIMED: Final = LOG_APPEND_TIME | DELETE_HORIZON
# Those that stay as the sender has set them.
_KEPT: Final = CODEC | TRANSACTIONAL
NO_TIMESTAMP: Final = -1
NO_PRODUCER: Final = -1

_HEADER: Final = Struct(">qiibIhiqqqhii")
_EPOCH: Final = Struct(">i")
_PRODUCER_ID: Final = Struct(">q")
_CRC: Final = Struct(">I")
_MAX_TIMESTAMP: Final = Struct(">q")
_ATTRIBUTES: Final = Struct(">h")


class Batch(NamedTuple):
    """The header of a batch. ``size`` is the length as stored: 12 less than the whole batch."""

    base_offset: int
    size: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count

    @property
    def codec(self) -> int:
        return self.attributes & CODEC

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_stamped(self) -> bool:
        """Whether ``max_timestamp``, the broker's, is the time of all records."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def time(self) -> int:
        """The timestamp of all records, or the one from which theirs count."""
        return self.max_timestamp if self.is_stamped else self.base_timestamp

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_delta


def header_of(buffer: bytes | bytearray | memoryview, position: int = 0) -> Batch:
    """The header of the whole batch at ``position``."""
    return named(Batch, _HEADER.unpack_from(buffer, position))


def encode_batch(header: Batch, records: bytes | bytearray | memoryview) -> bytes:
    """A batch with these records, compressed already if the header names a codec. Size and crc
    are computed; those of ``header`` do not matter."""
    header = header._replace(size=MIN_BATCH_SIZE + len(records), magic=2)
    data = bytearray(_HEADER.pack(*header)) + records
    seal(data, 0, len(data))
    return bytes(data)


def seal(buffer: bytearray | memoryview, position: int, stop: int) -> None:
    """Write the crc of the batch from ``position`` to ``stop``, which has changed."""
    view = memoryview(buffer)
    crc = crc32c(view[position + BATCH_ATTRIBUTES_AT : stop])
    _CRC.pack_into(buffer, position + BATCH_CRC_AT, crc)


def leader_epoch_of(buffer: bytes | bytearray | memoryview) -> int:
    """The leader epoch of the batch that a buffer begins with."""
    epoch: int = _EPOCH.unpack_from(buffer, EPOCH_AT)[0]
    return epoch


def producer_of(buffer: bytes | bytearray | memoryview) -> int:
    """The id of the producer of the batch that a buffer begins with."""
    producer_id: int = _PRODUCER_ID.unpack_from(buffer, PRODUCER_AT)[0]
    return producer_id


def set_leader_epoch(buffer: bytearray | memoryview, position: int, epoch: int) -> None:
    """Write the leader epoch, which no crc covers."""
    _EPOCH.pack_into(buffer, position + EPOCH_AT, epoch)


def set_newest(
    buffer: bytearray | memoryview, position: int, stop: int, newest: int, *, stamped: bool = False
) -> None:
    """Write the largest timestamp (ms) of the records, and the crc. ``stamped``: it is the
    broker's, and that of all records, as with log append time. Of the other attributes only the
    codec stays, and whether the batch is in a transaction."""
    attributes = _ATTRIBUTES.unpack_from(buffer, position + BATCH_ATTRIBUTES_AT)[0] & _KEPT
    attributes |= LOG_APPEND_TIME if stamped else 0
    _ATTRIBUTES.pack_into(buffer, position + BATCH_ATTRIBUTES_AT, attributes)
    _MAX_TIMESTAMP.pack_into(buffer, position + MAX_TIMESTAMP_AT, newest)
    seal(buffer, position, stop)
