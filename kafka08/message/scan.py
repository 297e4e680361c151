"""The walk over log entries, which all other modules use to read entries.

``walk`` passes over a stretch of entries of any format, makes the requested checks, may number the
entries, and returns where and why it stopped. ``fields``, ``columns`` and ``messages`` read the
contents of a stretch of plain messages of format 0, ``newest_time`` and ``message_times``
timestamps, ``producer_batches`` the producers of batches; ``family_end`` finds where other formats
begin. ``iter_entries`` yields top-level entries one at a time.

The functions over stretches have a compiled twin, ``kafka08._native.scan``, which replaces
them if it was built. It does not create a Python object per entry. Does not know codecs.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, TypeAlias

from kafka08._native import load
from kafka08.errors import InvalidMessageError, MessageSizeTooLargeError, UnknownError
from kafka08.message.batch import (
    BASE_TIMESTAMP_AT,
    BATCH_CODEC_AT,
    CLAIMED,
    CONTROL,
    LAST_DELTA_AT,
    LOG_APPEND_TIME,
    MAX_TIMESTAMP_AT,
    MIN_BATCH_SIZE,
    NO_PRODUCER,
    NO_TIMESTAMP,
    PRODUCER_AT,
    RECORDS_AT,
    TRANSACTIONAL,
)
from kafka08.message.entry import (
    ABOVE,
    ATTRIBUTES_AT,
    BAD_CRC,
    BAD_DELTA,
    BATCH,
    CODEC_MASK,
    CUT,
    DISORDER,
    END,
    HEADER,
    KEY_AT,
    KEY_LENGTH_AT,
    KEYLESS,
    LAST_OFFSET_BYTES,
    LOG_OVERHEAD,
    MAGIC_AT,
    MIN_ENTRY,
    MIN_MESSAGE_SIZE,
    MIN_TIMED_SIZE,
    OFFSET,
    OFFSET_AND_SIZE,
    PAUSED,
    SHORT,
    SIZE,
    SIZE_AT,
    TIMED,
    TIMED_KEY_LENGTH_AT,
    TIMESTAMP_AT,
    TOO_LARGE,
    WRAPPER,
    BytesLike,
    Cells,
    Entry,
    Message,
    Walked,
    check_bounds,
    codec_of,
    crc_of,
    has_right_crc,
    key_and_value,
    offset_and_stop,
)
from kafka08.message.markers import IN_TRANSACTION, NO_TRANSACTION, marker_of

_PRODUCER: Final = Struct(">qhi")  # id, epoch, sequence of the first record

ANY_SIZE: Final = (1 << 31) - 1
_LARGEST: Final = (1 << 63) - 1
FIELDS: Final = 5  # numbers that ``fields`` gives for each entry

# The producer's id and epoch, the sequence of the first record, base offset, last offset delta and
# largest timestamp of a batch, what it is in a transaction (``markers``), and of a marker the
# coordinator's epoch.
ProducerRow: TypeAlias = tuple[int, ...]  # eight; compiled callers would unpack such a type


def walk(
    buffer: BytesLike,
    position: int,
    end: int,
    *,
    number: int | None = None,
    check_crc: bool = False,
    max_size: int = ANY_SIZE,
    last: int | None = None,
    up_to: int | None = None,
    until: int | None = None,
    wrappers: bool = False,
    keyed: bool = False,
    reach: int | None = None,
    magic: int = 0,
) -> Walked:
    """Pass over the entries from ``position`` to ``end`` until one fails a check.

    Sizes are always checked, crcs with ``check_crc``. ``number`` writes offsets starting with that
    one into the buffer, which must be writable. With ``last`` offsets must rise and be above it.
    The walk stops at an entry above ``max_size`` (without its header), at an offset above
    ``up_to``, at the first entry that begins at ``until`` or later, with ``keyed`` at a plain
    message without a key. Without ``wrappers`` it stops at a compressed entry, at a batch, and at
    a plain message of another format than ``magic`` (0 or 1).

    With ``reach`` only headers (LAST_OFFSET_BYTES of each entry) need be in the buffer: entries may
    end at positions up to ``reach``, and codecs, keys and crcs are not read.
    """
    view = memoryview(buffer)
    check_bounds(view, position, end)
    count = codec = highest = 0
    first = newest = -1
    bound = end if reach is None else reach
    while True:
        if end - position < LOG_OVERHEAD:
            ended = END if position >= end else CUT
            break
        if until is not None and position >= until:
            ended = PAUSED
            break
        offset, size = OFFSET_AND_SIZE.unpack_from(view, position)
        if up_to is not None and offset > up_to:
            ended = ABOVE
            break
        if size < MIN_MESSAGE_SIZE:
            ended = SHORT
            break
        stop = position + LOG_OVERHEAD + size
        if stop > bound or position + MAGIC_AT >= end:
            ended = CUT
            break
        if size > max_size:
            ended = TOO_LARGE
            break
        found = view[position + MAGIC_AT]
        above = offset
        if found in (BATCH, TIMED):
            if size < (MIN_BATCH_SIZE if found == BATCH else MIN_TIMED_SIZE):
                ended = SHORT
                break
            if found == BATCH:
                if end - position < LAST_OFFSET_BYTES:
                    ended = CUT
                    break
                delta = SIZE.unpack_from(view, position + LAST_DELTA_AT)[0]
                if delta < 0 or offset > _LARGEST - delta:
                    ended = BAD_DELTA
                    break
                above = offset + delta
                if up_to is not None and above > up_to:
                    ended = ABOVE
                    break
        else:
            found = 0
        if check_crc and reach is None and not has_right_crc(view, position, stop):
            ended = BAD_CRC
            break
        if last is not None:
            if offset <= last:
                ended = DISORDER
                break
            last = above
        if reach is None:
            packed = codec_of(view, position)
            if not wrappers and (packed or found != magic):
                ended = WRAPPER
                break
            if packed:
                codec = packed
            elif keyed and found != BATCH:
                at = TIMED_KEY_LENGTH_AT if found else KEY_LENGTH_AT
                if SIZE.unpack_from(view, position + at)[0] < 0:
                    ended = KEYLESS
                    break
        if number is not None:
            offset = above = number + count
            OFFSET.pack_into(view, position, offset)
        if not count:
            first = offset
        newest = above
        highest = max(highest, found)
        count += 1
        position = stop
    return Walked(position, count, first, newest, codec, ended, highest)


def newest_time(
    buffer: BytesLike, position: int, stop: int, unclear: int = NO_TIMESTAMP
) -> tuple[int, int]:
    """The largest timestamp in a stretch of entries, and the (last) offset of the first entry that
    has it; both -1 if there is none. A wrapper counts with its own timestamp, a batch with its
    largest one.

    A batch counts with the time ``unclear`` if that is larger and its header cannot be right: its
    largest timestamp is below its base timestamp, and no broker set one of these. The last entry
    may be cut. It counts if its timestamp is there.
    """
    view = memoryview(buffer)
    check_bounds(view, position, stop)
    newest = found = NO_TIMESTAMP
    for start in _starts(view, position, stop):
        magic = view[start + MAGIC_AT]
        if magic in (BATCH, TIMED):
            at = MAX_TIMESTAMP_AT if magic == BATCH else TIMESTAMP_AT
            if start + at + 8 > stop:
                break
            time = OFFSET.unpack_from(view, start + at)[0]
            if magic == BATCH and time < unclear and _is_unclear(view, start, time):
                time = unclear
            if time > newest:
                newest, found = time, offset_and_stop(view, start)[0]
    return newest, found


def _is_unclear(view: memoryview, start: int, newest: int) -> bool:
    if view[start + BATCH_CODEC_AT] & CLAIMED:
        return False
    base: int = OFFSET.unpack_from(view, start + BASE_TIMESTAMP_AT)[0]
    return newest < base


def message_times(buffer: BytesLike, position: int, stop: int) -> tuple[int, int, bool]:
    """The oldest and the newest timestamp of whole plain entries of format 1, and whether one of
    them claims to have the broker's time or has a time below -1.

    Messages with the timestamp -1 do not count for the oldest, which is the largest int64 without
    others. The newest is at least -1.
    """
    view = memoryview(buffer)
    check_bounds(view, position, stop)
    oldest, newest, odd = _LARGEST, NO_TIMESTAMP, False
    for start in _starts(view, position, stop):
        if start + TIMESTAMP_AT + 8 > stop:
            break
        time = OFFSET.unpack_from(view, start + TIMESTAMP_AT)[0]
        odd = odd or time < NO_TIMESTAMP or bool(view[start + ATTRIBUTES_AT] & LOG_APPEND_TIME)
        newest = max(newest, time)
        if time != NO_TIMESTAMP:
            oldest = min(oldest, time)
    return oldest, newest, odd


def _starts(view: memoryview, position: int, stop: int) -> Iterator[int]:
    """Where the entries of a stretch begin, without any check."""
    while stop - position > MAGIC_AT:
        yield position
        position = max(_after(view, position), position + LOG_OVERHEAD)


def _after(view: memoryview, position: int) -> int:
    """Where the entry there ends by its size, without any check."""
    return position + LOG_OVERHEAD + int(SIZE.unpack_from(view, position + SIZE_AT)[0])


def producer_batches(buffer: BytesLike, position: int, stop: int) -> list[ProducerRow]:
    """The batches of idempotent producers among the entries that begin before ``stop``.

    Of an entry that ends after ``stop`` the header must be in the buffer; it is the last one read.
    A marker must be whole.
    """
    view = memoryview(buffer)
    check_bounds(view, position, stop)
    found: list[ProducerRow] = []
    for start in _starts(view, position, stop):
        if view[start + MAGIC_AT] == BATCH and stop - start >= RECORDS_AT:
            producer_id, epoch, sequence = _PRODUCER.unpack_from(view, start + PRODUCER_AT)
            if producer_id > NO_PRODUCER:
                offset = OFFSET.unpack_from(view, start)[0]
                delta = SIZE.unpack_from(view, start + LAST_DELTA_AT)[0]
                time = OFFSET.unpack_from(view, start + MAX_TIMESTAMP_AT)[0]
                part = _part_of(view, start, stop)
                found.append((producer_id, epoch, sequence, offset, delta, time, *part))
    return found


def _part_of(view: memoryview, start: int, stop: int) -> tuple[int, int]:
    """The part of a batch in a transaction, and a marker's coordinator epoch, else -1."""
    attributes = view[start + BATCH_CODEC_AT]
    if attributes & CONTROL:
        return marker_of(view[start + RECORDS_AT : min(_after(view, start), stop)])
    return (IN_TRANSACTION if attributes & TRANSACTIONAL else NO_TRANSACTION), -1


def fields(buffer: BytesLike, position: int, stop: int, number: int | None = None) -> array[int]:
    """The positions of keys and values in a stretch of whole plain entries of format 0.

    Five numbers for each message: its offset (counted from ``number`` if that is given), start and
    end of the key, start and end of the value, as positions in ``buffer``. The end of a null is -1.
    An entry begins ``KEY_AT`` before its key. Raises InvalidMessageError for impossible lengths.
    """
    rows = array("q")
    view = memoryview(buffer)[:stop]
    for count, entry in enumerate(iter_entries(view, position)):
        key, value = key_and_value(view, entry.position, entry.stop)
        start, end = key or (entry.position + KEY_AT, -1)
        after = max(start, end) + SIZE.size
        offset = entry.offset if number is None else number + count
        rows.extend((offset, start, end, *(value or (after, -1))))
    return rows


def columns(
    buffer: BytesLike, position: int, stop: int, number: int | None = None
) -> tuple[bytes, Cells | None, Cells | None]:
    """The offsets, keys and values in a stretch of whole plain entries.

    Offsets are int64 in the machine's byte order, counted from ``number`` if that is given. A
    column without any cell is None. Raises InvalidMessageError for impossible lengths, and
    OverflowError for a stretch of 2 GiB.
    """
    view = memoryview(buffer)
    rows = fields(view, position, stop, number)
    found = [_cells(view, rows[at::FIELDS], rows[at + 1 :: FIELDS]) for at in (1, 3)]
    return rows[0::FIELDS].tobytes(), found[0], found[1]


def _cells(view: memoryview, starts: Sequence[int], ends: Sequence[int]) -> Cells | None:
    """Those from ``starts`` to ``ends``; the end of a null is negative."""
    if all(end < 0 for end in ends):
        return None
    bounds = array("i", [0])
    valid = bytearray((len(starts) + 7) // 8)
    parts = []
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if end >= 0:
            valid[row >> 3] |= 1 << (row & 7)
            parts.append(view[start:end])
        bounds.append(bounds[-1] + max(end - start, 0))
    is_full = len(parts) == len(starts)
    return Cells(bounds.tobytes(), b"".join(parts), None if is_full else bytes(valid))


def messages(
    buffer: BytesLike, position: int, stop: int, codec: int = 0, number: int | None = None
) -> list[Message]:
    """The messages of a stretch of whole plain entries of format 0, which came in an entry with
    ``codec``.

    They have their own offsets, or are numbered from ``number``. Raises as ``fields`` does.
    """
    found = []
    data = bytes(memoryview(buffer)[position:stop])
    for offset, start, key_end, value, end in iter_fields(data, 0, len(data), number):
        _, _, crc, magic, attributes = HEADER.unpack_from(data, start - KEY_AT)
        key = data[start:key_end] if key_end >= 0 else None
        content = data[value:end] if end >= 0 else None
        found.append(Message(offset, key, content, codec, crc, magic, attributes))
    return found


def family_end(buffer: BytesLike, position: int, stop: int) -> int:
    """Where the first entry of another family of formats begins than that of the first entry: one
    family is formats 0 and 1, the other format 2.

    Without such an entry the result is the position after the last one that has its magic before
    ``stop``, which itself may end after that. An entry with an impossible size ends the stretch.
    """
    view = memoryview(buffer)
    check_bounds(view, position, stop)
    is_batch: bool | None = None
    for start in _starts(view, position, stop):
        after = _after(view, start)
        found = view[start + MAGIC_AT] == BATCH
        is_batch = found if is_batch is None else is_batch
        if found != is_batch or after - start < MIN_ENTRY:
            break
        position = after
    return position


def number_messages(buffer: BytesLike, base: int, max_size: int) -> int:
    """Check and number, in place and in one step, a set that is most common: plain messages of
    format 0, the last one whole, none above ``max_size`` (without its header).

    Returns their number. It is 0 for any other set, some of whose offsets may have changed: then
    ``sets.assign_offsets`` says what it is. Only the compiled twin has this step.
    """
    return 0


plain_walk, plain_newest_time = walk, newest_time
plain_producer_batches, plain_message_times = producer_batches, message_times
plain_family_end = family_end
plain_fields, plain_columns, plain_messages = fields, columns, messages
native = load("scan")
if native is not None:
    walk, newest_time = native.walk, native.newest_time
    number_messages = native.number_messages
    producer_batches, message_times = native.producer_batches, native.message_times
    family_end = native.family_end
    fields, columns, messages = native.fields, native.columns, native.messages


def iter_fields(
    buffer: BytesLike, position: int, stop: int, number: int | None = None
) -> Iterator[tuple[int, int, int, int, int]]:
    """The rows of ``fields`` one at a time."""
    numbers = iter(fields(buffer, position, stop, number))
    return zip(*[numbers] * FIELDS, strict=True)


def iter_entries(buffer: BytesLike, start: int = 0) -> Iterator[Entry]:
    """The whole top-level entries from position ``start``; only sizes are checked.

    Raises InvalidMessageError at an entry shorter than any message.
    """
    end = len(buffer)
    position = start
    while end - position >= LOG_OVERHEAD:
        size = SIZE.unpack_from(buffer, position + SIZE_AT)[0]
        stop = position + LOG_OVERHEAD + size
        if size < MIN_MESSAGE_SIZE:
            raise short(size)
        if stop > end:
            break
        offset, _, crc, magic, attributes = HEADER.unpack_from(buffer, position)
        codec = attributes & CODEC_MASK
        if magic == BATCH:
            if size < MIN_BATCH_SIZE:
                raise short(size)
            offset, _ = offset_and_stop(buffer, position)
            codec, crc = codec_of(buffer, position), crc_of(buffer, position)
        yield Entry(position, offset, stop - position, codec, crc, magic)
        position = stop


def refuse(buffer: BytesLike, walked: Walked, max_size: int = ANY_SIZE) -> None:
    """Raise the error that a walk ended with, if any.

    InvalidMessageError (impossible size, wrong crc), MessageSizeTooLargeError, UnknownError
    (offsets do not rise).
    """
    position = walked.stop
    if walked.ended == SHORT:
        raise short(SIZE.unpack_from(buffer, position + SIZE_AT)[0])
    if walked.ended == TOO_LARGE:
        size = SIZE.unpack_from(buffer, position + SIZE_AT)[0]
        raise MessageSizeTooLargeError(
            f"Message size is {size + LOG_OVERHEAD} bytes which exceeds the maximum configured "
            f"message size of {max_size + LOG_OVERHEAD}"
        )
    if walked.ended == BAD_CRC:
        raise wrong_crc(buffer, position)
    if walked.ended == BAD_DELTA:
        raise bad_delta(position)
    if walked.ended == DISORDER:
        raise UnknownError("Out of order offsets found in a message set")


def short(size: int) -> InvalidMessageError:
    """The error of an entry with an impossible size."""
    return InvalidMessageError(f"Message found with corrupt size ({size})")


def bad_delta(position: int) -> InvalidMessageError:
    """The error of a batch with an impossible last offset."""
    return InvalidMessageError(f"The batch at position {position} has an impossible last offset")


def wrong_crc(buffer: BytesLike, position: int) -> InvalidMessageError:
    """The error of an entry that fails its crc."""
    stored = crc_of(buffer, position)
    return InvalidMessageError(f"Message at position {position} is corrupt (stored crc = {stored})")
