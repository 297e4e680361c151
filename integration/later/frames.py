"""Batches of format 2 and requests of later versions, written out by hand as ``wire`` does.

On purpose independent of kafka08.message and kafka08.protocol.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from crc32c import crc32c

from integration.wire import PRODUCE, blob, frame, string

HEADER = struct.Struct(">qiibIhiqqqhii")
RECORDS_AT, CRC_AT, CRC_FROM = 61, 17, 21
NO_PRODUCER = (-1, -1, -1)
TIME = 1_600_000_000_000

Headers = Sequence[tuple[bytes, bytes | None]]


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    time_delta: int = 0


def varint(number: int) -> bytes:
    zigzag = number << 1 if number >= 0 else (-number << 1) - 1
    found = bytearray()
    while zigzag >= 0x80:
        found.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    found.append(zigzag)
    return bytes(found)


def counted(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def encode_record(record: Record, delta: int) -> bytes:
    body = b"\0" + varint(record.time_delta) + varint(delta)
    body += counted(record.key) + counted(record.value) + varint(len(record.headers))
    body += b"".join(counted(name) + counted(value) for name, value in record.headers)
    return varint(len(body)) + body


def encode_records(records: Iterable[Record]) -> bytes:
    return b"".join(encode_record(record, delta) for delta, record in enumerate(records))


def batch(
    records: bytes,
    count: int,
    *,
    codec: int = 0,
    last_delta: int | None = None,
    producer: tuple[int, int, int] = NO_PRODUCER,
    time: int = TIME,
    newest: int | None = None,
    wrong_crc: bool = False,
) -> bytes:
    """``records`` as they are stored; ``producer`` is id, epoch and base sequence. ``time`` is that
    of the first record, ``newest`` the largest one if it is another."""
    last = count - 1 if last_delta is None else last_delta
    size = RECORDS_AT - 12 + len(records)
    largest = time if newest is None else newest
    fields = (0, size, -1, 2, 0, codec, last, time, largest, *producer, count)
    data = bytearray(HEADER.pack(*fields) + records)
    crc = crc32c(bytes(data[CRC_FROM:])) ^ wrong_crc
    struct.pack_into(">I", data, CRC_AT, crc)
    return bytes(data)


def plain(*values: bytes, producer: tuple[int, int, int] = NO_PRODUCER) -> bytes:
    """An ordinary batch without keys."""
    records = encode_records(Record(None, value) for value in values)
    return batch(records, len(values), producer=producer)


def timed_entry(key: bytes | None, value: bytes | None, time: int = TIME) -> bytes:
    """A message of format 1."""
    body = struct.pack(">bbq", 1, 0, time) + blob(key) + blob(value)
    return struct.pack(">qiI", 0, len(body) + 4, crc32(body)) + body


def produce_frame(
    topic: str,
    data: bytes | None,
    *,
    version: int = 7,
    acks: int = 1,
    partition: int = 0,
    client_id: str = "later",
) -> bytes:
    body = struct.pack(">h", -1) if version >= 3 else b""
    body += struct.pack(">hii", acks, 10000, 1) + string(topic) + struct.pack(">ii", 1, partition)
    body += struct.pack(">i", -1 if data is None else len(data)) + (data or b"")
    return frame(PRODUCE, body, version=version, client_id=client_id)


def produced(reply: bytes, topic: str) -> tuple[int, int]:
    """(error, base offset) from the answer to ``produce_frame``, without size and correlation."""
    _, error, offset = struct.unpack_from(">ihq", reply, 4 + 2 + len(topic) + 4)
    return error, offset


def produce_reply_bytes(topic: str) -> int:
    """Size of a whole answer of version 7."""
    return 4 + 4 + 4 + 2 + len(topic) + 4 + (4 + 2 + 8 + 8 + 8) + 4


class Fetched(NamedTuple):
    """``start``: where the records begin in the answer."""

    error: int
    high_watermark: int
    start: int
    size: int


def fetched(reply: bytes | bytearray | memoryview, topic: str, at: int = 0) -> Fetched:
    """The answer to a fetch of version 4, which begins after the correlation id at ``at``."""
    at += 4 + 4 + 2 + len(topic) + 4
    _, error, hw, _, aborted = struct.unpack_from(">ihqqi", reply, at)
    at += 26 + 16 * max(0, aborted)
    (size,) = struct.unpack_from(">i", reply, at)
    return Fetched(error, hw, at + 4, max(0, size))
