"""Shared by the tests of rebuilt entries: logs with compressed sets, and rebuilding at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kafka08.common import TopicPartition
from kafka08.log.log import Log
from kafka08.log.segments.names import rebuilt_paths
from kafka08.log.segments.segment import LogSegment
from kafka08.message.sets import iter_messages
from kafka08.server.rebuild import plan as rebuild_plan
from kafka08.server.rebuild import process as rebuilding
from kafka08.server.rebuild.process import Stretch
from tests.fakes.runtime import FakeClock
from tests.log.support import open_log, writable
from tests.message.sets import plain, wrapper

KEY = TopicPartition("t", 0)
CODECS = (1, 2, 3)


class InlineRebuild:
    """Rebuilds all stretches at once, in this process; the lines come one by one."""

    exit_status: int | None = None

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self.stretches = list(stretches)
        self.killed = False
        self.events: list[dict[str, Any]] = []
        rebuilding.events(stretches, self.events.append)

    def lines(self) -> list[bytes]:
        found, self.events = self.events[:1], self.events[1:]
        if not self.events:
            self.exit_status = 0
        return [json.dumps(event).encode() for event in found]

    def kill(self) -> None:
        self.killed = True


def old_log(directory: Path, clock: FakeClock | None = None, **changes: Any) -> Log:
    """A log with segments of some ten sets."""
    return open_log(
        directory, clock, **{"segment_bytes": 1500, "index_interval_bytes": 300, **changes}
    )


def produce(log: Log, sets: int, codec: int = 1, texts: int = 4, keys: int = 1 << 30) -> None:
    """Sets as producers send them, with offsets from 0 inside, of messages that differ."""
    for _ in range(sets):
        start = log.log_end_offset
        pairs = [
            (b"k%d" % ((start + n) % keys), b"text %d " % (start + n) * 12) for n in range(texts)
        ]
        log.append(writable(wrapper(plain(pairs), codec) if codec else plain(pairs)))


def fetched(log: Log, max_bytes: int = 1500, until: int | None = None) -> list[tuple[int, bytes]]:
    """(offset as it stands in the bytes, value) of what a consumer gets from rebuilt entries."""
    found: list[tuple[int, bytes]] = []
    offset = log.log_start_offset
    while True:
        part = log.read(offset, max_bytes, until, for_consumer=True)
        if not part.size or not is_rebuilt(part):
            return found
        messages = [each for each in iter_messages(part.read()) if each.offset >= offset]
        found += [(each.offset, each.value or b"") for each in messages]
        offset = messages[-1].offset + 1


def is_rebuilt(part: Any) -> bool:
    """Whether a slice may be sent as it is, though its log has only producers' wrappers."""
    return bool(part.file.sendable_until >= part.position + part.size)


def all_small(monkeypatch: Any) -> None:
    """The limits of planning, for small segments."""
    for name in ("STRETCH_BYTES", "IDLE_BYTES", "LEAST_BYTES", "COUNTED_BYTES"):
        monkeypatch.setattr(rebuild_plan, name, 300 if name != "STRETCH_BYTES" else 1500)
    monkeypatch.setattr(rebuild_plan, "_free_bytes", lambda directory: 1 << 40)


@contextmanager
def stretch_of(segment: LogSegment, start: int, stop: int) -> Iterator[Stretch]:
    """The stretch from position ``start`` to ``stop``, after what was rebuilt before."""
    made = segment.rebuilt
    size, entries = (made.size, made.index.entries) if made is not None else (0, 0)
    with ExitStack() as files:
        fds = [
            files.enter_context(open(os.open(path, os.O_RDWR | os.O_CREAT), "rb")).fileno()
            for path in (segment.path, *rebuilt_paths(segment.path))
        ]
        yield Stretch(fds[0], fds[1], fds[2], segment.base_offset, start, stop, size, entries, 500)
