"""Offsets of segments by the times of their files."""

from __future__ import annotations

import os
from pathlib import Path

from kafka08.log.offsets_before import offsets_before
from tests.fakes.runtime import FakeClock
from tests.log.support import append, open_log, segment_paths


def test_offsets_before(tmp_path: Path) -> None:
    clock = FakeClock()
    log = open_log(tmp_path, clock, segment_bytes=100)
    for _ in range(5):
        append(log, "x" * 24)
    start = clock.now_ms
    for number, path in enumerate(segment_paths(log.directory)):
        os.utime(path, ns=(0, (start + 1000 * number) * 1_000_000))
    clock.now_ms += 10_000

    def ask(time: int, count: int) -> list[int]:
        return offsets_before(log, time, count, start=log.first_offset, now=clock.now_ms)

    assert ask(-1, 1) == [5]
    assert ask(-1, 10) == [5, 4, 2, 0]
    assert ask(-2, 10) == [0]
    assert ask(start - 1, 10) == []
    assert ask(start, 10) == [0]
    assert ask(start + 1999, 10) == [2, 0]
    assert ask(start + 2000, 2) == [4, 2]
    assert ask(clock.now_ms, 1) == [5]
    assert ask(-1, 0) == []
    log.roll()
    assert ask(-1, 1) == [5]
    assert ask(-1, 10) == [5, 4, 2, 0]
