"""Plans what a query of the ``kafka08`` source reads next: partitions, offsets, ranges, losses.

Runs on the driver. The rules are those of Spark's Kafka source: partitions found later are read
from their beginning, and messages no longer in the log are an error, or a warning if
``failOnDataLoss`` is false. Does not use Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import NO_OFFSET
from kafka08.client.security import runtime_for
from kafka08.common import Broker, TopicPartition
from kafka08.errors import ConfigError, UnknownTopicOrPartitionError
from kafka08.runtime import Runtime
from kafka08.spark.errors import DataLossError, naming
from kafka08.spark.offsets import DOUBT_RETRIES, LogOffsetReader, behind, resolve
from kafka08.spark.planner import Offsets, Range, lags, split_ranges, split_total
from kafka08.spark.structured.source_options import (
    BOOTSTRAP,
    EARLIEST,
    ENDING,
    LATEST,
    STARTING,
    STRATEGY,
    Position,
    SinceTime,
    SourceOptions,
)

T = TypeVar("T")
Named = TypeVar("Named", str, TopicPartition)

logger = logging.getLogger("kafka08.spark.source_plan")


class SourcePlanner:
    """Plans for ``options``, over connections of its own. Not to be pickled."""

    def __init__(
        self,
        options: SourceOptions,
        *,
        cluster: ClusterClient | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        self._options = options
        retries = options.settings.retries
        self._runtime = runtime or runtime_for(options.params.security)
        self._doubts = min(DOUBT_RETRIES, retries)
        # Partitions that were proved to be gone, and are not doubted or warned of again.
        self._gone: set[TopicPartition] = set()
        self._cluster = cluster or options.params.client(self._runtime)
        self._reader = options.params.offsets(self._cluster, retries, self._runtime)
        self._last_trigger: float | None = None

    # --- partitions

    def partitions(self) -> list[TopicPartition]:
        """All that the options choose, sorted. Raises ConfigError for what does not exist."""
        wanted = set(self._options.assigned)
        topics = self._topics
        there = self._find(lambda found: topics - _topics_of(found) | _topics_of(wanted - found))
        missing = topics - _topics_of(there)
        if missing:
            raise ConfigError(f"{self._options.subscription}: no such topic: {_text(missing)}")
        chosen = self._chosen(there)
        if gone := wanted - set(chosen):
            raise ConfigError(f"{self._options.subscription}: no such partition: {_text(gone)}")
        return chosen

    def _still_there(self, start: Offsets) -> list[TopicPartition]:
        """The partitions the options choose now. Those of ``start`` that are gone are a loss."""
        doubted = set(start) - self._gone
        found = self._chosen(self._find(lambda there: _topics_of(doubted - there)))
        self._gone.difference_update(found)
        self.report_gone(start, found)
        return found

    def report_gone(self, start: Iterable[TopicPartition], found: Iterable[TopicPartition]) -> None:
        """Partitions that are only in ``start`` are a loss."""
        gone = set(start) - set(found) - self._gone
        if gone:
            self._loss(f"{_text(gone)} of {self._options.subscription} are gone")
            self._gone |= gone

    @property
    def _topics(self) -> set[str]:
        """The topics that the options name; none with a pattern."""
        return set(self._options.topics) | _topics_of(self._options.assigned)

    def _find(self, lacks: Callable[[set[TopicPartition]], set[str]]) -> list[TopicPartition]:
        names = sorted(self._topics)
        return self._ask(lambda reader: reader.find(names, lambda there: lacks(set(there))))

    def _chosen(self, found: Iterable[TopicPartition]) -> list[TopicPartition]:
        options = self._options
        if options.pattern:
            names = set(options.matching(_topics_of(found)))
            return sorted(tp for tp in found if tp.topic in names)
        return sorted(set(found) & set(options.assigned)) if options.assigned else sorted(found)

    # --- offsets

    def initial(self) -> dict[TopicPartition, int]:
        """Where a new query starts: ``startingOffsets`` or a time."""
        return self._positions(STARTING, self._options.starting, self.partitions())

    def bounds(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """(start, end) of a batch query."""
        partitions = self.partitions()
        start = self._positions(STARTING, self._options.starting, partitions)
        end = self._positions(ENDING, self._options.ending, partitions)
        for tp in partitions:
            if start[tp] > end[tp]:
                begin, last = self._options.starting, self._options.ending
                raise ConfigError(
                    f"{_name(STARTING, begin)} is {start[tp]} for {tp}, behind its end, {end[tp]} "
                    f"({_name(ENDING, last)})"
                )
        return start, end

    def _positions(
        self, name: str, wanted: Position, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        if isinstance(wanted, SinceTime):
            return self._since(wanted, partitions)
        if wanted == EARLIEST:
            return self._ask(lambda reader: reader.earliest(partitions))
        if wanted == LATEST or isinstance(wanted, str):
            return self._ask(lambda reader: reader.latest(partitions))
        self._check_all_named(name, set(wanted), set(partitions))
        given = {tp: offset for tp, offset in wanted.items() if offset >= 0}
        found = self._ask(lambda reader: resolve(wanted, reader))
        low = self._ask(lambda reader: reader.earliest(given))
        high = self._ask(lambda reader: reader.ends(given))
        for tp, offset in given.items():
            if not low[tp] <= offset <= high[tp]:
                self._loss(f"{name} has {offset} for {tp}, but the log has [{low[tp]}, {high[tp]})")
                found[tp] = min(max(offset, low[tp]), high[tp])
        return dict(sorted(found.items()))

    def _since(
        self, wanted: SinceTime, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        given = wanted.time
        times = dict.fromkeys(partitions, given) if isinstance(given, int) else given
        self._check_all_named(wanted.option, set(times), set(partitions))
        found = self._ask(lambda reader: reader.since(times))
        none = [tp for tp in partitions if found[tp] == NO_OFFSET]
        if none and not wanted.or_latest:
            raise ConfigError(
                f"{wanted.option} has a time after the last message of {_text(none)}, or its "
                f"messages have no times; with {STRATEGY} {LATEST} a query starts at the end there"
            )
        return {**found, **self._ask(lambda reader: reader.latest(none))}

    def _check_all_named(
        self, name: str, named: set[TopicPartition], partitions: set[TopicPartition]
    ) -> None:
        if named != partitions:
            raise ConfigError(
                f"{name} must name every partition of {self._options.subscription}: missing "
                f"{_text(partitions - named)}, unknown {_text(named - partitions)}"
            )

    def latest(self, start: Offsets) -> dict[TopicPartition, int]:
        """How far all partitions reach now, new ones included."""
        try:
            found = self._reach(start)
        except UnknownTopicOrPartitionError:
            found = self._reach(start)  # of what is left: some were deleted since they were listed
        for tp in behind(found, start):
            self._loss(f"The log of {tp} ends at {found[tp]}, but {start[tp]} was already planned")
        return found

    def until(self, start: Offsets, target: Offsets) -> dict[TopicPartition, int]:
        """``target``, where an AvailableNow query is to end, as far as the logs still reach.

        Partitions that were deleted since, or created again and have fewer messages, are a loss.
        """
        expected = {tp: max(start.get(tp, 0), target.get(tp, 0)) for tp in {**start, **target}}
        found = self.latest(expected)
        ends = {**found, **{tp: min(expected[tp], found.get(tp, 0)) for tp in target}}
        return {tp: ends[tp] for tp in expected if tp in found}

    def _reach(self, start: Offsets) -> dict[TopicPartition, int]:
        partitions = self._still_there(start)
        return self._ask(lambda reader: reader.latest_since(start, partitions, self._doubts))

    def limited(
        self, start: Offsets, latest: Offsets, *, most: int = 0, least: int = 0
    ) -> dict[TopicPartition, int]:
        """Ends of about ``most`` messages; those of ``start`` while fewer than ``least`` wait and
        ``maxTriggerDelay`` is not over, or while nothing is there any more: a checkpoint without
        offsets would have all partitions read from their beginning when they are back."""
        if not latest:
            return dict(start)
        new = [tp for tp in latest if tp not in start]
        begin = {tp: offset for tp, offset in start.items() if tp in latest}
        if new:
            begin.update(self._ask(lambda reader: reader.earliest(new)))
        now = self._runtime.clock.monotonic()
        delay = self._options.settings.max_delay_ms / 1000
        early = self._last_trigger is not None and now - self._last_trigger < delay
        if early and sum(lags(begin, latest).values()) < least:
            return dict(start)
        self._last_trigger = now
        ends = split_total(most, begin, latest) if most else dict(latest)
        # If a partition was deleted and created again, reading goes on from the end of the new log.
        return {tp: min(ends[tp], latest[tp]) for tp in sorted(latest)}

    # --- ranges

    def ranges(self, start: Offsets, end: Offsets) -> list[Range]:
        """The ranges from ``start`` to ``end``, split as the options say, without empty ones."""
        unclear = [tp for tp in end if tp not in start or end[tp] < start[tp]]
        earliest = self._ask(lambda reader: reader.earliest(unclear)) if unclear else {}
        found = []
        for tp in sorted(end):
            begin = earliest.get(tp, start.get(tp, 0))
            if tp not in start and begin > 0:
                self._loss(f"The new partition {tp} begins at {begin}, not at 0")
            elif tp in unclear and tp in start:
                self._loss(f"{tp} was planned from {start[tp]} to {end[tp]}, which is before it")
            found.append(Range(tp.topic, tp.partition, begin, end[tp]))
        self.report_gone(start, end)
        settings = self._options.settings
        return split_ranges(
            found, min_partitions=settings.min_partitions, max_records=settings.max_records
        )

    def leaders(self, ranges: Iterable[Range]) -> dict[TopicPartition, Broker]:
        """Hints for executors."""
        return self._reader.leaders({each.topic_partition for each in ranges})

    def now_ms(self) -> int:
        """The time, in ms of the epoch."""
        return self._runtime.clock.millis()

    def _loss(self, text: str) -> None:
        report_loss(self._options, text)

    def _ask(self, question: Callable[[LogOffsetReader], T]) -> T:
        with naming(BOOTSTRAP, self._options.params.endpoints):
            return question(self._reader)

    def close(self) -> None:
        self._cluster.close()


def report_loss(options: SourceOptions, text: str) -> None:
    """Raises DataLossError, or warns where that is asked for."""
    if options.settings.fail_on_data_loss:
        raise DataLossError(
            f"{text}. Messages may be lost: retention removed them, or the topic was deleted; "
            "set failOnDataLoss to false to continue without them"
        )
    logger.warning("%s. Messages may be lost", text)


def _name(option: str, position: Position) -> str:
    """The option that chose a position: ``option``, or one of time."""
    return position.option if isinstance(position, SinceTime) else option


def _topics_of(partitions: Iterable[TopicPartition]) -> set[str]:
    return {tp.topic for tp in partitions}


def _text(named: Iterable[Named]) -> str:
    return ", ".join(map(str, sorted(named))) or "none"
