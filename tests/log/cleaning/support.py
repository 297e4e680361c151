"""Shared by the tests of cleaning: logs with keys, a cleaner without processes, a plain model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka08.common import TopicPartition
from kafka08.log.cleaning.cleaner import LogCleaner
from kafka08.log.cleaning.cleaner_job import Job
from kafka08.log.cleaning.compaction import events
from kafka08.log.cleaning.reach import Reach
from kafka08.log.cleaning.throttler import Throttler
from kafka08.log.log import Log
from kafka08.message.sets import encode_set, iter_messages
from kafka08.settings.broker import BrokerConfig
from tests.fakes.runtime import FakeClock
from tests.log.support import open_log, writable

KEY = TopicPartition("t", 0)
Found = tuple[int, "bytes | None", "bytes | None"]


class InlineProcess:
    """The whole compaction done at once, in this process; its events come one per poll."""

    exit_status: int | None = None

    def __init__(self, job: Job) -> None:
        self.job = job
        self.killed = False
        self.events: list[dict[str, Any]] = []
        events(job, self.events.append, Throttler(float("inf"), -1))

    def poll(self) -> list[dict[str, Any]]:
        found, self.events = self.events[:1], self.events[1:]
        if not self.events:
            self.exit_status = 0
        return found

    def kill(self) -> None:
        self.killed = True


def broker_config(tmp_path: Path | str, **changes: Any) -> BrokerConfig:
    properties = {"broker.id": "0", "zookeeper.connect": "z", "log.dirs": str(tmp_path)}
    for key, value in changes.items():
        properties[key.replace("_", ".")] = str(value)
    return BrokerConfig.from_properties(properties)


def compacted_log(directory: Path | str, clock: FakeClock | None = None, **changes: Any) -> Log:
    given = {"cleanup_policy": "compact", "segment_bytes": 400, "min_cleanable_dirty_ratio": 0.0}
    return open_log(directory, clock, **{**given, **changes})


def cleaner_of(
    log: Log,
    clock: FakeClock | None = None,
    start: Callable[[Job], Any] = InlineProcess,
    **changes: Any,
) -> LogCleaner:
    directory = Path(log.directory).parent
    return LogCleaner(
        broker_config(directory, **changes),
        [str(directory)],
        {KEY: log},
        clock=clock or FakeClock(),
        start=start,
    )


def drive(steps: Any) -> list[float]:
    """Do what a cleaning asks for at once; the waits it would have made."""
    waits = []
    try:
        wish = next(steps)
        while True:
            if callable(wish):
                try:
                    wish()
                except OSError as error:
                    wish = steps.throw(error)
                    continue
            else:
                waits.append(wish)
            wish = next(steps)
    except StopIteration:
        return waits


def no_bound(key: TopicPartition) -> Reach:
    """All of a log may be cleaned."""
    return up_to(sys.maxsize)


def up_to(offset: int) -> Reach:
    """All replicas have the messages below an offset."""
    return Reach(offset, is_everywhere=True)


def clean_once(
    cleaner: LogCleaner, until: int = sys.maxsize, *, is_everywhere: bool = True
) -> bool:
    found = cleaner.grab_filthiest_log(lambda key: Reach(until, is_everywhere))
    if found is None:
        return False
    drive(cleaner.clean(found))
    return True


def put(log: Log, *pairs: tuple[bytes | None, bytes | None], codec: int = 0) -> None:
    """Append as a follower would, so that keys need not be there."""
    data = encode_set(pairs, codec, log.log_end_offset)
    log.append(writable(data), assign_offsets=False)


def put_keys(log: Log, text: str, value: bytes = b"v" * 40) -> None:
    """One message for each letter; capitals are tombstones."""
    for letter in text:
        put(log, (letter.lower().encode(), None if letter.isupper() else value))


def contents(log: Log) -> list[Found]:
    """All (offset, key, value) as a consumer from the log's start gets them."""
    found: list[Found] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 30).read()
        if not data:
            break
        found += [(m.offset, m.key, m.value) for m in iter_messages(data) if m.offset >= offset]
        offset = found[-1][0] + 1
    return found


def keys(log: Log) -> str:
    return "".join([(key or b"?").decode() for _, key, _ in contents(log)])


def survivors(messages: list[Found], end: int) -> list[Found]:
    """The messages that a cleaning up to ``end`` leaves, tombstones included."""
    last = {key: offset for offset, key, _ in messages if offset < end}
    return [m for m in messages if m[0] >= end or m[1] is None or last[m[1]] == m[0]]
