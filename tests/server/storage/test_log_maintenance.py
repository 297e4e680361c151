"""When the log manager's jobs run, and on what."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.log.disk import DiskFailure
from kafka08.log.manager import LogManager
from kafka08.runtime import Scheduler
from kafka08.server.requests.effects import Effects
from kafka08.server.storage.log_maintenance import LogMaintenance
from tests.fakes.runtime import FakeRuntime
from tests.server.support import broker_config

JOBS = (
    "cleanup",
    "flush_dirty",
    "checkpoint_recovery_points",
    "expire_producers",
    "delete_due_files",
)


class Tasks:
    def __init__(self, directory: Any) -> None:
        self.runtime = FakeRuntime()
        config = broker_config(
            directory,
            log_retention_check_interval_ms=300_000,
            log_flush_scheduler_interval_ms=50_000,
            log_flush_offset_checkpoint_interval_ms=60_000,
        )
        manager = LogManager(config, clock=self.runtime.clock, topic_configs={})
        self.calls: list[tuple[str, float]] = []
        for name in JOBS:
            setattr(manager, name, self._job(name))
        self.errors: list[DiskFailure] = []
        self.effects = Effects(self.runtime)
        self.tasks = LogMaintenance(
            config,
            self.runtime,
            manager,
            self.effects,
            self.errors.extend,
        )
        self.scheduler = Scheduler(self.runtime)
        self.began = self.runtime.clock.now
        self.tasks.start(self.scheduler)

    def _job(self, name: str) -> Callable[[], list[DiskFailure]]:
        """Notes when it ran, and fails."""

        def job() -> list[DiskFailure]:
            self.calls.append((name, self.runtime.clock.now))
            return [DiskFailure("/d", OSError(name))]

        job.__name__ = name
        return job

    def run(self, name: str, times: int) -> list[float]:
        """Seconds after the start at which one job ran."""
        self.runtime.clock.now = self.began
        self.calls.clear()
        for _ in range(times):
            assert self.runtime.step(name) == 1
        return [at - self.began for _, at in self.calls]


@pytest.fixture
def tasks(tmp_path: Any) -> Tasks:
    return Tasks(tmp_path)


@pytest.mark.parametrize(
    ("name", "call", "at", "pooled"),
    [
        ("kafka-log-retention", "cleanup", [30, 330], False),
        ("kafka-log-flusher", "flush_dirty", [30, 80], True),
        ("kafka-recovery-point-checkpoint", "checkpoint_recovery_points", [30, 90], True),
        ("kafka-delete-files", "delete_due_files", [10, 20], True),
    ],
)
def test_jobs_run_when_they_should(
    tasks: Tasks, name: str, call: str, at: list[float], pooled: bool
) -> None:
    assert tasks.run(name, 2) == at
    assert {each for each, _ in tasks.calls} == {call}
    assert (call in tasks.runtime.pooled) is pooled
    assert [(path, str(error)) for path, error in tasks.errors] == [("/d", call)] * 2


def test_silent_producers_are_looked_for_every_ten_minutes(tasks: Tasks) -> None:
    assert tasks.run("producer-id-expiration", 2) == [600, 1200]


class RolledLog:
    data_dir, directory = "/d", "/d/t-0"

    recovery_point = truncations = 0

    def __init__(self, base: int, error: OSError | None = None) -> None:
        self.segments = [
            SimpleNamespace(base_offset=at, path=f"/none/{at:020d}.log") for at in (0, base)
        ]
        self.error = error
        self.flushed: list[int] = []

    def flush(self, up_to: int) -> None:
        if self.error is not None:
            raise self.error
        self.flushed.append(up_to)


def test_a_rolled_segment_is_flushed_off_the_loop(tasks: Tasks) -> None:
    log = RolledLog(17)
    tasks.effects.rolled(log)  # type: ignore[arg-type]
    # rolled again before its turn
    log.segments.append(SimpleNamespace(base_offset=40, path="/none/40.log"))
    tasks.runtime.step("log-flusher")
    assert log.flushed == [17]
    assert tasks.runtime.pooled == ["flush", "seal_rolled"]


def test_a_flush_that_fails_is_not_the_end(tasks: Tasks) -> None:
    good = RolledLog(5)
    tasks.effects.rolled(RolledLog(17, OSError("as told")))  # type: ignore[arg-type]
    tasks.effects.rolled(good)  # type: ignore[arg-type]
    tasks.runtime.step("log-flusher")
    tasks.runtime.step("log-flusher")
    assert good.flushed == [5]
    assert [(path, str(error)) for path, error in tasks.errors] == [("/d", "as told")]


def test_stopping_wakes_the_flusher(tasks: Tasks) -> None:
    (flusher,) = [task for task in tasks.runtime.tasks if task.name == "log-flusher"]
    tasks.tasks.stop()
    assert flusher.ended
    assert tasks.runtime.pooled == []
