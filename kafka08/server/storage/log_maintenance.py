"""Timers for the log manager's work: flushes, checkpoints, retention, deletion.

The log layer has no timers and no tasks of its own. Work that may run on any thread runs on the
runtime's pool, so that an fsync does not block requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from kafka08.log.disk import DiskFailure
from kafka08.log.manager import LogManager
from kafka08.log.recovery.scrub import Scrubber, run_throttled
from kafka08.runtime import Loop, Runtime, Scheduler
from kafka08.server.requests.effects import Effects
from kafka08.settings.broker import BrokerConfig

INITIAL_DELAY_MS = 30_000
DELETE_CHECK_MS = 10_000
SCRUB_PAUSE_S = 60
EXPIRE_PRODUCERS_MS = 600_000


class LogMaintenance:
    """The periodic jobs of one log manager, and the flusher of segments just rolled away."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        log_manager: LogManager,
        effects: Effects,
        disk_failed: Callable[[Iterable[DiskFailure]], None],
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._log_manager = log_manager
        self._disk_failed = disk_failed
        self._effects = effects
        self._flusher = Loop(runtime, "log-flusher", self._flush_next)
        self.scrub = Scrubber(
            log_manager.logs, runtime.clock, interval_ms=config.log_scrub_interval_ms
        )
        self._scrubber = Loop(runtime, "log-scrubber", self._scrub_once)

    def start(self, scheduler: Scheduler) -> None:
        config, manager = self._config, self._log_manager
        checks_ms = config.log_retention_check_interval_ms
        flushes_ms = config.log_flush_scheduler_interval_ms
        points_ms = config.log_flush_offset_checkpoint_interval_ms
        begin = partial(scheduler.every, delay_ms=INITIAL_DELAY_MS)
        begin("kafka-log-retention", checks_ms, lambda: self._disk_failed(manager.cleanup()))
        begin("kafka-log-flusher", flushes_ms, self._in_pool(manager.flush_dirty))
        points = self._in_pool(manager.checkpoint_recovery_points)
        begin("kafka-recovery-point-checkpoint", points_ms, points)
        delete = self._in_pool(manager.delete_due_files)
        scheduler.every("kafka-delete-files", DELETE_CHECK_MS, delete, delay_ms=DELETE_CHECK_MS)
        scheduler.every(
            "producer-id-expiration",
            EXPIRE_PRODUCERS_MS,
            manager.expire_producers,
            delay_ms=EXPIRE_PRODUCERS_MS,
        )
        self._flusher.start()
        if config.log_scrub_interval_ms:
            self._scrubber.start()

    def _in_pool(self, act: Callable[[], Iterable[DiskFailure]]) -> Callable[[], None]:
        return lambda: self._disk_failed(self._runtime.blocking(act))

    def stop(self) -> None:
        self._scrubber.stop()
        self._flusher.stopping.set()
        self._effects.stop_rolled()
        self._flusher.stop()

    def _flush_next(self) -> None:
        rolled = self._effects.take_rolled()
        if rolled is None:
            return
        log, up_to = rolled
        try:
            self._runtime.blocking(self._log_manager.flush, log, up_to)
            self._runtime.blocking(self.scrub.seal_rolled, log)
        except OSError as error:
            self._disk_failed([DiskFailure(log.data_dir, error)])

    def _scrub_once(self) -> None:
        wait = self._scrubber.stopping.wait
        if not wait(min(SCRUB_PAUSE_S, self._config.log_scrub_interval_ms / 1000)):
            run_throttled(
                self.scrub.one_pass(),
                self._config.log_scrub_bytes_per_second,
                step=self._runtime.blocking,
                wait=wait,
            )
