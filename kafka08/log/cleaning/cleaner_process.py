"""Runs a compaction in a child process and reads its events from a pipe."""

from __future__ import annotations

from typing import Any

from kafka08.log.child_process import ChildProcess
from kafka08.log.cleaning.cleaner_job import Job, encode_job, parse_events


class CleanerProcess(ChildProcess):
    """Runs ``python -m kafka08.log.cleaning.compaction`` on ``job``. Raises OSError if it cannot be
    started."""

    def __init__(self, job: Job) -> None:
        descriptors = [job.throttle_fd] if job.throttle_fd >= 0 else []
        super().__init__("kafka08.log.cleaning.compaction", encode_job(job), descriptors)

    def poll(self) -> list[dict[str, Any]]:
        """The events since the last call."""
        return list(parse_events(self.lines()))
