"""A log against a list: append, roll, flush, truncate, crash, retention, reads anywhere."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from kafka08.errors import MessageSetSizeTooLargeError, OffsetOutOfRangeError
from kafka08.log.log import Log
from kafka08.message.scan import iter_entries
from kafka08.message.sets import encode_set, iter_messages
from tests.fakes.runtime import FakeClock
from tests.log.support import config, writable

SEGMENT_BYTES = 600
INDEX_FULL_AT = 3


class LogMachine(RuleBasedStateMachine):
    """``model`` holds (offset, value, unit): messages of one unit stand or fall together."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="log-model-"))
        self.generation = 0
        self.clock = FakeClock()
        self.model: list[tuple[int, bytes, int]] = []
        self.units = 0
        self.durable = 0  # what a crash may not touch: everything below this offset
        self.recovery_points = 0
        self.log = self.open(self.root / "0" / "t-0", clean=False)
        self.leo = 0

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    def open(self, directory: Path, *, clean: bool) -> Log:
        return Log(
            str(directory),
            config(
                segment_bytes=SEGMENT_BYTES,
                segment_index_bytes=8 * INDEX_FULL_AT,
                index_interval_bytes=60,
                segment_ms=10_000,
                retention_ms=1 << 50,
                retention_bytes=2 * SEGMENT_BYTES,
            ),
            recovery_point=self.recovery_points,
            clean_shutdown=clean,
            clock=self.clock,
        )

    # Append

    @rule(
        messages=st.lists(st.binary(max_size=60), min_size=1, max_size=6),
        codec=st.sampled_from([0, 0, 0, 1, 2, 3]),
        tail=st.integers(0, 20),
    )
    def append_messages_to_leader(self, messages: list[bytes], codec: int, tail: int) -> None:
        self.produce(messages, codec, tail)

    def produce(self, messages: list[bytes], codec: int, tail: int = 0) -> None:
        data = encode_set([(None, value) for value in messages], codec)
        cut = encode_set([(None, b"partial")])[:tail]
        before = self.log.log_end_offset
        if len(data) > SEGMENT_BYTES:
            with pytest.raises(MessageSetSizeTooLargeError):
                self.log.append(writable(data + cut))
            return
        info = self.log.append(writable(data + cut))
        assert (info.first_offset, info.last_offset) == (before, before + len(messages) - 1)
        assert (info.count, info.valid_bytes, info.codec) == (len(messages), len(data), codec)
        self.record(before, messages, codec)

    @rule(messages=st.lists(st.binary(max_size=40), min_size=1, max_size=4), gap=st.integers(0, 3))
    def append_as_follower(self, messages: list[bytes], gap: int) -> None:
        first = self.log.log_end_offset + gap
        data = encode_set([(None, value) for value in messages], 0, first)
        info = self.log.append(writable(data), assign_offsets=False)
        assert (info.first_offset, info.last_offset) == (first, first + len(messages) - 1)
        self.record(first, messages, 0)

    @rule(sizes=st.lists(st.integers(0, 60), min_size=3, max_size=12), seed=st.integers(0, 9))
    def append_several(self, sizes: list[int], seed: int) -> None:
        for number, size in enumerate(sizes):
            self.produce([b"%d" % seed * size], 2 * (number % 4 == 3))

    def record(self, first: int, messages: list[bytes], codec: int) -> None:
        for i, value in enumerate(messages):
            if not i or not codec:
                self.units += 1
            self.model.append((first + i, value, self.units))
        self.leo = first + len(messages)

    # Change

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.durable = self.recovery_points = self.leo
        assert self.log.recovery_point == self.leo

    @rule()
    def age(self) -> None:
        self.clock.now_ms += 10_001

    @rule(back=st.integers(0, 9))
    def truncate(self, back: int) -> None:
        to = max(self.leo - back, self.log.log_start_offset)
        self.log.truncate_to(to)
        gone = {unit for offset, _, unit in self.model if offset >= to}
        self.model = [entry for entry in self.model if entry[2] not in gone]
        self.leo = to
        self.durable = min(self.durable, to)
        self.recovery_points = min(self.recovery_points, to)

    @rule(ahead=st.integers(0, 50))
    def truncate_fully(self, ahead: int) -> None:
        if ahead % 7:
            return
        self.log.truncate_fully_and_start_at(self.leo + ahead)
        self.model = []
        self.leo += ahead
        self.recovery_points = self.durable = min(self.durable, self.leo)

    @rule()
    def retain(self) -> None:
        self.log.delete_old_segments()
        assert self.log.size <= 3 * SEGMENT_BYTES
        self.clock.now_ms += 60_001
        self.log.files.remove_due(self.clock.now_ms)
        assert not list(Path(self.log.directory).glob("*.deleted"))
        start = self.log.log_start_offset
        self.model = [entry for entry in self.model if entry[0] >= start]

    # Restart

    @rule()
    def reopen_cleanly(self) -> None:
        self.log.flush()
        self.log.close()
        self.log = self.open(Path(self.log.directory), clean=True)
        self.after_restart()
        self.durable = self.recovery_points = self.leo

    @rule(data=st.data())
    def crash(self, data: Any) -> None:
        """The machine dies: of what was not flushed a random prefix is left, then garbage."""
        self.generation += 1
        old = self.log
        directory = self.root / str(self.generation) / "t-0"
        shutil.copytree(old.directory, directory)
        lost_from = self.damage(directory, old, data)
        self.model = [entry for entry in self.model if entry[0] < lost_from]
        self.damage_indexes(directory, data)
        self.log = self.open(directory, clean=False)
        shutil.rmtree(old.directory)
        self.after_restart()

    def damage(self, directory: Path, old: Log, data: Any) -> int:
        """Cut an unflushed segment; the lowest offset that is lost."""
        bases = [segment.base_offset for segment in old.segments]
        suspects = [
            i for i in range(len(bases)) if i + 1 == len(bases) or bases[i + 1] > self.durable
        ]
        number = data.draw(st.sampled_from(suspects), label="damaged segment")
        path = directory / f"{bases[number]:020d}.log"
        content = path.read_bytes()
        safe = 0
        for entry in iter_entries(content):
            if entry.offset < self.durable:
                safe = entry.position + entry.size_total
        unsafe = [entry for entry in iter_entries(content) if entry.position >= safe]
        if unsafe and data.draw(st.booleans(), label="flip a bit"):
            entry = data.draw(st.sampled_from(unsafe), label="damaged entry")
            kept = entry.position
            at = data.draw(st.integers(kept + 12, kept + entry.size_total - 1), label="at")
            garbage = content[kept:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]
        else:
            kept = data.draw(st.integers(safe, len(content)), label="bytes left")
            garbage = data.draw(st.sampled_from([b"", bytes(40), b"\xff" * 40, b"\x01" * 7]))
        path.write_bytes(content[:kept] + garbage)
        while garbage and kept < len(content) and content[kept] == garbage[0]:
            kept, garbage = kept + 1, garbage[1:]  # what was there is no garbage
        if kept == len(content) and not garbage:
            return 1 << 62
        last_whole = max((entry.offset for entry in iter_entries(content[:kept])), default=-1)
        following = [offset for offset, _, _ in self.model if offset >= bases[number]]
        return next((offset for offset in following if offset > last_whole), 1 << 62)

    def damage_indexes(self, directory: Path, data: Any) -> None:
        for path in sorted(directory.glob("*.index")):
            how = data.draw(st.sampled_from(["keep", "keep", "zero", "missing", "odd", "random"]))
            if how == "zero":
                path.write_bytes(bytes(8 * INDEX_FULL_AT))
            elif how == "missing":
                path.unlink()
            elif how == "odd":
                path.write_bytes(path.read_bytes()[:13] + b"\x01")
            elif how == "random":
                path.write_bytes(os.urandom(24))

    def after_restart(self) -> None:
        """After a restart the log ends with its last message: a gap at the end is forgotten."""
        last = max((offset + 1 for offset, _, _ in self.model), default=0)
        assert last <= self.log.log_end_offset <= max(self.leo, last)
        self.leo = self.log.log_end_offset
        self.durable = min(self.durable, self.leo)
        self.recovery_points = min(self.recovery_points, self.leo)

    # Check

    @invariant()
    def ends_agree(self) -> None:
        assert self.log.log_end_offset == self.leo
        assert not self.model or self.log.log_start_offset <= self.model[0][0]
        sizes = [os.path.getsize(segment.path) for segment in self.log.segments]
        assert sizes == [segment.size for segment in self.log.segments]
        assert max(sizes) <= SEGMENT_BYTES

    @invariant()
    def only_the_active_index_is_preallocated(self) -> None:
        lengths = [os.path.getsize(segment.index.path) for segment in self.log.segments]
        assert lengths[-1] == 8 * INDEX_FULL_AT
        for segment, length in zip(self.log.segments[:-1], lengths[:-1], strict=True):
            assert length == 8 * segment.index.entries

    @precondition(lambda self: self.leo > self.log.log_start_offset)
    @rule(data=st.data(), max_bytes=st.integers(0, 800))
    def read(self, data: Any, max_bytes: int) -> None:
        offset = data.draw(st.integers(self.log.log_start_offset, self.leo - 1), label="offset")
        hw = data.draw(st.none() | st.integers(offset, self.leo), label="hw")
        found = self.log.read(offset, max_bytes, hw)
        content = found.read()
        assert len(content) == len(found) <= max_bytes
        expected = self.expected(offset, hw)
        messages = [(m.offset, m.value) for m in iter_messages(content)]
        if messages:
            at = expected.index(messages[0])
            assert expected[at : at + len(messages)] == messages
            # the first unit may begin below the offset, never a whole unit too early
            assert messages[0][0] <= offset or messages[0] == expected[0]
        whole = self.log.read(offset, 1 << 20, hw).read()
        everything = [(m.offset, m.value) for m in iter_messages(whole)]
        assert bool(everything) == bool(expected) or hw is not None
        assert everything == expected[: len(everything)]

    def expected(self, offset: int, hw: int | None) -> list[tuple[int, bytes]]:
        """The whole units from ``offset`` on, up to those that reach ``hw``."""
        first_unit = next((unit for at, _, unit in self.model if at >= offset), None)
        held = {unit for at, _, unit in self.model if hw is not None and at >= hw}
        return [
            (at, value)
            for at, value, unit in self.model
            if first_unit is not None and unit >= first_unit and unit not in held
        ]

    @rule(beyond=st.integers(1, 5))
    def read_out_of_range(self, beyond: int) -> None:
        with pytest.raises(OffsetOutOfRangeError):
            self.log.read(self.leo + beyond, 100)
        if self.log.log_start_offset:
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(self.log.log_start_offset - 1, 100)
        assert len(self.log.read(self.leo, 100)) == 0

    @rule()
    def read_everything(self) -> None:
        found = []
        offset = self.log.log_start_offset
        while offset < self.leo:
            content = self.log.read(offset, 1 << 20).read()
            if not content:
                break
            found += [(m.offset, m.value) for m in iter_messages(content)]
            offset = found[-1][0] + 1
        assert found == [(at, value) for at, value, _ in self.model]


TestLogModel = LogMachine.TestCase
TestLogModel.settings = settings(
    max_examples=int(os.environ.get("LOG_MODEL_EXAMPLES", "50")),
    stateful_step_count=30,
    deadline=None,
    derandomize="LOG_MODEL_EXAMPLES" not in os.environ,
)
