"""A compaction in a process of its own, and the pipe it tells its events through."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from kafka08.log.compaction import Job, encode_job, parse_events

_ROOT = str(Path(__file__).resolve().parents[2])
# Killed, a process is gone within milliseconds, unless a disk holds it in the kernel.
_KILL_SECONDS = 1.0


class CleanerProcess:
    """``python -m kafka08.log.compaction`` at work on ``job``. Nothing here waits, but ``kill``
    for the end of the process. Raises OSError when it cannot be started."""

    def __init__(self, job: Job) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kafka08.log.compaction"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[job.throttle_fd] if job.throttle_fd >= 0 else [],
            cwd=_ROOT,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        self._pending = b""
        self._unsent = memoryview(encode_job(job))
        os.set_blocking(self._input.fileno(), False)
        self._send()

    def _send(self) -> None:
        """Write what the pipe takes of the job, which may list many segments. The pipe stays
        open: its end tells the child that this process is gone."""
        try:
            while self._unsent:
                sent = os.write(self._input.fileno(), self._unsent)
                self._unsent = self._unsent[sent:]
        except (BlockingIOError, BrokenPipeError):
            return

    def poll(self) -> list[dict[str, Any]]:
        """The events since the last call."""
        self._send()
        try:
            while data := os.read(self._output.fileno(), 65536):
                self._pending += data
        except BlockingIOError:
            pass
        *lines, self._pending = self._pending.split(b"\n")
        return list(parse_events(lines))

    @property
    def exit_status(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        """End the process, if it has not; release the pipes."""
        self._process.kill()
        try:
            self._process.wait(_KILL_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # it can do no more than finish the one call that holds it
        if not self._output.closed:
            self._output.close()
            self._input.close()
