"""Runs the brokers of a unit as one: one start, one end, one page of health and of metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from kafka08.runtime import GeventRuntime, Queue, Runtime
from kafka08.server import optional
from kafka08.server.unit.keeper import Keeper
from kafka08.server.unit.launcher import MemberProcess, launched
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.unit import UnitMember

logger = logging.getLogger("kafka.server.BrokerUnit")

# Beside a thread for each broker, which waits for it: pages are asked for and compressed on these.
_MORE_THREADS = 8


class BrokerUnit:
    """The brokers of a server.properties. ``received``: the numbers of signals. ``launch`` starts
    the process of a broker; it raises OSError."""

    def __init__(
        self,
        runtime: Runtime,
        members: Sequence[UnitMember],
        launch: Callable[[UnitMember], MemberProcess],
        received: Queue[int],
    ) -> None:
        self._received = received
        self.keepers = [Keeper(runtime, each, launch, self._decided) for each in members]
        self._names = ", ".join(str(each.broker_id) for each in self.keepers)
        self._started = 0

    def _decided(self, has_started: bool) -> None:
        if not has_started:
            self._received.put(0)
            return
        self._started += 1
        if self._started == len(self.keepers):
            logger.info("The unit of brokers %s has started", self._names)

    def run(self) -> int:
        """Until a signal comes or the start of a broker fails; the exit status: 128 + the signal's
        number, or 1. All brokers have ended then."""
        for each in self.keepers:
            each.start()
        number = self._received.get()
        logger.info("Stopping the unit of brokers %s", self._names)
        for each in self.keepers:
            each.stop()
        for each in self.keepers:
            each.join()
        logger.info("The unit of brokers %s has stopped", self._names)
        return 128 + number if number else 1


def run(path: str, base: BrokerConfig, members: Sequence[UnitMember]) -> int:
    """Run the brokers of the file ``path``, whose settings are ``base``; the exit status."""
    runtime = GeventRuntime(len(members) + _MORE_THREADS)
    unit = BrokerUnit(runtime, members, partial(launched, path), runtime.signals())
    stops = list(optional.start_unit_pages(base, runtime, unit.keepers))
    status = unit.run()
    for stop in stops:
        stop()
    runtime.close()
    return status
