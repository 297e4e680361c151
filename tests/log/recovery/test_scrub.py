"""The scrubber: seals what is sealed and synced, finds what has changed since."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.log.log import Log
from kafka08.log.recovery.scrub import Scrubber, run_throttled
from kafka08.log.segments import integrity
from tests.fakes.runtime import FakeClock
from tests.log.support import append, fill, open_log, segment_paths

KEY = TopicPartition("t", 0)
DAY_MS = 24 * 3600 * 1000
FAR_FUTURE_MS = 4_000_000_000_000  # files carry the time that they are truly written at


def scrubber_of(log: Log, clock: FakeClock | None = None, interval_ms: int = 0) -> Scrubber:
    return Scrubber({KEY: log}, clock or FakeClock(FAR_FUTURE_MS / 1000), interval_ms=interval_ms)


def scrub(scrubber: Scrubber) -> int:
    """Bytes read."""
    return sum(scrubber.one_pass())


def sealed(log: Log) -> list[int]:
    return [s.base_offset for s in log.segments if integrity.read(s.path) is not None]


def four_segments(tmp_path: Path) -> Log:
    """Offsets 0-1, 2-3, 4-5, 6."""
    log = open_log(tmp_path, segment_bytes=200)
    fill(log, 7)
    return log


class TestSealing:
    def test_only_what_is_synced_and_takes_no_appends(self, tmp_path: Path) -> None:
        log = four_segments(tmp_path)
        scrubber = scrubber_of(log)
        assert scrub(scrubber) == 0
        log.flush(5)
        assert scrub(scrubber) == 304
        assert sealed(log) == [0, 2]
        log.flush()
        scrub(scrubber)
        assert sealed(log) == [0, 2, 4]
        assert scrubber.damaged == {}

    def test_a_rolled_segment_at_once(self, tmp_path: Path) -> None:
        log = four_segments(tmp_path)
        log.flush()
        scrubber = scrubber_of(log)
        scrubber.seal_rolled(log)
        assert sealed(log) == [0, 2, 4]
        integrity.remove(log.segments[0].path)
        fill(log, 2)
        log.flush()
        scrubber.seal_rolled(log)
        assert sealed(log) == [2, 4, 6]  # back to the newest that was sealed

    def test_a_truncation_meanwhile(self, tmp_path: Path) -> None:
        log = four_segments(tmp_path)
        log.flush()
        scrubber = scrubber_of(log)
        steps = scrubber.one_pass()
        next(steps)
        log.truncate_to(1)
        append(log, "another")
        assert list(steps) == []
        assert sealed(log) == []
        assert scrubber.damaged == {}

    def test_a_deletion_meanwhile(self, tmp_path: Path) -> None:
        log = four_segments(tmp_path)
        log.flush()
        scrubber = scrubber_of(log)
        scrub(scrubber)
        steps = scrubber.one_pass()
        next(steps)
        log.delete()
        assert list(steps) == []
        assert scrubber.damaged == {}


class TestFinding:
    def test_each_of_a_thousand_flipped_bits(self, tmp_path: Path) -> None:
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        log = open_log(tmp_path, segment_bytes=3000)
        for codec in (0, 1, 2) * 10:
            append(log, *(str(rng.random()) * 4 for _ in range(20)), codec=codec)
        log.flush()
        scrubber = scrubber_of(log)
        scrub(scrubber)
        assert len(sealed(log)) == len(log.segments) - 1 > 5
        logging.getLogger("kafka.log.Scrub").setLevel(logging.CRITICAL)
        try:
            for _ in range(1000):
                segment = rng.choice(log.segments[:-1])
                position, bit = rng.randrange(segment.size), 1 << rng.randrange(8)
                flip(segment.path, position, bit)
                scrub(scrubber)
                assert list(scrubber.damaged) == [segment.path], (seed, position, bit)
                flip(segment.path, position, bit)
                scrub(scrubber)
                assert scrubber.damaged == {}, (seed, position, bit)
        finally:
            logging.getLogger("kafka.log.Scrub").setLevel(logging.NOTSET)

    @pytest.mark.parametrize(
        ("position", "told"),
        [
            (76 + 40, "first at position 76, offset 1: wrong crc"),
            (76 + 6, "every message is whole: a header or the side file"),
        ],
    )
    def test_tells_where(self, tmp_path: Path, caplog: Any, position: int, told: str) -> None:
        log = four_segments(tmp_path)
        log.flush()
        scrubber = scrubber_of(log)
        scrub(scrubber)
        flip(log.segments[0].path, position, 1)
        scrub(scrubber)
        (line,) = [r.getMessage() for r in caplog.records if r.name == "kafka.log.Scrub"]
        assert line.startswith(f"Segment {log.segments[0].path} is damaged: 152 bytes with crc-32c")
        assert line.endswith(told)

    def test_a_lost_end(self, tmp_path: Path) -> None:
        log = four_segments(tmp_path)
        log.flush()
        scrubber = scrubber_of(log)
        scrub(scrubber)
        os.truncate(segment_paths(log.directory)[1], 100)
        scrub(scrubber)
        assert list(scrubber.damaged) == [log.segments[1].path]

    def test_a_segment_that_cannot_be_read_does_not_hide_the_next(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = four_segments(tmp_path)
        log.flush()
        scrubber = scrubber_of(log)
        scrub(scrubber)
        real = integrity.sum_up

        def sum_up(path: str) -> Any:
            if path == log.segments[0].path:
                raise OSError(5, "Input/output error")
            return real(path)

        monkeypatch.setattr(integrity, "sum_up", sum_up)
        flip(log.segments[2].path, 60, 4)
        scrub(scrubber)
        assert list(scrubber.damaged) == [log.segments[0].path, log.segments[2].path]
        assert "Input/output error" in scrubber.damaged[log.segments[0].path]


class TestInterval:
    def test_each_segment_is_read_once_an_interval(self, tmp_path: Path) -> None:
        log = four_segments(tmp_path)
        log.flush()
        clock = FakeClock()
        scrubber = scrubber_of(log, clock, interval_ms=DAY_MS)
        assert scrub(scrubber) == 3 * 152
        clock.now_ms = os.stat(integrity.seal_path(log.segments[0].path)).st_mtime_ns // 10**6
        assert scrub(scrubber) == 0
        flip(log.segments[1].path, 60, 1)
        clock.now_ms += DAY_MS + 10_000
        assert scrub(scrubber) == 3 * 152
        assert list(scrubber.damaged) == [log.segments[1].path]


class TestThrottle:
    def test_waits_as_long_as_the_bytes_are_worth(self) -> None:
        waits: list[float] = []
        run_throttled(iter([100, 50]), 10, step=lambda f: f(), wait=waits.append)
        assert waits == [10, 5]

    def test_stops_when_told(self) -> None:
        def endless() -> Iterator[int]:
            while True:
                yield 1

        answers = iter([False, False, True])
        run_throttled(endless(), 1, step=lambda f: f(), wait=lambda _: next(answers))
        assert next(answers, None) is None


def flip(path: str, position: int, bit: int) -> None:
    with open(path, "r+b", buffering=0) as file:
        (byte,) = os.pread(file.fileno(), 1, position)
        os.pwrite(file.fileno(), bytes([byte ^ bit]), position)
