"""The job that the cleaner gives to a child process (``compaction``), and the events that come
back, each as a line of JSON. ``CleanerProcess`` is the cleaner's side."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from kafka08.log.child_process import ChildProcess
from kafka08.log.directory import CLEANED_SUFFIX, unlink_if_there
from kafka08.log.segments.names import SUFFIXES


class SealedSegment(NamedTuple):
    """A sealed segment: its base offset, the base of the next one, sizes of its files."""

    base_offset: int
    next_base_offset: int
    size: int
    index_size: int


class Job(NamedTuple):
    """One pass over one log.

    ``sources``: its sealed segments that may be cleaned, from the log's start. All messages below
    ``first_dirty_offset`` have been in a map before. Tombstones below ``tombstones_below`` are
    removed (``cleanings``). ``producer_ends``: the last offset of the last batch of each idempotent
    producer; ``producer_epochs``: (id, epoch) of those that have no batch. ``aborted``: (producer
    id, first offset, offset of the marker) of transactions.
    ``max_entries`` bounds the map. ``throttle_fd`` is shared by Throttlers (-1: no limit).
    """

    directory: str
    sources: Sequence[SealedSegment]
    first_dirty_offset: int
    tombstones_below: int
    max_entries: int
    io_buffer_bytes: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    max_message_bytes: int
    producer_ends: Sequence[int] = ()
    producer_epochs: Sequence[tuple[int, int]] = ()
    aborted: Sequence[tuple[int, int, int]] = ()
    rate: float = float("inf")
    throttle_fd: int = -1

    def path(self, base_offset: int) -> str:
        return os.path.join(self.directory, f"{base_offset:020d}.log")

    @property
    def name(self) -> str:
        return os.path.basename(self.directory)


class CleanerStats(NamedTuple):
    """Statistics of a pass (kafka.log.CleanerStats); times in seconds, messages are entries."""

    map_bytes_read: int = 0
    index_seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    messages_read: int = 0
    messages_written: int = 0
    seconds: float = 0.0
    buffer_utilization: float = 0.0


class CleanedGroup(NamedTuple):
    """A group of segments that was cleaned; ``changed`` if cleaned files are ready."""

    bases: tuple[int, ...]
    changed: bool
    size: int


class CompactionEvent(TypedDict, total=False):
    """One of ``say``, a line for the log; ``group``; ``end``, the first offset not cleaned, with
    ``stats``; ``error``, a text, with ``errno`` if a file could not be read or written."""

    say: str
    group: CleanedGroup
    end: int
    stats: CleanerStats
    error: str
    errno: int


def remove_cleaned(directory: str, base_offset: int) -> None:
    """Remove the cleaned files of a group, if they exist."""
    stem = os.path.join(directory, f"{base_offset:020d}")
    for suffix in SUFFIXES:
        unlink_if_there(stem + suffix + CLEANED_SUFFIX)


def encode_job(job: Job) -> bytes:
    """One line of JSON; ``decode_job`` reads it."""
    return json.dumps(job._asdict()).encode() + b"\n"


def decode_job(line: bytes) -> Job:
    found = json.loads(line)
    found["sources"] = [SealedSegment(*source) for source in found["sources"]]
    return Job(**found)


def parse_event(line: bytes) -> CompactionEvent:
    """The event in a line that the child process printed."""
    event: CompactionEvent = json.loads(line)
    if "group" in event:
        bases, changed, size = event["group"]
        event["group"] = CleanedGroup(tuple(bases), changed, size)
    elif "stats" in event:
        event["stats"] = CleanerStats(*event["stats"])
    return event


class CleanerProcess(ChildProcess):
    """Runs ``python -m kafka08.log.cleaning.compaction`` on ``job``. Raises OSError if it cannot be
    started."""

    def __init__(self, job: Job) -> None:
        descriptors = [job.throttle_fd] if job.throttle_fd >= 0 else []
        super().__init__("kafka08.log.cleaning.compaction", encode_job(job), descriptors)

    def poll(self) -> list[CompactionEvent]:
        """The events since the last call."""
        return list(map(parse_event, self.lines()))
