"""Produced sets of formats 1 and 2: checked and numbered in place, their times checked or set.

A producer's claims about its messages are checked with the messages. These bytes change in place:
the offset of a message or wrapper of format 1, base offset and leader epoch of a batch, and with
log append time also timestamp, timestamp type and crc. A wrapper or batch gets the newest time of
its messages, and a new crc, if it claims another one. A wrapper of format 1 whose messages are not
numbered from 0 is packed again. A set has one format. Mirrors kafka.log.LogValidator, without its
conversions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka08.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    UnknownError,
)
from kafka08.message import records
from kafka08.message.batch import (
    CLAIMED,
    CODEC,
    CONTROL,
    NO_PRODUCER,
    NO_TIMESTAMP,
    RECORDS_AT,
    TRANSACTIONAL,
    header_of,
    set_leader_epoch,
    set_newest,
)
from kafka08.message.compression import FASTEST, MAX_INFLATED, NAMES, NONE, compress
from kafka08.message.entry import (
    BATCH,
    CUT,
    END,
    KEYLESS,
    LOG_OVERHEAD,
    OFFSET,
    TIMED,
    WRAPPER,
    Appended,
    codec_of,
    encode_entry,
    is_stamped,
    magic_of,
    offset_and_stop,
    set_time,
    time_of,
)
from kafka08.message.leaves import TimedLeaves, inflated_records, timed_leaves
from kafka08.message.scan import iter_entries, message_times, refuse, walk
from kafka08.message.wrappers import Rebuilt
from kafka08.named import named

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1


class Rules(NamedTuple):
    """The demands of a topic on messages with timestamps. With an ``append_time`` (ms) that becomes
    their time; otherwise it must be from ``oldest`` to ``newest``. ``keyed``: every message needs a
    key. ``leader_epoch`` is written into batches. Sets above ``max_format`` are stored in it: the
    highest format that all replicas can hold."""

    append_time: int | None = None
    oldest: int = _SMALLEST
    newest: int = _LARGEST
    keyed: bool = False
    leader_epoch: int = -1
    max_format: int = BATCH


ANY_TIME = Rules()
NOTHING: Final = Appended(0, 0, -1, -1, 0, NONE)


class _InflateBudget:
    """The bytes that all entries together may still inflate to. ``max_size`` is the largest size of
    a stored entry, ``renewed`` collects those to store instead."""

    def __init__(self, left: int, max_size: int, renewed: list[Rebuilt] | None) -> None:
        self.left = left
        self.max_size = max_size
        self.renewed = renewed

    @property
    def most(self) -> int:
        """The bytes that the next entry may inflate to."""
        return min(MAX_INFLATED, self.left)


def number_timed_set(
    view: memoryview,
    base: int,
    max_size: int,
    rules: Rules,
    room: int,
    renewed: list[Rebuilt] | None,
) -> tuple[Appended, int]:
    """Check the set, which begins with an entry of format 1 or 2, and number it from ``base``.

    ``max_size`` limits the size of an entry as stored in it. ``renewed`` collects the wrappers that
    were packed again, to store instead of those in the buffer; without it these are refused.
    Returns what was found, NOTHING without a whole entry, and the bytes inflated: at most
    MAX_INFLATED for each entry, and ``room`` for all. Raises as ``sets.assign_offsets`` does,
    InvalidRecordError and InvalidTimestampError.
    """
    magic = magic_of(view)
    left = _InflateBudget(room, max_size, renewed)
    position, end = 0, len(view)
    offset, entries, codec = base, 0, NONE
    while position < end:
        walked = walk(
            view,
            position,
            end,
            number=offset,
            check_crc=True,
            max_size=max_size,
            magic=TIMED,
            keyed=rules.keyed,
        )
        if walked.count:
            _require(magic == TIMED)
            _set_message_times(view, position, walked.stop, rules)
        offset += walked.count
        entries += walked.count
        position = walked.stop
        if walked.ended == KEYLESS:
            raise keyless()
        if walked.ended != WRAPPER:
            if walked.ended not in (END, CUT):
                refuse(view, walked, max_size)
            break
        _require(magic_of(view, position) == magic)
        number = _number_batch if magic == BATCH else _number_wrapper
        count, position, codec = number(view, position, offset, rules, left)
        offset += count
        entries += 1
    if not entries:
        return NOTHING, 0
    found = offset - base, position, base, offset - 1, entries, codec, magic
    return named(Appended, found), room - left.left


def _require(same_format: bool) -> None:
    if not same_format:
        raise InvalidRecordError("A set has messages of several formats")


def _number_batch(
    view: memoryview, position: int, offset: int, rules: Rules, left: _InflateBudget
) -> tuple[int, int, int]:
    """The number of records of the batch, which gets ``offset`` as its base; where it ends; its
    codec."""
    header = header_of(view, position)
    _, size, _, _, _, attributes, last_delta, base_time, max_time, producer, _, _, count = header
    stop = position + LOG_OVERHEAD + size
    codec = attributes & CODEC
    if codec not in NAMES:
        raise UnknownError(f"Unknown compression codec {codec}")
    if attributes & CONTROL:
        raise InvalidRecordError("Only brokers write control batches")
    if attributes & TRANSACTIONAL and producer == NO_PRODUCER:
        raise InvalidRecordError("A batch of a transaction does not name its producer")
    if count < 1 or count != last_delta + 1:
        raise InvalidRecordError(f"A batch says that it holds {count} records up to {last_delta}")
    if codec:
        data = inflated_records(view, position, stop, left.most)
        left.left -= len(data)
        found = records.check(data, 0, len(data), count, base_time)
    else:
        found = records.check(view, position + RECORDS_AT, stop, count, base_time)
    has_keyless, oldest, newest = found
    if has_keyless and rules.keyed:
        raise keyless()
    OFFSET.pack_into(view, position, offset)
    set_leader_epoch(view, position, rules.leader_epoch)
    if rules.append_time is not None:
        set_newest(view, position, stop, rules.append_time, stamped=True)
        return count, stop, codec
    _check_times(oldest, newest, rules)
    if newest != max_time or attributes & CLAIMED:
        set_newest(view, position, stop, newest)
    return count, stop, codec


def _number_wrapper(
    view: memoryview, position: int, offset: int, rules: Rules, left: _InflateBudget
) -> tuple[int, int, int]:
    """The number of messages in the wrapper of format 1, which get offsets from ``offset`` on;
    where it ends; its codec."""
    _, stop = offset_and_stop(view, position)
    codec = codec_of(view, position)
    found = timed_leaves(view, position, stop, max_inflated=left.most, check_crc=True)
    left.left -= len(found.data)
    count = found.count
    if not count:
        raise InvalidRecordError("A compressed message of format 1 holds no messages")
    if rules.keyed and walk(found.data, 0, len(found.data), magic=TIMED, keyed=True).ended:
        raise keyless()
    oldest, newest, _ = message_times(found.data, 0, len(found.data))
    stamped = rules.append_time is not None
    if rules.append_time is None:
        _check_times(oldest, newest, rules)
    else:
        newest = rules.append_time
    last = offset + count - 1
    if found.first or found.last != count - 1 or not found.ordered:
        entry = _renumbered(found, codec, last, newest, stamped)
        if len(entry) > left.max_size + LOG_OVERHEAD:
            raise MessageSizeTooLargeError(
                f"A compressed message has {len(entry)} bytes after it was numbered, which exceeds "
                f"the maximum configured message size of {left.max_size + LOG_OVERHEAD}"
            )
        if left.renewed is None:
            raise InvalidRecordError("The messages in a compressed one are not numbered from 0")
        left.renewed.append(Rebuilt(position, stop - position, entry))
        return count, stop, codec
    OFFSET.pack_into(view, position, last)
    if newest != time_of(view, position) or stamped != is_stamped(view, position):
        set_time(view, position, stop, newest, stamped=stamped)
    return count, stop, codec


def _renumbered(found: TimedLeaves, codec: int, last: int, time: int, stamped: bool) -> bytes:
    """A wrapper with these messages, numbered from 0. Their crcs do not cover the offsets."""
    table = bytearray(found.data)
    walk(table, 0, len(table), number=0, magic=TIMED)
    packed = compress(codec, table, level=FASTEST, magic=TIMED)
    return encode_entry(None, packed, last, codec, timestamp=time, stamped=stamped)


def _set_message_times(view: memoryview, position: int, stop: int, rules: Rules) -> None:
    """Check or set the times of whole plain entries of format 1."""
    oldest, newest, odd = message_times(view, position, stop)
    if rules.append_time is None:
        _check_times(oldest, newest, rules)
        if not odd:
            return
    for entry in iter_entries(view[position:stop]):
        start, end = position + entry.position, position + entry.stop
        time = time_of(view, start)
        if rules.append_time is not None:
            set_time(view, start, end, rules.append_time, stamped=True)
        elif is_stamped(view, start) or time < NO_TIMESTAMP:
            set_time(view, start, end, max(time, NO_TIMESTAMP))


def _check_times(oldest: int, newest: int, rules: Rules) -> None:
    if oldest < rules.oldest or newest > rules.newest:
        timestamp = oldest if oldest < rules.oldest else newest
        raise InvalidTimestampError(
            f"The timestamp {timestamp} is not from {rules.oldest} to {rules.newest}"
        )


def keyless() -> InvalidRecordError:
    """The error of a message without a key in a compacted topic."""
    return InvalidRecordError("A compacted topic takes no message without a key")
