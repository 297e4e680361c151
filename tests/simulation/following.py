"""A run for a person to read: its events and what brokers log, or that of one partition."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from kafka08.common import TopicPartition
from tests.simulation.scheduler import SECOND, Scheduler

# These lines may be the reason for anything.
_ALWAYS = r" (fault|load|network|zookeeper): | is killed$| has (started|stopped)$"


class Follower(logging.Handler):
    """``tell`` is for Trace. ``write`` gets the lines that are about ``partition``, all without
    one. As a handler it adds what is logged, with the time and the task of ``scheduler``."""

    def __init__(
        self,
        partition: TopicPartition | None = None,
        write: Callable[[str], object] = print,
    ) -> None:
        super().__init__()
        self.scheduler: Scheduler | None = None
        self._write = write
        self._about = re.compile("" if partition is None else _pattern(partition))

    def tell(self, line: str) -> None:
        if self._about.search(line):
            self._write(line)

    def emit(self, record: logging.LogRecord) -> None:
        now, who = 0, "world"
        if self.scheduler is not None:
            now, who = self.scheduler.now, str(self.scheduler.current or "world")
        text = record.getMessage()
        self.tell(f"{now / SECOND:12.6f} {who}: {record.levelname} {text}")


def _pattern(partition: TopicPartition) -> str:
    """The ways in which logs, files, nodes and clients name it."""
    topic, number = re.escape(partition.topic), partition.partition
    named = (
        rf"\[{topic},{number}\]",
        rf"\b{topic}-{number}\b",
        rf"/{topic}/partitions/{number}/",
        rf"\bpartition[ =]{number}\b",
    )
    return "|".join((_ALWAYS, *named))
