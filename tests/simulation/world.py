"""A simulated cluster and all that is around it.

While a ``World`` is in use, what production code takes from Python's own sources of chance and
threads comes from the seed: ``random``, ``os.urandom``, the threads that load logs.
"""

from __future__ import annotations

import gc
import os
import random
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from unittest import mock

from kafka08.log import manager as manager_module
from tests.log.storage_model import InlineExecutor
from tests.simulation.broker import Disk, SimulatedBroker
from tests.simulation.network import Network
from tests.simulation.runtime import SimulatedRuntime
from tests.simulation.scheduler import Scheduler, Trace
from tests.simulation.sessions import OrderedZooKeeper, SessionOf

SETTINGS = {
    "controlled.shutdown.enable": "true",
    "controlled.shutdown.retry.backoff.ms": "100",
    "log.cleaner.enable": "false",  # compacts in processes of its own
    "log.rebuilt.sets.bytes": "0",
    "log.index.size.max.bytes": "1024",
    "log.segment.bytes": "2000",
    "min.insync.replicas": "1",
    "offsets.topic.num.partitions": "2",
    "replica.lag.time.max.ms": "2000",
    "unclean.leader.election.enable": "false",
    "zookeeper.session.timeout.ms": "6000",
}


class World:
    """Brokers 1 to ``brokers``, not started. Use as a context manager."""

    def __init__(
        self, directory: Path, seed: int, *, brokers: int = 1, trace: Trace | None = None
    ) -> None:
        self.scheduler = Scheduler(seed, trace)
        self.network = Network(self.scheduler)
        self.zookeeper = OrderedZooKeeper()
        self._directory = directory
        self._numbers = brokers
        self._disks: list[Disk] = []
        self._undo = ExitStack()
        self.brokers: dict[int, SimulatedBroker] = {}
        self._processes: list[SimulatedRuntime] = []

    def __enter__(self) -> World:
        chance = random.Random(self.scheduler.seed)
        before = random.getstate()
        random.seed(self.scheduler.seed)
        self._undo.callback(random.setstate, before)
        self._undo.enter_context(mock.patch.object(os, "urandom", chance.randbytes))
        pool = mock.patch.object(manager_module, "ThreadPoolExecutor", InlineExecutor)
        self._undo.enter_context(pool)
        for number in range(1, self._numbers + 1):
            self.brokers[number] = SimulatedBroker(self, number, SETTINGS)
        return self

    def disk(self, broker: SimulatedBroker) -> Disk:
        """An empty one, in use."""
        root = self._directory / broker.host
        root.mkdir(parents=True)
        disk = Disk(str(root), broker.clock.millis, random.Random(self.scheduler.rng.random()))
        disk.broker = broker
        self._undo.enter_context(disk)
        return disk

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The end of all processes, without a goodbye."""
        try:
            for broker in self.brokers.values():
                broker.kill()
            for runtime in self._processes:
                runtime.kill()
            self.scheduler.end()
            gc.collect()  # descriptors close with their objects, while the disks are watched
        finally:
            self._undo.close()

    def client(self, name: str) -> SimulatedRuntime:
        """A process on a host of its own."""
        runtime = SimulatedRuntime(self.scheduler, self.network, name)
        self._processes.append(runtime)
        return runtime

    def session(self, runtime: SimulatedRuntime) -> SessionOf:
        return SessionOf(runtime, self.zookeeper)

    def start(self, seconds: float = 60) -> None:
        """Start all brokers and wait for them."""
        for broker in self.brokers.values():
            broker.start()
        brokers = list(self.brokers.values())
        self.scheduler.run(lambda: all(each.has_started for each in brokers), seconds=seconds)
