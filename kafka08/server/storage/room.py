"""The logs and partitions on this broker: what appends to them and reads them, and keeps them in
order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import TopicPartition
from kafka08.log.cleaning.reach import Reach
from kafka08.log.manager import LogManager
from kafka08.runtime import Runtime, Scheduler
from kafka08.server import optional
from kafka08.server.apis.delete_records import DeleteRecordsApi
from kafka08.server.apis.fetch import FetchApi
from kafka08.server.apis.leader_epochs import OffsetForLeaderEpochApi
from kafka08.server.apis.log_dirs import DescribeLogDirsApi
from kafka08.server.apis.offsets import OffsetsApi
from kafka08.server.apis.produce import ProduceApi
from kafka08.server.part import Part, Room
from kafka08.server.quotas.replication import ReplicationQuota
from kafka08.server.rebuild.tasks import RebuildTasks
from kafka08.server.rebuild.view import ConsumerView
from kafka08.server.requests.dispatch import Handler
from kafka08.server.requests.effects import Effects
from kafka08.server.storage.log_dir_failures import LogDirFailures
from kafka08.server.storage.log_maintenance import LogMaintenance
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.server.storage.writes import TransactionGate
from kafka08.settings.broker import BrokerConfig

_COUNTS_MS = 5_000


class Storage(Room):
    """``quota``: of what followers fetch here. ``halt`` ends the process."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        logs: LogManager,
        effects: Effects,
        cache: MetadataCache,
        quota: ReplicationQuota,
        halt: Callable[[str], None] | None = None,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._cache = cache
        self._quota = quota
        self.logs = logs
        self.effects = effects
        self.failures = LogDirFailures(runtime, logs, halt)
        self.replicas = ReplicaManager(config, runtime, logs, self.failures, effects)
        self.view = ConsumerView(runtime)
        self.gate = TransactionGate()
        self._maintenance = LogMaintenance(
            config, runtime, logs, effects, self.replicas.disk_failed
        )

    def handlers(self) -> list[Handler]:
        runtime, replicas, view = self._runtime, self.replicas, self.view
        return [
            ProduceApi(runtime, replicas, view, self.gate),
            FetchApi(runtime, replicas, view, self._quota),
            OffsetsApi(runtime, replicas, view.long_work),
            DeleteRecordsApi(runtime, replicas, self._cache),
            OffsetForLeaderEpochApi(runtime, replicas),
            DescribeLogDirsApi(self.logs),
        ]

    def reach(self, key: TopicPartition) -> Reach:
        """How far a log may be cleaned. A follower knows the isr that the controller announced."""
        partition = self.replicas.partitions.get(key)
        if partition is None:
            return Reach(0, is_everywhere=False)
        replicas = self._cache.replicas_of(*key)
        isr = partition.isr if partition.is_leader else self._cache.isr_of(*key)
        is_everywhere = bool(replicas) and set(replicas) <= set(isr)
        return Reach(partition.last_stable_offset, is_everywhere)

    def schedule(self, scheduler: Scheduler) -> None:
        replicas = self.replicas
        scheduler.every("counts", _COUNTS_MS, lambda: replicas.counts.keep(replicas.partitions))

    def tasks(self, scheduler: Scheduler) -> Iterator[Part]:
        """The tasks that keep logs in order: retention, flushes, the cleaner, rebuilding."""
        config, runtime, replicas = self._config, self._runtime, self.replicas
        maintenance = self._maintenance
        yield Part("log tasks", partial(maintenance.start, scheduler), maintenance.stop)
        cleaning = optional.cleaner_tasks(
            config, runtime, self.logs.cleaner, self.reach, replicas.disk_failed
        )
        if cleaning is not None:
            yield Part("the log cleaner", cleaning.start, cleaning.stop)
        rebuilding = RebuildTasks(
            runtime, self.logs.logs, replicas.led_until, config.log_rebuilt_sets_bytes
        )
        yield Part("rebuilding", rebuilding.start, rebuilding.stop)
