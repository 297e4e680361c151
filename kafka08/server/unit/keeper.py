"""Keeps one broker of a unit running: starts its process again when that has died."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable

from kafka08.runtime import Runtime, TaskHandle
from kafka08.server.unit.launcher import MemberProcess
from kafka08.settings.unit import UnitMember

logger = logging.getLogger("kafka.server.BrokerUnit")

_FIRST_DELAY_S = 1.0
_LONGEST_DELAY_S = 30.0


class Keeper:
    """``launch`` starts the process; it raises OSError. ``decided``: called once, with whether the
    first start was a success. A failed first start is not repeated; a broker that dies later is
    started again after 1 s, after a further death within 30 s after twice as long as before, up to
    30 s."""

    def __init__(
        self,
        runtime: Runtime,
        member: UnitMember,
        launch: Callable[[UnitMember], MemberProcess],
        decided: Callable[[bool], object],
    ) -> None:
        self.member = member
        self.broker_id = member.config.broker_id
        self._runtime = runtime
        self._launch = launch
        self._decided = decided
        self._stopping = runtime.event()
        self._process: MemberProcess | None = None
        self._has_started = False
        self._delay = _FIRST_DELAY_S
        self._task: TaskHandle | None = None
        self.ended = ""

    @property
    def is_running(self) -> bool:
        """Whether there is a process, which may still be starting. If not, ``ended`` says how the
        last one ended."""
        return self._process is not None

    def start(self) -> None:
        self._task = self._runtime.spawn(f"broker-{self.broker_id}", self._keep)

    def stop(self) -> None:
        """Ask the broker to stop; ``join`` waits for that."""
        self._stopping.set()
        if self._process is not None:
            self._process.terminate()

    def join(self) -> None:
        if self._task is not None:
            self._task.join()

    def _keep(self) -> None:
        while not self._stopping.is_set():
            began = self._runtime.clock.monotonic()
            self.ended = self._run()
            if self._stopping.is_set():
                return
            if not self._has_started:
                logger.critical("Broker %d did not start: it %s", self.broker_id, self.ended)
                self._decided(False)
                return
            if self._runtime.clock.monotonic() - began > _LONGEST_DELAY_S:
                self._delay = _FIRST_DELAY_S
            logger.error(
                "Broker %d %s. It is started again in %d s",
                self.broker_id,
                self.ended,
                self._delay,
            )
            self._stopping.wait(self._delay)
            self._delay = min(2 * self._delay, _LONGEST_DELAY_S)

    def _run(self) -> str:
        """Run one process; returns how it ended."""
        try:
            process = self._launch(self.member)
        except OSError as error:
            return f"could not be run: {error.strerror}"
        self._process = process
        logger.info("Broker %d runs in process %d", self.broker_id, process.pid)
        if self._runtime.blocking(process.wait_for_start) and not self._has_started:
            self._has_started = True
            self._decided(True)
        status = self._runtime.blocking(process.wait)
        self._process = None
        return _how(status)


def _how(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"was ended by signal {-status}"
