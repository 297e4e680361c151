from __future__ import annotations

import json
from pathlib import Path

from kafka08.log.cleaning.cleaner_job import (
    CleanedGroup,
    CleanerStats,
    Job,
    SealedSegment,
    decode_job,
    encode_job,
    parse_event,
    remove_cleaned,
)

JOB = Job("/d/t-0", [SealedSegment(0, 5, 10, 8)], 3, 2, 100, 512, 1000, 1000, 64, 100, [3], 1.5, 7)


def test_a_job_survives_the_way_to_the_child() -> None:
    line = encode_job(JOB)
    assert line.count(b"\n") == 1
    assert decode_job(line) == JOB
    assert (JOB.name, JOB.path(5)) == ("t-0", "/d/t-0/00000000000000000005.log")


def test_events_survive_the_way_back() -> None:
    events = [
        {"say": "a line"},
        {"group": CleanedGroup((0, 5), True, 80)},
        {"end": 9, "stats": CleanerStats(bytes_read=3, seconds=0.5)},
        {"error": "No space left on device", "errno": 28},
    ]
    assert [parse_event(json.dumps(each).encode()) for each in events] == events


def test_cleaned_files_of_one_group_are_removed(tmp_path: Path) -> None:
    stems = [f"{base:020d}" for base in (0, 5)]
    for stem in stems:
        for suffix in (".log", ".log.cleaned", ".index.cleaned"):
            (tmp_path / f"{stem}{suffix}").touch()
    remove_cleaned(str(tmp_path), 0)
    remove_cleaned(str(tmp_path), 0)
    left = [
        f"{stems[0]}.log",
        *(f"{stems[1]}{each}" for each in (".index.cleaned", ".log", ".log.cleaned")),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == left
