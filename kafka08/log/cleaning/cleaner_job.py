"""The job that the cleaner gives to a child process (``compaction``), and the events that come
back, each as a line of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kafka08.log.directory import CLEANED_SUFFIX


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
    producer.
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


def remove_cleaned(directory: str, base_offset: int) -> None:
    """Remove the cleaned files of a group, if they exist."""
    stem = os.path.join(directory, f"{base_offset:020d}")
    for suffix in (".log", ".index", ".timeindex"):
        try:
            os.unlink(stem + suffix + CLEANED_SUFFIX)
        except FileNotFoundError:
            continue


def encode_job(job: Job) -> bytes:
    """One line of JSON; ``decode_job`` reads it."""
    return json.dumps(job._asdict()).encode() + b"\n"


def decode_job(line: bytes) -> Job:
    found = json.loads(line)
    found["sources"] = [SealedSegment(*source) for source in found["sources"]]
    return Job(**found)


def parse_events(lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """The events in the lines that the child process printed."""
    for line in lines:
        event = json.loads(line)
        if "group" in event:
            bases, changed, size = event["group"]
            event["group"] = CleanedGroup(tuple(bases), changed, size)
        elif "stats" in event:
            event["stats"] = CleanerStats(*event["stats"])
        yield event
