"""The cleaner's threads: each cleans the dirtiest log there is, or waits for one.

Mirrors kafka.log.LogCleaner.CleanerThread. All decisions are made by ``log.cleaning.cleaner``;
this module only does its waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from kafka08.errors import KafkaError
from kafka08.log.cleaning.cleaner import LogCleaner, LogToClean, ReachOf, Wish, logger
from kafka08.log.disk import DiskFailure
from kafka08.runtime import Loop, Runtime
from kafka08.settings.broker import BrokerConfig

_LEAST_BACKOFF_SECONDS = 0.1


class CleanerTasks:
    """log.cleaner.threads loops over one LogCleaner; ``reach_of`` is for its choice of a log."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        cleaner: LogCleaner,
        reach_of: ReachOf,
        disk_failed: Callable[[Iterable[DiskFailure]], None],
    ) -> None:
        self._backoff = max(config.log_cleaner_backoff_ms / 1000, _LEAST_BACKOFF_SECONDS)
        self._runtime = runtime
        self._cleaner = cleaner
        self._reach_of = reach_of
        self._disk_failed = disk_failed
        self._loops = [
            Loop(runtime, f"kafka-log-cleaner-thread-{number}", partial(self._work, number))
            for number in range(config.log_cleaner_threads)
        ]

    def start(self) -> None:
        logger.info("Starting the log cleaner")
        for loop in self._loops:
            loop.start()

    def stop(self) -> None:
        """End all cleaning; what was not finished is given up."""
        logger.info("Shutting down the log cleaner.")
        for loop in self._loops:
            loop.stopping.set()
        for loop in self._loops:
            loop.stop()

    def _work(self, number: int) -> None:
        found = self._cleaner.grab_filthiest_log(self._reach_of)
        if found is None:
            self._loops[number].stopping.wait(self._backoff)
        else:
            self._clean(number, found)

    def _clean(self, number: int, found: LogToClean) -> None:
        stopping = self._loops[number].stopping
        steps = self._cleaner.clean(found, number)
        try:
            wish = next(steps)
            while not stopping.is_set():
                try:
                    self._grant(number, wish)
                except (OSError, KafkaError) as error:
                    wish = steps.throw(error)
                else:
                    wish = next(steps)
        except StopIteration as end:
            if end.value is not None:
                self._disk_failed([end.value])
        finally:
            # not left to the garbage collector
            steps.close()

    def _grant(self, number: int, wish: Wish) -> None:
        if callable(wish):
            self._runtime.blocking(wish)
        else:
            self._loops[number].stopping.wait(wish)
