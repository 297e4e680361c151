"""The cleaner's loops: they clean, wait when there is nothing to do, and end in the middle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kafka08.log.cleaning.cleaner import POLL_SECONDS, State
from kafka08.log.disk import DiskFailure, SyncError
from kafka08.server.storage.cleaner_tasks import CleanerTasks
from tests.fakes.runtime import FakeRuntime
from tests.log.cleaning.support import (
    KEY,
    broker_config,
    cleaner_of,
    compacted_log,
    keys,
    no_bound,
    put_keys,
)
from tests.log.cleaning.test_cleaner import Stuck


def tasks_of(
    tmp_path: Path, start: Any = None, report: Any = None, **settings: Any
) -> tuple[CleanerTasks, FakeRuntime, Any, Any]:
    """Started: each ``run`` is one round of its loops."""
    log = compacted_log(tmp_path, segment_bytes=170)
    put_keys(log, "abacx")
    cleaner = cleaner_of(log, **({"start": start} if start else {}))
    runtime = FakeRuntime()
    tasks = CleanerTasks(broker_config(tmp_path, **settings), runtime, cleaner, no_bound, report)
    tasks.start()
    return tasks, runtime, cleaner, log


def run(runtime: FakeRuntime) -> None:
    runtime.step("kafka-log-cleaner-thread-")


def test_what_is_dirty_is_cleaned_then_it_waits(tmp_path: Path) -> None:
    _, runtime, _, log = tasks_of(tmp_path, log_cleaner_backoff_ms=700)
    run(runtime)
    assert keys(log) == "bacx"
    begun = runtime.clock.now
    run(runtime)
    assert runtime.clock.now == pytest.approx(begun + 0.7)


def test_without_a_backoff_it_does_not_spin(tmp_path: Path) -> None:
    _, runtime, _, _ = tasks_of(tmp_path, log_cleaner_backoff_ms=0)
    run(runtime)
    begun = runtime.clock.now
    run(runtime)
    assert runtime.clock.now > begun


def test_a_stop_ends_a_cleaning_in_the_middle(tmp_path: Path) -> None:
    tasks, runtime, cleaner, log = tasks_of(tmp_path, Stuck)
    runtime.while_waiting.append(lambda: None)
    runtime.while_waiting.append(tasks.stop)
    begun = runtime.clock.now
    run(runtime)
    assert Stuck.last.killed and cleaner.state(KEY) is State.IDLE
    assert runtime.clock.now <= begun + 2 * POLL_SECONDS
    assert keys(log) == "abacx"


def test_a_failing_disk_is_told(tmp_path: Path, monkeypatch: Any) -> None:
    told: list[DiskFailure] = []
    _, runtime, cleaner, log = tasks_of(tmp_path, report=told.extend)

    def fail(fd: int) -> None:
        raise OSError("cannot sync")

    monkeypatch.setattr(os, "fsync", fail)
    run(runtime)
    ((directory, error),) = told
    assert directory == str(tmp_path) and isinstance(error, SyncError)
    assert cleaner.state(KEY) is State.IDLE
    assert keys(log) == "abacx" and cleaner.grab_filthiest_log(no_bound) is None


def test_one_loop_for_each_thread(tmp_path: Path) -> None:
    tasks, runtime, _, _ = tasks_of(tmp_path, log_cleaner_threads=3)
    assert [task.name for task in runtime.tasks] == [
        f"kafka-log-cleaner-thread-{number}" for number in range(3)
    ]
    tasks.stop()
    assert all(task.ended for task in runtime.tasks)
