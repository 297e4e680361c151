"""Runs a module as a child process: a job on its standard input, events from its output.

``ChildProcess`` is the broker's side. The module calls ``received_job`` and ``print_event``.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# A killed process ends within milliseconds, unless it waits for a disk in the kernel.
_KILL_SECONDS = 1.0
_TRIES = 20
_PAUSE_SECONDS = 0.1


class ChildProcess:
    """Runs ``python -m module`` with ``job``, a line, as input, and these descriptors. Only
    ``kill`` waits, for the end of the process. Raises OSError if it cannot be started."""

    def __init__(self, module: str, job: bytes, descriptors: Sequence[int] = ()) -> None:
        import subprocess  # 0.4 MB, which many brokers never need

        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=descriptors,
            cwd=_ROOT,
            start_new_session=True,  # the broker handles Ctrl-C in the terminal
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        self._pending = b""
        self._unsent = memoryview(job)
        os.set_blocking(self._input.fileno(), False)
        self._send()

    def _send(self) -> None:
        """Write as much of the job as the pipe accepts; a job may list many segments. The pipe
        stays open: its end shows the child that this process has died."""
        try:
            while self._unsent:
                sent = os.write(self._input.fileno(), self._unsent)
                self._unsent = self._unsent[sent:]
        except (BlockingIOError, BrokenPipeError):
            return

    def lines(self) -> list[bytes]:
        """The lines of its output since the last call."""
        self._send()
        try:
            while data := os.read(self._output.fileno(), 65536):
                self._pending += data
        except BlockingIOError:
            pass
        *lines, self._pending = self._pending.split(b"\n")
        return lines

    @property
    def exit_status(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        """End the process if it is still running, and release the pipes."""
        from subprocess import TimeoutExpired

        self._process.kill()
        with suppress(TimeoutExpired):  # it can only finish the kernel call that it waits in
            self._process.wait(_KILL_SECONDS)
        if not self._output.closed:
            self._output.close()
            self._input.close()


def received_job(niceness: int) -> bytes:
    """In the child: the job, a line of standard input; from now on at this low priority.

    The process ends at once when standard input ends: then the broker has died, and its successor
    may soon write the same files.
    """
    job = sys.stdin.buffer.readline()
    if not job.endswith(b"\n"):
        _end()
    threading.Thread(target=_die_with_parent, daemon=True).start()
    os.nice(niceness)
    _lower_session(niceness)
    return job


def _lower_session(niceness: int) -> None:
    """Where Linux has autogroups (sched(7)), the session is one: without a priority of the group it
    would get as much time as the broker."""
    for _ in range(_TRIES):
        try:
            with open("/proc/self/autogroup", "w") as group:
                group.write(str(niceness))
        except BlockingIOError:  # users other than root may do this ten times a second in all
            time.sleep(_PAUSE_SECONDS)
        except OSError:
            return
        else:
            return


def print_event(event: Mapping[str, object]) -> None:
    """In the child: an event for the broker, as a line of JSON. The process ends if the broker has
    died: the thread that waits for that may be late."""
    try:
        print(json.dumps(event), flush=True)
    except BrokenPipeError:
        _end()


def _die_with_parent() -> None:
    # not through the buffer, whose lock the end of the process needs
    while os.read(sys.stdin.fileno(), 4096):
        pass
    _end()


def _end() -> NoReturn:
    """At once: what is left in buffers is for a broker that has died."""
    os._exit(1)
