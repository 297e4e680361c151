"""Compactions of simulated brokers: what the cleaner has done by a child process, in steps.

Takes the place of kafka08.log.cleaning.cleaner_job.CleanerProcess. The work goes on from one poll
to the next, so that the broker does other things in between and may die with a compaction half
done.
"""

from __future__ import annotations

from random import Random

import greenlet

from kafka08.log.cleaning import compaction
from kafka08.log.cleaning.cleaner_job import CompactionEvent, Job
from kafka08.log.cleaning.throttler import Throttler

_ROOMS = (1, 3, 1_000)
"""So many keys fit into the map of a pass: with few of them a cleaning takes many passes."""
_KILLED = -9


class SteppedCompaction:
    """kafka08.log.cleaning.cleaner.Compaction. ``rng`` picks the room of its map."""

    def __init__(self, rng: Random, job: Job) -> None:
        self.exit_status: int | None = None
        self._job = job._replace(max_entries=rng.choice(_ROOMS))
        self._work = greenlet.greenlet(self._compact)

    def _compact(self) -> None:
        compaction.events(self._job, self._emit, Throttler(float("inf"), -1))

    def _emit(self, event: CompactionEvent) -> None:
        if "say" not in event:
            self._work.parent.switch(event)

    def poll(self) -> list[CompactionEvent]:
        """Works until the next event, or to its end."""
        if self.exit_status is not None:
            return []
        self._work.parent = greenlet.getcurrent()
        event: CompactionEvent = self._work.switch()
        if not self._work.dead:
            return [event]
        self.exit_status = 0
        return []

    def kill(self) -> None:
        if self.exit_status is None:
            self.exit_status = _KILLED
            self._work.throw()
