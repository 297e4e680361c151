"""Runs one task on a thread: start it, step it until it is stopped or fails, end it.

Subclasses define a step. A task that fails ends, and its error is kept. Before a task waits for
topics, ``await_topics`` checks that they exist.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka08.client.cluster import ClusterClient
from kafka08.client.retry import Retry
from kafka08.connect.interface import ConnectError, Context, JobTask, Task
from kafka08.errors import KafkaError
from kafka08.runtime import Event, Runtime, TaskHandle

logger = logging.getLogger("org.apache.kafka.connect.runtime.WorkerTask")


WAIT_S = 10.0
PAUSE_S = 0.2


@dataclass
class Runner:
    """``_ended`` is set each time a runner ends, with or without an error."""

    _task: Task
    _properties: Mapping[str, str]
    _context: Context
    _runtime: Runtime
    _ended: Event
    _thread: TaskHandle | None = None
    error: Exception | None = None
    done: bool = False

    @property
    def id(self) -> str:
        return self._context.name

    def start(self) -> Runner:
        self._thread = self._runtime.spawn(f"task-thread-{self.id}", self.run)
        return self

    def ask_stop(self) -> None:
        self._context.stopping.set()

    def join(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds; whether it has ended."""
        return self._thread is None or self._thread.join(timeout)

    def run(self) -> None:
        self._task.context = self._context
        try:
            self._task.start(self._properties)
            self.begin()
            while not self._context.stopping.is_set():
                self.step()
        except Exception as error:
            self._failed(error)
        finally:
            self._close()
            self.done = True
            self._ended.set()

    def _close(self) -> None:
        for close in (self.finish, self._task.stop):
            try:
                close()
            except Exception as error:
                self._failed(error)

    def _failed(self, error: Exception) -> None:
        logger.error(
            "Task %s threw an uncaught and unrecoverable exception: %s",
            self.id,
            error,
            exc_info=error,
        )
        self.error = self.error or error

    # --- for subclasses

    def _now(self) -> float:
        return self._runtime.clock.monotonic()

    def begin(self) -> None:
        """Called after the task was started."""

    def step(self) -> None:
        """Work for a second at most, or wait on ``stopping``."""
        raise NotImplementedError

    def finish(self) -> None:
        """Called before the task is stopped; ``error`` is set if it failed."""


class JobRunner(Runner):
    """Runs a JobTask repeatedly."""

    _task: JobTask

    def step(self) -> None:
        self._task.run()


def await_topics(
    cluster: ClusterClient, topics: Iterable[str], option: str, stopping: Event, runtime: Runtime
) -> None:
    """Request the topics' metadata, by which brokers may create them, until they exist.

    Raises ConnectError, which names option and value.
    """
    names = list(topics)

    def ask() -> None:
        cluster.refresh(names)
        for name in names:
            cluster.partitions(name)

    try:
        Retry(runtime, PAUSE_S, patience=WAIT_S, stopping=stopping).run(ask)
    except (OSError, KafkaError) as error:
        if not stopping.is_set():
            raise ConnectError(
                f"{option} has value {','.join(names)}, but some topics cannot be used: {error}"
            ) from error
