"""A broker's logs driven at random, with crashes at any file operation, against lists.

``Driver`` owns a LogManager on ``FaultyFiles`` and, per partition, what must be in its log: units
(a plain entry, or a wrapper with its messages) in order. After each death it opens the files that
are left and holds them against what the promises allow:

- a killed process loses nothing of what was done; the call that it died in is done, not done, or
  done in front part;
- a power cut loses nothing below the recovery point, and what else is found was once appended
  with that very offset.

Deterministic for a seed: the clock is the driver's, and threads are replaced by calls.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from kafka08.common import TopicPartition
from kafka08.errors import MessageSetSizeTooLargeError, OffsetOutOfRangeError
from kafka08.log import manager as manager_module
from kafka08.log.cleaning import compaction
from kafka08.log.cleaning.cleaner_job import Job
from kafka08.log.cleaning.reach import Reach
from kafka08.log.cleaning.throttler import Throttler
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.offsets_before import offsets_before
from kafka08.log.segments.segment import LogSegment
from kafka08.log.segments.time_index import ENTRY as TIME_ENTRY
from kafka08.message.scan import iter_entries, newest_time
from kafka08.settings.broker import BrokerConfig
from tests.fakes.runtime import FakeClock
from tests.log.faulty_files import Crash, FaultyFiles
from tests.log.model_units import (
    SetMaker,
    Stored,
    Unit,
    check_compacted,
    check_index,
    entries_of,
    joined,
    rises,
    shown,
    stored_units,
    wanted,
)
from tests.log.support import writable

SEGMENT_BYTES = 600
INDEX_ENTRIES = 4
NEVER = 1 << 40  # messages
PARTITIONS = [
    TopicPartition("plain", 0),
    TopicPartition("mixed", 0),
    TopicPartition("mixed", 1),
    TopicPartition("keyed", 0),
]


class Expected:
    """The model of one partition.

    Below ``durable`` nothing may be lost to a ``power_cut``, after which, until looked at, nothing
    else is promised. ``pending`` holds what the call in flight adds; ``front`` and ``back`` bound
    what of units + pending may be left, as (lowest, highest) counts, if the process dies in the
    call, and ``start_then`` is the highest start that the call may leave. ``compacted`` logs may
    also lack what later messages supersede, if ``cleaning``.
    Records below ``deleted`` were deleted by a client; ``starts`` are the values of it that may be
    on disk.
    """

    def __init__(self, *, compacted: bool = False) -> None:
        self.compacted = compacted
        self.cleaning = False
        self.units: list[Unit] = []
        self.start = self.leo = 0
        self.deleted, self.starts = 0, {0}
        self.durable = 0
        self.power_cut = False
        self.history: set[Unit] = set()
        self.being_deleted = False
        self.settle()

    def settle(self) -> None:
        """No call is in flight."""
        self.truncating = False
        self.durable_before = self.durable
        self.pending: list[Unit] = []
        self.front, self.start_then = (0, 0), self.start
        self.back = (len(self.units), len(self.units))

    @property
    def first(self) -> int:
        """The first offset for consumers."""
        return max(self.start, self.deleted)

    def claim(self, recovery_point: int) -> None:
        self.durable = self.durable_before = max(self.durable, recovery_point)


class InlineExecutor:
    """ThreadPoolExecutor without threads, so that a seed always gives the same order."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def submit(self, function: Callable[..., Any], *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **more))
        except BaseException as error:
            future.set_exception(error)
        return future

    def shutdown(self, *_: object, **__: object) -> None:
        pass


class InlineCleaning:
    """A compaction that has done its work, but for the swaps, as soon as it is started."""

    exit_status = 0

    def __init__(self, job: Job) -> None:
        self._events: list[dict[str, Any]] = []
        end, stats = compaction.clean(
            job,
            lambda line: None,
            lambda group: self._events.append({"group": group}),
            Throttler(job.rate, job.throttle_fd),
        )
        self._events.append({"end": end, "stats": stats})

    def poll(self) -> list[dict[str, Any]]:
        events, self._events = self._events, []
        return events

    def kill(self) -> None:
        pass


class Driver:
    """One run below ``directory`` (empty). ``run`` raises AssertionError with the last steps."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.clock = FakeClock()
        root = str(directory / f"s{seed}")
        os.mkdir(root)
        self.files = FaultyFiles(root, self.clock.millis, random.Random(seed + 1))
        self.dirs = [f"{root}/one", f"{root}/two"]
        self.expected: dict[TopicPartition, Expected] = {}
        self.serving = False
        self.configs: dict[str, dict[str, str]] = {
            "plain": {},
            "mixed": {},
            "keyed": {"cleanup.policy": "compact"},
        }
        self.cleaning: Generator[Any, None, None] | None = None
        self.counts: Counter[str] = Counter()
        self.trail: list[str] = []
        self.manager = LogManager(self._broker_config(), clock=self.clock, topic_configs={})
        self.actions = [name for name, weight in WEIGHTS.items() for _ in range(weight)]

    def _broker_config(self) -> BrokerConfig:
        return BrokerConfig.from_properties(
            {
                "zookeeper.connect": "unused",
                "broker.id": "0",
                "log.dirs": ",".join(self.dirs),
                "log.segment.bytes": str(SEGMENT_BYTES),
                "log.index.size.max.bytes": str(8 * INDEX_ENTRIES),
                "log.index.interval.bytes": "60",
                "log.roll.ms": "100000",
                "log.retention.ms": "1000000",
                "log.retention.bytes": str(5 * SEGMENT_BYTES),
                "log.segment.delete.delay.ms": "1000",
                "log.cleaner.enable": "true",
                "log.cleaner.dedupe.buffer.size": str((1 << 20) + 1),
                "log.cleaner.min.cleanable.ratio": "0.01",
            }
        )

    # Running

    def run(self, steps: int) -> Counter[str]:
        """Take this many steps, then look at everything once more."""
        executor = manager_module.ThreadPoolExecutor
        manager_module.ThreadPoolExecutor = InlineExecutor  # type: ignore[assignment,misc]
        try:
            with self.files:
                for directory in self.dirs:
                    os.mkdir(directory)
                self.files.sync_everything()
                self._survivably(self._start)
                for number in range(steps):
                    self.step(number)
                self._survivably(self._reopen)
                self.files.crash_at = -1
                self.manager.close()
        except Exception as error:
            lines = "\n".join(self.trail[-60:])
            raise AssertionError(f"seed {self.seed}: {error!r} after\n{lines}") from error
        finally:
            manager_module.ThreadPoolExecutor = executor  # type: ignore[misc]
            self.manager._unlock()
        return self.counts

    def step(self, number: int) -> None:
        self.clock.now_ms += self.rng.randint(0, 300)
        if self.files.crash_at < 0 and self.rng.random() < 0.07:
            ahead = self.rng.choice((1, 2, 3, 4, 6, 8, 12, 20, 40))
            self.files.crash_at = self.files.calls + self.rng.randint(1, ahead)
        name = self.rng.choice(self.actions)
        self.counts[name] += 1
        self._note(f"{number}: {name}")
        self._survivably(getattr(self, name))

    def _note(self, text: str) -> None:
        self.trail.append(text)
        del self.trail[:-200]

    def _survivably(self, action: Callable[[], object]) -> None:
        """Do it; after a death start again, and again if that is the death of the next."""
        while True:
            try:
                action()
                return
            except Crash as crash:
                self.counts["deaths"] += 1
                power_cut = self.rng.random() < 0.5
                self.counts["power cut" if power_cut else "kill"] += 1
                self._note(f"  {'power cut' if power_cut else 'kill'} {crash}")
                self._die(power_cut)
                action = self._start

    def _die(self, power_cut: bool) -> None:
        self.files.on_fsync = None
        cleaning, self.cleaning = self.cleaning, None
        if cleaning is not None:
            with contextlib.suppress(Crash):
                cleaning.close()
        if self.serving:
            for partition, log in self.manager.logs.items():
                if not self.expected[partition].truncating:
                    self.expected[partition].claim(log.recovery_point)
        self.manager._unlock()
        self.files.revive(power_cut=power_cut)
        if power_cut:
            for expected in self.expected.values():
                expected.power_cut = True
        if self.rng.random() < 0.3:  # and again while it recovers
            self.files.crash_at = self.files.calls + self.rng.randint(1, 20)

    # Starting, and what is found then

    def _start(self) -> None:
        self.serving = False
        self.manager = LogManager(
            self._broker_config(), clock=self.clock, topic_configs=self.configs
        )
        self.manager.load()
        assert self.manager.cleaner is not None
        self.manager.cleaner._start = InlineCleaning
        for partition, log in self.manager.logs.items():
            assert partition in self.expected, f"{partition} was never made"
            self._found(partition, log)
        for partition in list(self.expected):
            if partition not in self.manager.logs:
                os_fsync_directories(self.dirs)  # or its deletion may still be undone
                lost = self.expected.pop(partition)
                durable = [u for u in lost.units if u.last < lost.durable]
                assert lost.being_deleted or (lost.power_cut and not durable), (
                    f"{partition} is gone"
                )
        for partition, expected in list(self.expected.items()):
            if expected.being_deleted:
                self._delete(partition)
        self.serving = True

    def _found(self, partition: TopicPartition, log: Log) -> None:
        expected = self.expected[partition]
        segments = self.inspect(log, whole=not expected.being_deleted)
        units = list(stored_units(segments))
        if not expected.being_deleted:
            if expected.power_cut:
                self._check_durable(expected, units, log)
                # what is left was read from the disk
                expected.durable = log.log_end_offset
            else:
                if expected.cleaning:
                    self._check_cleaned(expected, units, log)
                else:
                    self._check_kept(expected, units, log)
                # A truncation that was killed has not changed what was synced below its cut, and
                # below the first entry nothing can be lost.
                first = units[0].messages[0][0] if units else log.log_end_offset
                backed = (expected.durable, expected.durable_before, first)
                expected.durable = max(backed)
        end = max(units[-1].last + 1 if units else 0, log.segments[-1].base_offset)
        assert log.log_end_offset == end
        starts = {start if start <= end else 0 for start in expected.starts}
        assert log.deleted_until in starts or expected.being_deleted, (
            f"{log.name}: records are deleted up to {log.deleted_until}, not {starts}"
        )
        expected.deleted = log.deleted_until
        # a power cut may still undo what a kill leaves
        expected.starts = {log.deleted_until} if expected.power_cut else starts
        expected.units, expected.start, expected.leo = units, log.log_start_offset, end
        expected.durable = min(expected.durable, end)
        self._check_recovery_point(expected, log)
        expected.power_cut = False
        expected.settle()
        if not expected.being_deleted:
            self._check_reads(log, segments, expected)

    def _check_recovery_point(self, expected: Expected, log: Log) -> None:
        """Fewer messages than are synced at a time may not be on disk. If that took a sync when
        the log was loaded, the next power cut shows whether there was one."""
        unsynced = log.log_end_offset - log.recovery_point
        assert unsynced < log.config.flush_messages, f"{log.name}: {unsynced} are not synced"
        if not unsynced and log.config.flush_messages < NEVER:
            expected.claim(log.recovery_point)
        assert log.recovery_point <= expected.durable or expected.being_deleted, (
            f"{log.name}: nothing backs its recovery point"
        )

    def _check_kept(self, expected: Expected, units: list[Unit], log: Log) -> None:
        """After a kill: all that was done, and of the call in flight a front part."""
        everything = expected.units + expected.pending
        for first in range(expected.front[0], expected.front[1] + 1):
            last = first + len(units)
            if everything[first:last] == units and (
                expected.back[0] <= last <= expected.back[1] or not units
            ):
                break
        else:
            raise AssertionError(
                f"{log.name}: found {shown(units)}, expected {shown(everything)}, of which "
                f"from {expected.front} up to {expected.back}"
            )
        assert units or expected.back[0] <= expected.front[1], f"{log.name}: nothing is left"
        assert log.log_end_offset <= max(
            [expected.leo, *(unit.last + 1 for unit in expected.pending)]
        )
        if expected.front == (0, 0) and units:
            # retention may have deleted empty segments at the front
            assert expected.start <= log.log_start_offset <= expected.start_then

    def _check_durable(self, expected: Expected, units: list[Unit], log: Log) -> None:
        """After a power cut: all below the recovery point, nothing that never was."""
        durable = expected.durable
        if expected.compacted:
            start = log.log_start_offset if log.config.deletes else expected.start_then
            left = [unit for unit in expected.units if unit.last >= start]
            check_compacted(left, units, durable)
            known = {message for unit in expected.history for message in unit.messages}
            strange = {message for unit in units for message in unit.messages} - known
            assert not strange, f"{log.name}: never appended {sorted(strange)}"
            return
        must = [u for u in expected.units[expected.front[1] :] if u.last < durable]
        may = {u for u in expected.units[: expected.front[1]] if u.last < durable}
        low = min((u.last for u in expected.units), default=expected.start)
        have = [u for u in units if low <= u.last < durable and u not in may]
        assert have == must, (
            f"{log.name}: below {durable} found {shown(have)}, expected {shown(must)}"
        )
        strange = set(units) - expected.history
        assert not strange, f"{log.name}: never appended {shown(sorted(strange))}"

    def _check_cleaned(self, expected: Expected, units: list[Unit], log: Log) -> None:
        """After a kill while it was cleaned: nothing new, and each key's last message."""
        start = log.log_start_offset
        if not log.config.deletes and start > expected.deleted:
            start = expected.start_then
        known = [unit for unit in expected.units[: expected.back[0]] if unit.last >= start]
        check_compacted(known, units, 1 << 62)
        known = expected.units + expected.pending
        before = {message for unit in known for message in unit.messages}
        strange = {message for unit in units for message in unit.messages} - before
        assert not strange, f"{log.name}: {sorted(strange)} had been cleaned away"

    # Files against themselves

    def inspect(self, log: Log, *, whole: bool = True) -> list[Stored]:
        """Read every file of a log; entries and indexes must fit each other and the log."""
        found = []
        segments = log.segments
        assert [s.base_offset for s in segments] == sorted({s.base_offset for s in segments})
        for number, segment in enumerate(segments):
            active = number == len(segments) - 1
            data = Path(segment.path).read_bytes()
            assert len(data) == segment.size, segment.path
            stored = Stored(segment.base_offset, data, list(entries_of(data)))
            assert not data or stored.entries[-1][2] == len(data), f"{segment.path}: torn"
            offsets = [segment.base_offset - 1, *(offset for offset, _, _ in stored.entries)]
            assert rises(offsets), segment.path
            limit = log.log_end_offset if active else segments[number + 1].base_offset
            assert offsets[-1] < limit, f"{segment.path} reaches {offsets[-1]}, past {limit}"
            index = segment.index
            check_index([index.entry(slot) for slot in range(index.entries)], stored)
            if not active:
                assert os.path.getsize(index.path) == 8 * index.entries and not index.gathered
            found.append(stored)
        if whole:
            kept = {os.path.basename(s.path) for s in segments}
            names = {name for name in os.listdir(log.directory) if name.endswith(".log")}
            assert names == kept, f"{log.directory}: {names ^ kept} astray"
        assert log.recovery_point <= log.log_end_offset
        return found

    def _check_reads(self, log: Log, segments: list[Stored], expected: Expected) -> None:
        """Every offset leads to the first entry at or above it, and times to the newest ones."""
        for segment, found in zip(log.segments, segments, strict=True):
            self._check_times(segment, found.data)
        bases = [s.base for s in segments]
        assert log.log_start_offset == bases[0]
        flat = [(offset, s.base, position) for s in segments for offset, position, _ in s.entries]
        offsets = [offset for offset, _, _ in flat]
        for offset in range(max(bases[0], expected.leo - 150), expected.leo):
            at = bisect_left(offsets, offset)
            slice_ = log.read(offset, 1)
            if at == len(flat):
                assert not len(slice_), f"{log.name}: something at {offset}"
            else:
                assert (slice_.base_offset, slice_.position) == flat[at][1:], (
                    f"{log.name}: reading at {offset}"
                )

    def _check_times(self, segment: LogSegment, data: bytes) -> None:
        """The newest timestamp is known, and all entries of the time index are true."""
        data = data[: segment.size]
        assert segment.newest.timestamp == newest_time(data, 0, len(data))[0], segment.path
        index = segment.time_index
        if index.gathered:
            assert index.last.timestamp <= segment.newest.timestamp
        else:
            assert index.problem(thorough=True) is None
        if not index.exists:
            return
        with open(index.path, "rb") as file:
            in_file = index.entries - index.gathered
            for time, relative in TIME_ENTRY.iter_unpack(file.read(in_file * 12)):
                upto = [e for e in iter_entries(data) if e.offset <= segment.base_offset + relative]
                newest = newest_time(data, 0, upto[-1].stop if upto else 0)
                assert newest == (time, segment.base_offset + relative), index.path

    def times(self) -> None:
        _, log, _ = self._pick()
        for segment in log.segments:
            with open(segment.path, "rb") as file:
                self._check_times(segment, file.read())

    # Steps: writing

    def _pick(self) -> tuple[TopicPartition, Log, Expected]:
        partition = self.rng.choice(PARTITIONS)
        log = self.manager.get_log(partition)
        if log is None:
            compacted = partition.topic == "keyed"
            expected = self.expected[partition] = Expected(compacted=compacted)
            expected.being_deleted = True  # if it dies now there may be one or not
            log = self.manager.create_log(partition, self.manager.config_for(partition.topic))
            expected.being_deleted = False
        return partition, log, self.expected[partition]

    def produce(self) -> None:
        partition, log, expected = self._pick()
        self._produce(partition, log, expected)

    def produce_more(self) -> None:
        partition, log, expected = self._pick()
        for _ in range(self.rng.randint(2, 6)):
            self._produce(partition, log, expected)

    def _produce(self, partition: TopicPartition, log: Log, expected: Expected) -> None:
        sets = SetMaker(self.rng, log.log_end_offset, partition.topic)
        data, units = sets.make()
        if log.config.compressed_sets == "normalised" and sets.codec:
            units = [joined(units)] if units else []
        self._append(log, expected, data, units, assign=True)

    def follow(self) -> None:
        """Append as a follower does: offsets given, wrappers unchanged, now and then a gap."""
        partition, log, expected = self._pick()
        gap = self.rng.choice((0, 0, 0, 0, 2)) if log.log_end_offset == expected.leo else 0
        sets = SetMaker(self.rng, log.log_end_offset + gap, partition.topic)
        data, units = sets.make(numbered=True)
        self._append(log, expected, data, units, assign=False)

    def _append(
        self, log: Log, expected: Expected, data: bytes, units: list[Unit], *, assign: bool
    ) -> None:
        expected.pending = units
        expected.back = (len(expected.units), len(expected.units) + len(units))
        expected.history.update(units)
        failing = self.rng.random() < 0.05 and self.files.crash_at < 0
        if failing:
            self.files.error = OSError(errno.ENOSPC, "No space left on device")
        leo = log.log_end_offset
        try:
            info = log.append(writable(data), assign_offsets=assign)
        except MessageSetSizeTooLargeError:
            assert (
                len(data) > log.config.segment_bytes or log.config.compressed_sets == "normalised"
            )
            units = []
        except OSError:
            assert failing
            self._note("  failed")
            units = []
        else:
            if units:
                assert info.last_offset == units[-1].last
                assert info.first_offset == (units[0].messages[0][0] if assign else units[0].last)
            else:
                assert info.count == 0
        self.files.error = None
        expected.units += units
        expected.settle()
        if units:
            expected.leo = units[-1].last + 1
        assert log.log_end_offset == expected.leo, (leo, log.log_end_offset, expected.leo)
        expected.claim(log.recovery_point)

    def roll(self) -> None:
        self._pick()[1].roll()

    # Steps: cutting

    def truncate(self) -> None:
        _, log, expected = self._pick()
        if self.rng.random() < 0.3:
            to = self.rng.randint(0, expected.leo + 3)
        else:
            to = max(expected.leo - self.rng.randint(0, 12), 0)
        self._truncate(log, expected, to)
        log.truncate_to(to)
        self.manager.checkpoint_recovery_points()
        self._truncated(log, expected, to)
        self._starts_are_stored()

    def _truncate(self, log: Log, expected: Expected, to: int) -> None:
        if to > expected.leo:
            return
        kept = sum([u.last < to for u in expected.units]) if to >= expected.start else 0
        expected.back = (kept, len(expected.units))
        expected.truncating = True
        expected.starts.add(self._deleted_after(expected, to))
        cut = expected.units[kept:]
        expected.durable = min([expected.durable, to, *(u.messages[0][0] for u in cut[:1])])

    @staticmethod
    def _deleted_after(expected: Expected, to: int) -> int:
        return min(expected.deleted, to) if to >= expected.start else 0

    def _truncated(self, log: Log, expected: Expected, to: int) -> None:
        if to > expected.leo:
            assert log.log_end_offset == expected.leo
            return
        expected.deleted = self._deleted_after(expected, to)
        expected.units = expected.units[: expected.back[0]]
        expected.leo = to
        expected.start = min(expected.start, to)
        expected.settle()
        assert log.log_end_offset == to
        assert (log.log_start_offset, log.first_offset) == (expected.start, expected.first)
        assert log.recovery_point <= to

    def truncate_fully(self) -> None:
        _, log, expected = self._pick()
        to = max(expected.leo + self.rng.randint(-20, 20), 0)
        expected.back = (0, len(expected.units))
        expected.truncating = True
        expected.durable = 0
        expected.leo = max(expected.leo, to)
        expected.starts.add(0)
        log.truncate_fully_and_start_at(to)
        self.manager.checkpoint_recovery_points()
        expected.deleted = 0
        self._starts_are_stored()
        expected.units = []
        expected.leo = expected.start = to
        expected.settle()
        assert (log.log_start_offset, log.first_offset, log.log_end_offset) == (to, to, to)

    def delete_records(self) -> None:
        """As a client asks for it; now and then the broker gets no further than its memory."""
        _, log, expected = self._pick()
        if not log.config.deletes:
            return
        until = self.rng.randint(0, expected.leo)
        expected.starts.add(max(expected.deleted, until))
        log.delete_records(until)
        expected.deleted = max(expected.deleted, until)
        assert log.first_offset == expected.first
        if self.rng.random() < 0.8:
            assert self.manager.store_deletions([log]) == []
            expected.claim(log.recovery_point)
            self._starts_are_stored()

    def _starts_are_stored(self) -> None:
        for expected in self.expected.values():
            expected.starts = {expected.deleted}

    def retain(self) -> None:
        if self.rng.random() < 0.3:
            self.clock.now_ms += self.rng.randint(100_000, 1_200_000)
        starts = {}
        cleaner = self.manager.cleaner
        for partition, log in self.manager.logs.items():
            expected = self.expected[partition]
            start = log.log_start_offset
            if cleaner is None or not cleaner.is_cleaning(partition):
                start = self._start_after_retention(log, expected.deleted)
            starts[partition] = start
            gone = sum([u.last < start for u in expected.units])
            expected.front, expected.start_then = (0, gone), start
            expected.back = (len(expected.units), len(expected.units))
        self.manager.cleanup()
        for partition, log in self.manager.logs.items():
            expected = self.expected[partition]
            assert log.log_start_offset == starts[partition]
            assert log.log_end_offset == expected.leo
            expected.units = [u for u in expected.units if u.last >= starts[partition]]
            expected.start = starts[partition]
            expected.settle()

    def _start_after_retention(self, log: Log, deleted: int) -> int:
        """By the rules of Kafka: what clients have deleted, time from the oldest on, then size
        while a whole one is over."""
        known = [(s.base_offset, s.size, s.largest_timestamp) for s in log.segments]
        bases = [base for base, _, _ in known] + [log.log_end_offset]
        sizes = [size for _, size, _ in known]
        starts = [*bases[:-1], log.segments[-1].next_offset()[0]]
        gone = 0
        while gone < len(known) and bases[gone + 1] <= deleted:
            if gone == len(known) - 1 and not sizes[gone]:
                break
            gone += 1
        if not log.config.deletes:
            return starts[gone]
        while gone < len(known) and self.clock.now_ms - known[gone][2] > log.config.retention_ms:
            if gone == len(known) - 1 and not sizes[gone]:
                break
            gone += 1
        over = sum(sizes[gone:]) - log.config.retention_bytes
        if log.config.retention_bytes >= 0:
            while gone < len(known) and over - sizes[gone] >= 0 and over >= 0:
                if gone == len(known) - 1 and not sizes[gone]:
                    break
                over -= sizes[gone]
                gone += 1
        return starts[gone]

    def delete(self) -> None:
        if self.rng.random() < 0.3:
            self._delete(self._pick()[0])

    def _delete(self, partition: TopicPartition) -> None:
        self.expected[partition].being_deleted = True
        self.manager.delete_log(partition)
        if self.rng.random() < 0.5:
            # what a power cut may bring back is for the broker to delete again
            os_fsync_directories(self.dirs)
            del self.expected[partition]
        else:
            history = self.expected[partition].history
            fresh = self.expected[partition] = Expected(compacted=partition.topic == "keyed")
            fresh.history = history
            fresh.being_deleted = True
            self._note(f"  {partition} may come back")
            self._recreate(partition, fresh)

    def _recreate(self, partition: TopicPartition, expected: Expected) -> None:
        self.manager.create_log(partition, self.manager.config_for(partition.topic))
        self.manager.logs[partition].flush()
        expected.being_deleted = False

    # Steps: chores

    def flush(self) -> None:
        partition, log, expected = self._pick()
        busy = self.rng.random() < 0.4
        if busy:
            self.files.on_fsync = lambda: self._meanwhile(partition, log, expected)
        up_to = None
        if self.rng.random() < 0.3:
            up_to = self.rng.choice([s.base_offset for s in log.segments])
        before = log.recovery_point
        log.flush(up_to)
        self.files.on_fsync = None
        expected.claim(log.recovery_point)
        if not busy:
            assert log.recovery_point == max(before, expected.leo if up_to is None else up_to)

    def _meanwhile(self, partition: TopicPartition, log: Log, expected: Expected) -> None:
        """On the loop's thread, while another one is in fsync."""
        self.files.on_fsync = None
        what = self.rng.randrange(5)
        self._note(f"  meanwhile {what}")
        if what < 2:
            self._produce(partition, log, expected)
        elif what == 2:
            log.roll()
        elif what == 3:
            to = max(expected.leo - self.rng.randint(0, 12), 0)
            self._truncate(log, expected, to)
            log.truncate_to(to)
            self._truncated(log, expected, to)
            self.checkpoint()
        else:
            self.retain()

    def checkpoint(self) -> None:
        self.manager.checkpoint_recovery_points()
        self._starts_are_stored()

    def delete_files(self) -> None:
        self.clock.now_ms += self.rng.randint(0, 2000)
        self.manager.delete_due_files()

    def reconfigure(self) -> None:
        topic = self.rng.choice(list(self.configs))
        self.configs[topic] = {
            **({"cleanup.policy": self._policy()} if topic == "keyed" else {}),
            "delete.retention.ms": str(self.rng.choice((0, 1000, 1 << 40))),
            "segment.bytes": str(self.rng.choice((SEGMENT_BYTES, SEGMENT_BYTES, 300))),
            "index.interval.bytes": str(self.rng.choice((0, 60, 200))),
            "segment.index.bytes": str(8 * self.rng.choice((1, 2, INDEX_ENTRIES, 40))),
            "retention.bytes": str(self.rng.choice((-1, 0, 500, 2000, 3000))),
            "retention.ms": str(self.rng.choice((1000, 500_000, 10_000_000))),
            "flush.messages": str(self.rng.choice((1, 7, NEVER, NEVER))),
            "compressed.sets": self.rng.choice(("verbatim", "verbatim", "normalised")),
        }
        for partition, log in self.manager.logs.items():
            if partition.topic == topic:
                log.config = self.manager.config_for(topic)

    def _policy(self) -> str:
        return self.rng.choice(("compact", "compact,delete"))

    def reopen(self) -> None:
        self._reopen()

    def _reopen(self) -> None:
        self.manager.close()
        for expected in self.expected.values():
            expected.claim(expected.leo)
        self.counts["clean stop"] += 1
        self._start()

    def die(self) -> None:
        raise Crash("between two calls")

    def clean(self) -> None:
        """A cleaning, with anything in between."""
        key = PARTITIONS[-1]
        log, cleaner = self.manager.get_log(key), self.manager.cleaner
        if log is None or cleaner is None:
            return
        until = self.rng.randint(log.log_start_offset, log.log_end_offset)
        reach = Reach(until, is_everywhere=self.rng.random() < 0.5)
        found = cleaner.grab_filthiest_log(lambda _: reach)
        if found is None:
            return
        expected = self.expected[key]
        expected.cleaning = True
        self.counts["cleaning"] += 1
        truncations = log.truncations
        start = log.log_start_offset
        self.cleaning = cleaner.clean(found)
        for wish in self.cleaning:
            if callable(wish):
                wish()
            if self.rng.random() < 0.1:
                self._note("  while it is cleaned")
                self._adopt(log, expected)
                steps = (self.produce, self.truncate, self.roll, self.checkpoint, self.retain)
                self.rng.choice(steps)()
                expected = self.expected[key]
                expected.cleaning = True
            # The last step of a cleaning applies retention, once: more may be due after it.
            start = self._start_after_retention(log, expected.deleted)
        self.cleaning = None
        self._adopt(log, expected)
        expected.cleaning = False
        if not cleaner.is_cleaning(key) and log.truncations == truncations:
            assert log.log_start_offset == start, f"{key}: retention was left out"
        if log.truncations == truncations:
            assert cleaner.checkpoint(log) == found.end_offset
            keys = [m[1] for unit in expected.units for m in unit.messages if m[0] < until]
            clean = [m[1] for u in expected.units for m in u.messages if m[0] < found.end_offset]
            assert len(set(clean)) == len(clean), f"{key}: {keys} holds superseded messages"

    def _adopt(self, log: Log, expected: Expected) -> None:
        """Take over what a cleaning has made of a log, if it is right."""
        units = list(stored_units(self.inspect(log, whole=False)))
        self._check_cleaned(expected, units, log)
        expected.units, expected.start = units, log.log_start_offset
        expected.history.update(units)
        expected.claim(log.recovery_point)
        expected.settle()

    # Steps: reading

    def read(self) -> None:
        _, log, expected = self._pick()
        segments = self.inspect(log)
        assert list(stored_units(segments)) == expected.units
        for _ in range(4):
            self._read(log, segments, expected)

    def _read(self, log: Log, segments: list[Stored], expected: Expected) -> None:
        offset = self.rng.randint(expected.start - 2, expected.leo + 2)
        max_bytes = self.rng.choice((0, 5, 40, 100, 300, 1 << 20))
        hw = self.rng.choice((None, None, self.rng.randint(0, expected.leo)))
        if not expected.start <= offset <= expected.leo:
            try:
                log.read(offset, max_bytes, hw)
            except OffsetOutOfRangeError:
                return
            raise AssertionError(f"{log.name}: {offset} is out of range")
        got = log.read(offset, max_bytes, hw)
        assert got.read() == wanted(segments, offset, max_bytes, hw, expected.leo), (
            f"{log.name}: read({offset}, {max_bytes}, {hw})"
        )

    def offsets_before(self) -> None:
        _, log, expected = self._pick()
        first, now = expected.first, self.clock.now_ms
        ends = [s.base_offset for s in log.segments[1:]] + [1 << 62]
        held = [s for s, end in zip(log.segments, ends, strict=True) if end > first]
        known = [(max(s.base_offset, first), s.last_modified_ms) for s in held]
        if log.segments[-1].size and expected.leo > first:
            known.append((expected.leo, now))
        at = now - self.rng.choice((0, 0, 500, 5000, 1_000_000))
        count = max((i for i, (_, time) in enumerate(known, 1) if time <= at), default=0)
        best = [offset for offset, _ in known[:count]][::-1]
        assert offsets_before(log, at, 100, start=log.first_offset, now=now) == best
        assert offsets_before(log, at, 2, start=log.first_offset, now=now) == best[:2]
        assert offsets_before(log, -1, 1, start=log.first_offset, now=now) == [known[-1][0]]
        assert offsets_before(log, -2, 1, start=log.first_offset, now=now) == [first]


WEIGHTS = {
    "produce": 14,
    "produce_more": 10,
    "follow": 6,
    "roll": 3,
    "truncate": 5,
    "truncate_fully": 1,
    "retain": 3,
    "delete_records": 3,
    "delete": 1,
    "flush": 8,
    "clean": 4,
    "checkpoint": 4,
    "delete_files": 2,
    "reconfigure": 2,
    "reopen": 2,
    "die": 2,
    "read": 8,
    "offsets_before": 2,
    "times": 2,
}


def os_fsync_directories(paths: list[str]) -> None:
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
