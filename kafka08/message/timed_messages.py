"""The messages of an entry of format 1 or 2, with their timestamps and headers.

Offsets are the true ones. A control batch has no messages. ``leaves`` gives the same messages as
entries of format 0, for readers that need neither. Does not know sets.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka08.message import records
from kafka08.message.batch import header_of
from kafka08.message.compression import MAX_INFLATED, NONE
from kafka08.message.entry import (
    APPEND_TIME,
    ATTRIBUTES_AT,
    BATCH,
    CREATE_TIME,
    TIMED,
    BytesLike,
    TimedMessage,
    codec_of,
    crc_of,
    is_stamped,
    key_and_value,
    magic_of,
    offset_and_stop,
    time_of,
)
from kafka08.message.leaves import inflated_records, timed_leaves
from kafka08.message.scan import iter_entries


def timed_messages(
    buffer: BytesLike,
    position: int,
    stop: int,
    *,
    max_inflated: int = MAX_INFLATED,
    check_crc: bool = False,
) -> Iterator[TimedMessage]:
    """The messages of the entry at ``position`` to ``stop``. Raises as ``leaves`` does."""
    if magic_of(buffer, position) == BATCH:
        return _of_batch(buffer, position, stop, max_inflated)
    if codec_of(buffer, position) == NONE:
        return iter([_plain(buffer, position, stop)])
    return _of_wrapper(buffer, position, stop, max_inflated, check_crc)


def _of_batch(buffer: BytesLike, position: int, stop: int, room: int) -> Iterator[TimedMessage]:
    header = header_of(buffer, position)
    if header.is_control:
        return
    data = bytes(inflated_records(buffer, position, stop, room))
    codec, attributes, stamped = header.codec, header.attributes & 0xFF, header.is_stamped
    time, time_type = header.time, APPEND_TIME if stamped else CREATE_TIME
    numbers = iter(records.rows(data, 0, len(data)))
    for row in zip(*[numbers] * records.ROW, strict=True):
        delta, time_delta, _, _, key, key_end, value, value_end = row
        yield TimedMessage(
            header.base_offset + delta,
            data[key:key_end] if key_end >= 0 else None,
            data[value:value_end] if value_end >= 0 else None,
            codec,
            header.crc,
            BATCH,
            attributes,
            time if stamped else records.wrapped(time + time_delta),
            time_type,
            records.headers(data, row),
        )


def _plain(buffer: BytesLike, position: int, stop: int) -> TimedMessage:
    key, value = (
        None if span is None else bytes(buffer[slice(*span)])
        for span in key_and_value(buffer, position, stop)
    )
    return TimedMessage(
        offset_and_stop(buffer, position)[0],
        key,
        value,
        codec_of(buffer, position),
        crc_of(buffer, position),
        TIMED,
        buffer[position + ATTRIBUTES_AT],
        time_of(buffer, position),
        APPEND_TIME if is_stamped(buffer, position) else CREATE_TIME,
    )


def _of_wrapper(
    buffer: BytesLike, position: int, stop: int, room: int, check_crc: bool
) -> Iterator[TimedMessage]:
    last, _ = offset_and_stop(buffer, position)
    codec, stamped = codec_of(buffer, position), is_stamped(buffer, position)
    found = timed_leaves(buffer, position, stop, max_inflated=room, check_crc=check_crc)
    for number, entry in enumerate(iter_entries(found.data), last - found.count + 1):
        message = _plain(found.data, entry.position, entry.stop)._replace(
            offset=last - found.last + entry.offset if found.ordered else number,
            codec=codec,
            timestamp_type=APPEND_TIME if stamped else CREATE_TIME,
        )
        # The broker stamps the wrapper alone; its time is that of all messages in it.
        yield message._replace(timestamp=time_of(buffer, position)) if stamped else message
