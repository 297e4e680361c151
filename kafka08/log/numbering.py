"""Produced sets on their way into a log: checked and numbered from an offset, then written there.

Safe on any thread. Another thread can number a set while the log takes other appends; then the set
is ``moved`` to the log's new end. Does not know files.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka08.common import TopicPartition
from kafka08.errors import InvalidRecordError, KafkaError, UnsupportedForMessageFormatError
from kafka08.log.producer_state import CLIENT, COORDINATOR, Origin
from kafka08.message import sets, wrappers
from kafka08.message.batch import NO_TIMESTAMP, header_of, set_leader_epoch
from kafka08.message.compression import LZ4, NONE
from kafka08.message.convert import converted_set, refuse_headers
from kafka08.message.entry import BATCH, LOG_OVERHEAD, MAGIC_AT, OFFSET, Appended
from kafka08.message.records import number_plain
from kafka08.message.scan import iter_entries, number_messages
from kafka08.message.sets import Opened
from kafka08.message.timed_sets import ANY_TIME, Rules
from kafka08.message.wrappers import Rebuilt
from kafka08.named import named
from kafka08.settings.topic import LogConfig


class RebuiltSet(NamedTuple):
    """The rebuilt wrappers that consumers must get for a set, which was written at ``position`` of
    the file with this ``serial``. The wrappers' own positions are relative to it."""

    serial: int
    position: int
    wrappers: list[Rebuilt]


class LogAppendInfo(NamedTuple):
    """The result of an append. If ``count`` is 0 nothing was written, and the offsets are -1. If
    only ``valid_bytes`` is 0, these messages of an idempotent producer were stored before.

    ``rolled``: the caller should soon call ``flush(up_to=first_offset)`` on another thread.
    ``rebuilt``: wrappers rebuilt at append while consumers are near (see ``tail``).
    ``append_time``: the timestamp (ms) that all messages got; -1 if they have their own or none.
    """

    first_offset: int
    last_offset: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    valid_bytes: int
    codec: int
    rolled: bool = False
    rebuilt: RebuiltSet | None = None
    append_time: int = NO_TIMESTAMP


NOTHING_APPENDED = LogAppendInfo(-1, -1, 0, 0, 0)


class Numbered:
    """A set between its request and the file: all that checking and numbering found out about it.

    ``data`` is ready to be written at offset ``base``; ``found`` describes it. ``movable``: it can
    be given other offsets without opening its wrappers again. ``origin``: who has made it.
    ``rebuilt``: the wrappers that
    consumers must get, by their positions in ``data``. ``last_stored``: the last inner offsets of
    its wrappers. ``sendable``: all consumers may be sent ``data`` as it is; ``later``: those that
    read all formats may be.
    """

    __slots__ = (
        "base", "data", "found", "last_stored", "later", "movable", "origin", "rebuilt", "sendable",
    )  # fmt: skip

    def __init__(
        self,
        base: int,
        found: Appended,
        data: memoryview,
        *,
        normalised: bool = False,
        movable: bool = False,
        rebuilt: list[Rebuilt] | None = None,
        last_stored: list[int] | None = None,
    ) -> None:
        """``normalised``: inside its wrappers of format 0 are true offsets."""
        self.base = base
        self.found = found
        self.data = data
        self.movable = movable
        self.rebuilt = rebuilt
        self.last_stored = last_stored
        self.origin: Origin = CLIENT
        codec, magic = found.codec, found.magic
        self.sendable = not magic and (not codec or normalised)
        self.later = magic > 0 or (self.sendable and codec != LZ4)


def number(
    topic_partition: TopicPartition,
    config: LogConfig,
    buffer: memoryview,
    base: int,
    *,
    opened: Opened | None = None,
    rebuild: bool = True,
    rules: Rules = ANY_TIME,
) -> Numbered:
    """Check a produced set and number it from ``base``, in ``buffer``.

    ``opened`` bounds the inflated size of all its wrappers together. Without ``rebuild`` no
    wrappers are rebuilt for consumers. ``rules`` are those of ``timed_sets``, but for keys. A set
    of a higher format than the rules and the topic allow is converted.

    Raises MessageSizeTooLargeError, InvalidMessageError (also for a message without a key in a
    compacted topic), InvalidTimestampError, UnsupportedForMessageFormatError (headers in a set that
    must be converted) and UnknownError (undecodable wrapper).
    """
    plain = _plain(config, buffer, base, rules)
    if plain is not None:
        return plain
    limit = config.max_message_bytes
    normalised = config.compressed_sets == "normalised"
    rebuilt: list[Rebuilt] | None = None
    if rebuild and not normalised and sets.begins_compressed(buffer):
        rebuilt = []
    if config.compact:
        rules = rules._replace(keyed=True)
    renewed: list[Rebuilt] = []
    found = sets.assign_offsets(
        buffer, base, limit, opened=opened, rebuilt=rebuilt, renewed=renewed, rules=rules
    )
    data = buffer if found.valid_bytes == len(buffer) else buffer[: found.valid_bytes]
    if renewed:
        data = sets.with_renewed(data, renewed)
    if found.magic and found.magic > min(config.message_format, rules.max_format):
        target = min(config.message_format, rules.max_format)
        return _in_format(target, base, found, data, limit, normalised=normalised)
    if config.compact and sets.holds_null_key(data):
        raise InvalidRecordError(
            f"{topic_partition} is compacted and takes no message without a key"
        )
    movable = opened is not None or not found.codec
    if found.codec and normalised and not found.magic:
        movable = False
        found = found._replace(first_offset=found.last_offset - found.count + 1)
        data = _normalise(data, found.first_offset, limit)
    last_stored = opened.last_stored if opened is not None else None
    return Numbered(
        base,
        found,
        data,
        normalised=normalised,
        movable=movable,
        rebuilt=rebuilt,
        last_stored=last_stored,
    )


def _plain(config: LogConfig, buffer: memoryview, base: int, rules: Rules) -> Numbered | None:
    """A set without a codec that is stored as it comes but for its numbers: messages of format 0,
    or one right batch where batches are stored. None for any other set."""
    if config.compact or len(buffer) <= MAGIC_AT:
        return None
    magic, largest = buffer[MAGIC_AT], config.max_message_bytes - LOG_OVERHEAD
    if not magic:
        count = entries = number_messages(buffer, base, largest)
    elif magic == BATCH == config.message_format == rules.max_format and rules.append_time is None:
        epoch, entries = rules.leader_epoch, 1
        count = number_plain(buffer, base, epoch, largest, rules.oldest, rules.newest)
    else:
        return None
    if not count:
        return None
    fields = count, len(buffer), base, base + count - 1, entries, NONE, magic
    return Numbered(base, named(Appended, fields), buffer, movable=True)


def of_coordinator(buffer: memoryview, base: int, rules: Rules, config: LogConfig) -> Numbered:
    """A batch that this broker has made, a marker or offsets in a transaction, numbered from
    ``base`` in ``buffer``. Raises UnsupportedForMessageFormatError where batches are not stored."""
    if min(config.message_format, rules.max_format) < BATCH:
        raise UnsupportedForMessageFormatError("The partition's format has no transactions")
    header = header_of(buffer)
    OFFSET.pack_into(buffer, 0, base)
    set_leader_epoch(buffer, 0, rules.leader_epoch)
    last = base + header.last_delta
    found = Appended(header.count, len(buffer), base, last, 1, header.codec, BATCH)
    numbered = Numbered(base, found, buffer, movable=True)
    numbered.origin = COORDINATOR
    return numbered


def copied(buffer: memoryview) -> Numbered:
    """A set of any size that a leader has numbered. Its wrappers are not opened. Raises as
    ``sets.check_follower_set`` does."""
    found = sets.check_follower_set(buffer)
    copy = Numbered(found.first_offset, found, buffer[: found.valid_bytes])
    copy.later = not found.codec
    return copy


def _in_format(
    target: int, base: int, found: Appended, data: memoryview, limit: int, *, normalised: bool
) -> Numbered:
    """The set in a lower format. Inside wrappers of format 0 are true offsets."""
    if found.magic == BATCH:
        for entry in iter_entries(data):
            batch = data[entry.position : entry.stop]
            refuse_headers(batch)
            if header_of(batch).is_transactional:
                raise UnsupportedForMessageFormatError("The partition's format has no transactions")
    stored = memoryview(bytearray(converted_set(data, target)))
    checked = sets.check_follower_set(stored, limit)
    found = found._replace(entries=checked.entries, codec=checked.codec, magic=checked.magic)
    wrapped = checked.codec and not target
    last_stored = [each.offset for each in iter_entries(stored) if each.codec] if wrapped else []
    movable = not normalised
    return Numbered(
        base, found, stored, normalised=normalised, movable=movable, last_stored=last_stored
    )


def timed_rules(rules: Rules, config: LogConfig, now: int) -> Rules:
    """The rules with what the topic demands of timestamps at the time ``now`` (ms)."""
    if config.stamps:
        return rules._replace(append_time=now)
    if config.timestamp_limits is None:
        return rules
    before, after = config.timestamp_limits
    oldest, newest = max(now - before, ANY_TIME.oldest), min(now + after, ANY_TIME.newest)
    return rules._replace(oldest=oldest, newest=newest)


def moved(numbered: Numbered, base: int) -> Numbered:
    """The same set, renumbered from ``base``. Raises KafkaError if it is not movable."""
    if numbered.base == base:
        return numbered
    if not numbered.movable:
        raise KafkaError("The log's end has moved on")
    found = numbered.found
    if not found.entries:
        return numbered
    last_stored = numbered.last_stored or []
    distance = sets.move_offsets(numbered.data, base - numbered.base, last_stored)
    numbered.base = base
    numbered.found = found._replace(
        first_offset=found.first_offset + distance, last_offset=found.last_offset + distance
    )
    numbered.rebuilt = None
    return numbered


def _normalise(data: memoryview, base_offset: int, max_message_bytes: int) -> memoryview:
    """The set as 0.8.2.2 would store it: one wrapper. Raises MessageSizeTooLargeError."""
    stored = memoryview(wrappers.normalise(data, base_offset))
    sets.check_follower_set(stored, max_message_bytes)
    return stored
