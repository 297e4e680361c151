"""Shared by the tests of logs: configs, sets, crashed copies."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka08.log.log import Log
from kafka08.log.producer_state import BatchMetadata, ProducerStates
from kafka08.message.sets import encode_set, iter_messages
from kafka08.settings.topic import LogConfig
from tests.fakes.runtime import FakeClock


def config(**changes: Any) -> LogConfig:
    return LogConfig(**{"segment_index_bytes": 1024, "index_interval_bytes": 100, **changes})


def open_log(directory: Path | str, clock: FakeClock | None = None, **changes: Any) -> Log:
    """A Log in ``<directory>/t-0``; keywords that are not Log's go to the config."""
    for_log = {
        key: changes.pop(key)
        for key in ("recovery_point", "clean_shutdown", "deleted_until")
        if key in changes
    }
    return Log(
        os.path.join(directory, "t-0"),
        changes.pop("config", None) or config(**changes),
        clock=clock or FakeClock(),
        **for_log,
    )


def writable(data: bytes) -> memoryview:
    return memoryview(bytearray(data))


def values(*texts: str) -> list[tuple[bytes | None, bytes | None]]:
    return [(None, text.encode()) for text in texts]


def append(log: Log, *texts: str, codec: int = 0) -> Any:
    return log.append(writable(encode_set(values(*texts), codec)))


def fill(log: Log, count: int, size: int = 50) -> None:
    """``count`` appends of one message with a value of ``size`` bytes."""
    for _ in range(count):
        append(log, "v" * size)


def everything(log: Log) -> list[tuple[int, str]]:
    """All (offset, value) from the log's start, segment by segment."""
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 30).read()
        if not data:
            break
        for message in iter_messages(data):
            assert message.value is not None
            found.append((message.offset, message.value.decode()))
        offset = found[-1][0] + 1
    return found


def crash_copy(log: Log, to: Path | str) -> Path:
    """A copy of the log's directory, as after a crash of the broker without one of the machine."""
    return Path(shutil.copytree(log.directory, os.path.join(to, os.path.basename(log.directory))))


def segment_paths(directory: Path | str, suffix: str = ".log") -> list[Path]:
    return sorted(Path(directory).glob("*" + suffix))


def die_at_rename(monkeypatch: pytest.MonkeyPatch, steps: int) -> list[str]:
    """After so many renames in the directory of a log the next one raises KeyboardInterrupt.
    Returns the live list of the new names."""
    done: list[str] = []
    real = os.replace

    def replace(old: str, new: str) -> None:
        if Path(old).parent.name == "t-0":
            if len(done) == steps:
                raise KeyboardInterrupt
            done.append(new)
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    return done


def last_batches(states: ProducerStates) -> dict[int, tuple[BatchMetadata, ...]]:
    """By producer id, oldest first."""
    return {producer_id: known.batches for producer_id, known in states._known.items()}


class FullDisk:
    """os.pwrite that takes ``room`` bytes, ``step`` at a time, and then fails."""

    def __init__(self, room: int, step: int) -> None:
        self.room = room
        self.step = step
        self.real = os.pwrite

    def __call__(self, fd: int, data: Any, position: int) -> int:
        count = min(len(data), self.step, self.room)
        if not count:
            no_space()
        self.room -= count
        return self.real(fd, data[:count], position)


def no_space(*_: object) -> Any:
    """In place of a call on a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


@contextmanager
def no_room_for_files() -> Iterator[None]:
    """A disk without room for a new file; those that exist can be opened."""
    real = os.open

    def full(path: str, flags: int, *args: Any, **more: Any) -> int:
        if flags & os.O_CREAT and not os.path.exists(path):
            no_space()
        return real(path, flags, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", full)
        yield


@contextmanager
def no_room_to_grow() -> Iterator[None]:
    """A disk without room for what ftruncate adds to a file; files can be cut."""
    real = os.ftruncate

    def shrink(fd: int, size: int) -> None:
        if size > os.fstat(fd).st_size:
            no_space()
        real(fd, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "ftruncate", shrink)
        yield
