"""Where --reset-offsets puts a group: each scenario as a function of what is there.

Reads times, durations, partition lists and plans; asks ``GroupStorage`` for offsets. Whether a
group may be reset, and writing, are the command's.
"""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka08.admin import InvalidArgumentError
from kafka08.common import TopicPartition
from kafka08.errors import UnknownTopicOrPartitionError
from tools.groups.storage import GroupStorage
from tools.options import Arguments

logger = logging.getLogger("kafka.admin.ConsumerGroupCommand$")

SCENARIOS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
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
        millis = datetime.timedelta(milliseconds=int(fraction))
        return _millis(moment - datetime.datetime.fromtimestamp(0, datetime.timezone.utc) + millis)
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


def _millis(delta: datetime.timedelta) -> int:
    return delta // datetime.timedelta(milliseconds=1)


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


def new_offsets(
    storage: GroupStorage,
    group: str,
    args: Arguments,
    partitions: Sequence[TopicPartition],
    now_ms: int,
) -> Offsets:
    """Where the scenario given puts these partitions.

    Raises InvalidArgumentError, and what GroupStorage raises.
    """
    if args.has("to-earliest"):
        return _all_of(storage.log_starts(partitions), partitions, "starting")
    if args.has("to-latest"):
        return _all_of(storage.log_ends(partitions), partitions, "ending")
    if args.has("to-offset"):
        return clamp(storage, dict.fromkeys(partitions, args.value("to-offset")))
    if args.has("shift-by"):
        return clamp(storage, _shifted(storage, group, partitions, args.value("shift-by")))
    if args.has("to-current"):
        return _current(storage, group, partitions)
    if args.has("to-datetime"):
        time = parse_datetime(args.value("to-datetime"))
    else:
        time = now_ms - parse_duration(args.value("by-duration"))
    # Below 0 the protocol has other meanings for a time.
    return _all_of(storage.offsets_at(partitions, max(time, 0)), partitions, "timed")


def _shifted(
    storage: GroupStorage, group: str, partitions: Sequence[TopicPartition], by: int
) -> Offsets:
    committed = storage.committed(group, partitions)
    shifted = {}
    for tp in partitions:
        offset = committed[tp].offset if tp in committed else None
        if offset is None:
            raise InvalidArgumentError(
                f"Cannot shift offset for partition {_dashed(tp)} since there is no current "
                "committed offset"
            )
        shifted[tp] = offset + by
    return shifted


def _current(storage: GroupStorage, group: str, partitions: Sequence[TopicPartition]) -> Offsets:
    committed = storage.committed(group, partitions)
    without = [tp for tp in partitions if tp not in committed]
    current = _all_of(storage.log_ends(without), without, "ending")
    return current | {tp: c.offset for tp, c in committed.items() if c.offset is not None}


def clamp(storage: GroupStorage, wanted: Mapping[TopicPartition, int]) -> Offsets:
    """Each offset, or the nearest one its log has."""
    starts = _all_of(storage.log_starts(wanted), wanted, "starting")
    ends = _all_of(storage.log_ends(wanted), wanted, "ending")
    clamped = {}
    for tp, offset in wanted.items():
        clamped[tp] = min(max(offset, starts[tp]), ends[tp])
        if clamped[tp] != offset:
            logger.warning(
                "New offset (%d) is %s offset for topic partition %s. Value will be set to %d",
                offset,
                "higher than latest" if offset > ends[tp] else "lower than earliest",
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
