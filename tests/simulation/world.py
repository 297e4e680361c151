"""A simulated cluster and all that is around it.

While a ``SimulatedWorld`` is in use, what production code takes from Python's own sources of chance
and threads comes from the seed: ``random``, ``os.urandom``, the threads that load logs.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from unittest import mock

from kafka08.cluster.partition import Partition
from kafka08.common import TopicPartition
from kafka08.log import manager as manager_module
from kafka08.log.cleaning import cleaner as cleaner_module
from kafka08.log.cleaning.cleaner import LogCleaner
from kafka08.log.segments import residency
from kafka08.log.segments.file_slice import FileSlice
from kafka08.protocol.schemas import PartitionStateInfo
from tests.log.storage_model import InlineExecutor
from tests.simulation.broker import SimulatedBroker, Surroundings
from tests.simulation.compacting import SteppedCompaction
from tests.simulation.disk import BrokerDisk
from tests.simulation.durability import Durability
from tests.simulation.kinds import KINDS, TODAY, are_of_today
from tests.simulation.network import SimulatedNetwork
from tests.simulation.rolling import RollingRestart
from tests.simulation.runtime import SimulatedClock, SimulatedRuntime
from tests.simulation.scheduler import Scheduler, Trace
from tests.simulation.sessions import SimulatedSessions
from zk import znodes

SETTINGS = {
    "controlled.shutdown.retry.backoff.ms": "100",
    "delete.topic.enable": "true",
    "group.initial.rebalance.delay.ms": "200",
    "group.min.session.timeout.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "1100000",
    "log.index.size.max.bytes": "1024",
    "log.rebuilt.sets.bytes": "0",  # rebuilds in processes of its own
    "log.retention.check.interval.ms": "5000",
    "log.segment.bytes": "2000",
    "log.segment.delete.delay.ms": "5000",
    "offsets.topic.num.partitions": "2",
    "replica.lag.time.max.ms": "2000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.state.log.num.partitions": "2",
    "unclean.leader.election.enable": "false",
}

_RESIDENT = 0.95


class SimulatedWorld:
    """Brokers 1 to ``count``, not started; of today, unless there are ``kinds`` for them.
    ``settings``: of all brokers besides SETTINGS. ``committed``: the highest high watermark of any
    leader. Use as a context manager."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        *,
        count: int,
        kinds: Sequence[str] = (),
        settings: Mapping[str, str] = MappingProxyType({}),
        trace: Trace | None = None,
    ) -> None:
        self.scheduler = Scheduler(seed, trace)
        self.network = SimulatedNetwork(self.scheduler)
        self.sessions = SimulatedSessions(self.scheduler)
        self.brokers: dict[int, SimulatedBroker] = {}
        self.committed: dict[TopicPartition, int] = {}
        is_synced = settings.get("log.flush.interval.messages") == "1"
        self.durability = Durability(self.sessions, self.brokers, is_synced=is_synced)
        self.rolling = RollingRestart(self.scheduler)
        self.directory = directory.resolve()
        self._settings = settings
        self._kinds = tuple(kinds) or (TODAY,) * count
        self._clients: list[SimulatedRuntime] = []
        self._undo = ExitStack()

    def __enter__(self) -> SimulatedWorld:
        seed = self.scheduler.seed
        self._undo.callback(random.setstate, random.getstate())
        random.seed(seed)
        self._undo.enter_context(mock.patch.object(os, "urandom", random.Random(seed).randbytes))
        pool = mock.patch.object(manager_module, "ThreadPoolExecutor", InlineExecutor)
        self._undo.enter_context(pool)
        self._undo.enter_context(mock.patch.object(Partition, "make_leader", self._leading()))
        cleaner = partial(LogCleaner, start=partial(SteppedCompaction, self.scheduler.rng))
        self._undo.enter_context(mock.patch.object(cleaner_module, "LogCleaner", cleaner))
        # The page cache of this machine would make a difference between two runs of a seed.
        cached = mock.patch.object(residency, "is_resident", self._is_resident)
        self._undo.enter_context(cached)
        for number, kind in enumerate(self._kinds, 1):
            self.brokers[number] = self._broker(number, kind)
        return self

    def _is_resident(self, part: FileSlice) -> bool:
        """Whether stored bytes are in memory: most are, unless their disk is slow."""
        task = self.scheduler.current
        reader = (
            []
            if task is None
            else [each for each in self.brokers.values() if each.host == task.process.name]
        )
        is_cached = self.scheduler.rng.random() < _RESIDENT
        return is_cached and all(each.disk.is_resident() for each in reader)

    def _leading(self) -> Callable[[Partition, PartitionStateInfo, float], bool]:
        """Partition.make_leader, of which ``durability`` is told."""
        make_leader = Partition.make_leader

        def told(partition: Partition, state: PartitionStateInfo, now: float) -> bool:
            moved = make_leader(partition, state, now)
            self.durability.leads(partition)
            return moved

        return told

    def _broker(self, number: int, kind: str) -> SimulatedBroker:
        clock = SimulatedClock(self.scheduler)
        root = self.directory / f"disk{number}"
        root.mkdir()
        disk = BrokerDisk(str(root), clock.millis, random.Random(self.scheduler.rng.random()))
        self._undo.enter_context(disk)
        disk.make_directories()
        surroundings = Surroundings(self.scheduler, self.network, self.sessions)
        enough = str(min(2, len(self._kinds)))
        settings = {**SETTINGS, "min.insync.replicas": enough, **KINDS[kind], **self._settings}
        self.scheduler.note(f"is {kind}", f"broker{number}")
        return SimulatedBroker(surroundings, number, disk, clock, settings, self.durability)

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
            for client in self._clients:
                client.kill()
            self.scheduler.end()
            gc.collect()  # descriptors close with their objects, while the disks know them
        finally:
            self._undo.close()

    @property
    def is_of_today(self) -> bool:
        """Whether all brokers serve clients of today."""
        return are_of_today(self._kinds)

    @property
    def staying(self) -> list[SimulatedBroker]:
        """The brokers that have not left for good."""
        return [each for each in self.brokers.values() if not each.is_gone]

    @property
    def controller(self) -> SimulatedBroker | None:
        """The broker that is the controller, by ZooKeeper."""
        data = self.sessions.data(znodes.CONTROLLER)
        if data is None:
            return None
        return self.brokers[znodes.decode_controller(znodes.CONTROLLER, data).broker_id]

    @property
    def client_hosts(self) -> list[str]:
        return [each.name for each in self._clients]

    def client(self, name: str) -> SimulatedRuntime:
        """A process on a host of its own."""
        runtime = SimulatedRuntime(self.scheduler, self.network, name)
        self._clients.append(runtime)
        return runtime

    def start(self, seconds: float = 60) -> None:
        """Start all brokers and wait for them."""
        for broker in self.brokers.values():
            broker.start()
        brokers = self.brokers.values()
        self.scheduler.run(lambda: all(each.has_started for each in brokers), seconds=seconds)
