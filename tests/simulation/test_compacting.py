"""A compaction goes on from poll to poll, and can be killed between two of them."""

from __future__ import annotations

from pathlib import Path
from random import Random

from kafka08.log.cleaning.cleaner_job import CompactionEvent, Job, SealedSegment
from kafka08.message.sets import encode_set
from tests.simulation.compacting import SteppedCompaction

SEED = 5
"""With it a map has room for all keys."""


def job(directory: Path) -> Job:
    """Three segments with one message each, all of one key."""
    sources = []
    for base in range(3):
        data = encode_set([(b"key", b"%d" % base)], base_offset=base)
        (directory / f"{base:020d}.log").write_bytes(data)
        sources.append(SealedSegment(base, base + 1, len(data), 0))
    return Job(
        directory=str(directory),
        sources=sources,
        first_dirty_offset=0,
        tombstones_below=0,
        max_entries=1,
        io_buffer_bytes=4096,
        segment_bytes=1,
        segment_index_bytes=1024,
        index_interval_bytes=4096,
        max_message_bytes=1000,
    )


def test_each_poll_goes_on_to_the_next_event(tmp_path: Path) -> None:
    compaction = SteppedCompaction(Random(SEED), job(tmp_path))
    events: list[CompactionEvent] = []
    polls = 0
    while compaction.exit_status is None:
        events += compaction.poll()
        polls += 1
    assert [event["group"].bases for event in events[:-1]] == [(0,), (1,), (2,)]
    assert events[-1]["end"] == 3
    assert polls == len(events) + 1
    assert compaction.poll() == []


def test_it_does_nothing_more_when_it_was_killed(tmp_path: Path) -> None:
    compaction = SteppedCompaction(Random(SEED), job(tmp_path))
    compaction.poll()
    compaction.kill()
    compaction.kill()
    assert compaction.exit_status
    assert compaction.poll() == []
    assert not (tmp_path / f"{1:020d}.log.cleaned").exists()
