"""Entries of formats 1 and 2 as older clients must get them: in format 0 or 1.

Offsets, keys, values and codec stay; headers, the producer's identity and, in format 0, timestamps
are lost. zstd, which formats 0 and 1 do not know, becomes gzip. A batch without a codec becomes
plain entries, one for each record. A compressed batch becomes one wrapper with the offset of its
last record; inside format 1 offsets count from the batch's base offset. A control batch and a batch
without records become nothing. Does not know sets.
"""

from __future__ import annotations

from kafka08.message import records
from kafka08.message.batch import Batch, header_of
from kafka08.message.compression import FASTEST, GZIP, NONE, ZSTD, compress
from kafka08.message.entry import BATCH, TIMED, BytesLike, codec_of, encode_entry, magic_of
from kafka08.message.leaves import inflated_records, leaves
from kafka08.message.scan import newest_time


def converted(entry: BytesLike, target: int, max_inflated: int) -> tuple[bytes, int]:
    """A whole entry of format 1 or 2 in the lower format ``target``, and the bytes inflated.

    Raises as ``leaves`` does.
    """
    if target == TIMED and magic_of(entry) == BATCH:
        return _timed(entry, max_inflated)
    codec = codec_of(entry)
    found = leaves(entry, 0, len(entry), codec, max_inflated=max_inflated)
    if codec == NONE or not found.count:
        return found.data, found.inflated
    codec = GZIP if codec == ZSTD else codec
    packed = compress(codec, found.data, level=FASTEST)
    return encode_entry(None, packed, found.last_stored, codec), found.inflated


def _timed(entry: BytesLike, max_inflated: int) -> tuple[bytes, int]:
    """A batch in format 1."""
    header = header_of(entry)
    if header.is_control:
        return b"", 0
    data = inflated_records(entry, 0, len(entry), max_inflated)
    base = header.base_offset if header.codec == NONE else 0
    time, stamped = _time(header)
    found, count, last = records.entries(data, 0, len(data), TIMED, base, time, stamped)
    if header.codec == NONE or not count:
        return found, len(data)
    codec = GZIP if header.codec == ZSTD else header.codec
    newest, _ = newest_time(found, 0, len(found))
    packed = compress(codec, found, level=FASTEST, magic=TIMED)
    offset = header.base_offset + last
    wrapper = encode_entry(None, packed, offset, codec, timestamp=newest, stamped=stamped)
    return wrapper, len(data)


def _time(header: Batch) -> tuple[int, bool]:
    """The arguments of ``records.entries`` for the times of the records."""
    if header.is_stamped:
        return header.max_timestamp, True
    return header.base_timestamp, False
