"""Where a group can be put: the beginning, the end, a time, or so far from where it is.

Reads times, durations, partition lists and plans; asks ``GroupStorage`` for offsets. Whether a
group may be reset, and writing, are the caller's.
"""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka08.admin import InvalidArgumentError
from kafka08.common import TopicPartition
from kafka08.errors import UnknownTopicOrPartitionError
from kafka08.groups.storage import GroupStorage

logger = logging.getLogger("kafka.admin.ConsumerGroupCommand$")

Offsets = dict[TopicPartition, int]
Plan = dict[str, Offsets]
_DATETIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{1,3})(Z|[+-]\d\d(?::?\d\d)?)?"
)
_DURATION = re.compile(
    r"(-)?P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)
_MAX_MS = (1 << 63) - 1


def parse_datetime(text: str) -> int:
    """``yyyy-MM-ddTHH:mm:ss.SSS[zone]`` to ms since the epoch; UTC without a zone.

    Raises InvalidArgumentError.
    """
    found = _DATETIME.fullmatch(text)
    try:
        if found is None:
            raise ValueError("it has another form")
        *numbers, fraction, zone = found.groups()
        moment = datetime.datetime(*map(int, numbers), tzinfo=_zone(zone))  # type: ignore[misc, arg-type]
        since = moment - datetime.datetime.fromtimestamp(0, datetime.timezone.utc)
        return since // datetime.timedelta(milliseconds=1) + int(fraction)
    except (ValueError, OverflowError) as error:
        raise InvalidArgumentError(
            f"{text} is not a time like 2015-10-21T16:29:00.000 or 2015-10-21T16:29:00.000+02:00: "
            f"{error}"
        ) from None


def _zone(text: str | None) -> datetime.timezone:
    if text is None or text == "Z":
        return datetime.timezone.utc
    minutes = int(text[1:3]) * 60 + int(text[3:].replace(":", "") or 0)
    return datetime.timezone(datetime.timedelta(minutes=minutes if text[0] == "+" else -minutes))


def parse_duration(text: str) -> int:
    """``PnDTnHnMnS`` to ms. Raises InvalidArgumentError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise InvalidArgumentError(f"{text} is not a duration like P1DT2H30M or PT90S")
    sign, days, hours, minutes, seconds = found.groups()
    millis = (int(days or 0) * 24 + int(hours or 0)) * 3600000 + int(minutes or 0) * 60000
    millis += round(float(seconds or 0) * 1000)
    if millis > _MAX_MS:
        raise InvalidArgumentError(f"{text} is too long")
    return -millis if sign else millis


def parse_partitions(
    words: Iterable[str], existing: Callable[[Iterable[str]], list[TopicPartition]]
) -> list[TopicPartition]:
    """``topic`` or ``topic:0,1`` words to partitions; ``existing`` lists those of topics.

    Raises InvalidArgumentError for a word of another form, UnknownTopicOrPartitionError for what
    does not exist.
    """
    asked = []
    for word in words:
        topic, colon, numbers = word.partition(":")
        if not topic or not all(n.isascii() and n.isdecimal() for n in numbers.split(",") if colon):
            raise InvalidArgumentError(f"{word} is not a topic, nor a topic:0,1,2")
        asked.append((topic, [int(n) for n in numbers.split(",")] if colon else None))
    known = existing({topic for topic, _ in asked})
    partitions: list[TopicPartition] = []
    for topic, ids in asked:
        of_topic = [tp for tp in known if tp.topic == topic]
        wanted = of_topic if ids is None else [TopicPartition(topic, number) for number in ids]
        missing = [tp for tp in wanted if tp not in of_topic]
        if missing or not of_topic:
            what = f"Partition {missing[0]}" if of_topic else f"Topic {topic}"
            raise UnknownTopicOrPartitionError(f"{what} doesn't exist")
        partitions += wanted
    return list(dict.fromkeys(partitions))


def parse_plan(text: str, groups: Sequence[str]) -> Plan:
    """The lines of --export: ``topic,partition,offset`` for the one group, or with it in front.

    Raises InvalidArgumentError.
    """
    plan: Plan = {}
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split(",")]
        if cells == [""]:
            continue
        try:
            if len(cells) == 3 and len(groups) == 1:
                cells = [groups[0], *cells]
            group, topic, partition, offset = cells
            tp = TopicPartition(topic, int(partition))
            if not group or not topic or tp.partition < 0:
                raise ValueError
            plan.setdefault(group, {})[tp] = int(offset)
        except ValueError:
            wanted = (
                "topic,partition,offset" if len(groups) == 1 else "group,topic,partition,offset"
            )
            raise InvalidArgumentError(f"Line {number} is not {wanted}: {line}") from None
    return plan


def starts(storage: GroupStorage, partitions: Sequence[TopicPartition]) -> Offsets:
    """Where the logs begin. Raises InvalidArgumentError."""
    return _all_of(storage.log_starts(partitions), partitions, "starting")


def ends(storage: GroupStorage, partitions: Sequence[TopicPartition]) -> Offsets:
    """Where the logs end. Raises InvalidArgumentError."""
    return _all_of(storage.log_ends(partitions), partitions, "ending")


def at(storage: GroupStorage, partitions: Sequence[TopicPartition], time_ms: int) -> Offsets:
    """The first message since a time, see ``GroupStorage.offsets_at``. Raises
    InvalidArgumentError."""
    # Below 0 the protocol has other meanings for a time.
    return _all_of(storage.offsets_at(partitions, max(time_ms, 0)), partitions, "timed")


def shifted(
    storage: GroupStorage, group: str, partitions: Sequence[TopicPartition], by: int
) -> Offsets:
    """``by`` messages from the present offsets, within the logs. Raises InvalidArgumentError."""
    committed = storage.committed(group, partitions)
    targets = {}
    for tp in partitions:
        offset = committed[tp].offset if tp in committed else None
        if offset is None:
            raise InvalidArgumentError(
                f"Cannot shift offset for partition {_dashed(tp)} since there is no current "
                "committed offset"
            )
        targets[tp] = offset + by
    return clamp(storage, targets)


def current(storage: GroupStorage, group: str, partitions: Sequence[TopicPartition]) -> Offsets:
    """The present offsets, the log's end where there is none. Raises InvalidArgumentError."""
    committed = storage.committed(group, partitions)
    without = [tp for tp in partitions if tp not in committed]
    return ends(storage, without) | {
        tp: c.offset for tp, c in committed.items() if c.offset is not None
    }


def clamp(storage: GroupStorage, wanted: Mapping[TopicPartition, int]) -> Offsets:
    """Each offset, or the nearest one its log has."""
    lowest, highest = starts(storage, list(wanted)), ends(storage, list(wanted))
    clamped = {}
    for tp, offset in wanted.items():
        clamped[tp] = min(max(offset, lowest[tp]), highest[tp])
        if clamped[tp] != offset:
            logger.warning(
                "New offset (%d) is %s offset for topic partition %s. Value will be set to %d",
                offset,
                "higher than latest" if offset > highest[tp] else "lower than earliest",
                _dashed(tp),
                clamped[tp],
            )
    return clamped


def _all_of(found: Offsets, wanted: Iterable[TopicPartition], what: str) -> Offsets:
    for tp in wanted:
        if tp not in found:
            raise InvalidArgumentError(
                f"Error getting {what} offset of topic partition: {_dashed(tp)}"
            )
    return {tp: found[tp] for tp in wanted}


def _dashed(tp: TopicPartition) -> str:
    """As later releases print a partition."""
    return f"{tp.topic}-{tp.partition}"
