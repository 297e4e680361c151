"""The roles of this broker's replicas: who leads, who follows and copies, who is in the isr."""

from __future__ import annotations

from collections.abc import Iterator

from kafka08.controller.controller import Controller
from kafka08.metrics.registry import Registry
from kafka08.runtime import Runtime, Scheduler
from kafka08.server.apis.replicas import (
    ControlledShutdownApi,
    LeaderAndIsrApi,
    StopReplicaApi,
    UpdateMetadataApi,
)
from kafka08.server.cluster_view.room import ClusterView
from kafka08.server.monitoring import broker_metrics
from kafka08.server.part import Part, Room
from kafka08.server.quotas.replication import ReplicationQuota
from kafka08.server.replication.epochs import EpochCheck
from kafka08.server.replication.fetchers import Following, ReplicaFetcherManager
from kafka08.server.replication.hw_checkpoints import HwCheckpoints
from kafka08.server.replication.isr import IsrMaintenance
from kafka08.server.replication.partition_retries import PartitionRetries
from kafka08.server.replication.roles import LeadershipControl, Roles
from kafka08.server.requests.dispatch import Handler
from kafka08.server.storage.log_dirs import LogDirs
from kafka08.server.storage.room import Storage
from kafka08.settings.broker import BrokerConfig
from zk.client import ZkClient

_IDLE_FETCHER_CHECK_MS = 5_000
_REFUSED_RETRY_MS = 10_000


def fetchers_of(
    config: BrokerConfig,
    runtime: Runtime,
    storage: Storage,
    view: ClusterView,
    quota: ReplicationQuota,
) -> ReplicaFetcherManager:
    """``quota``: of what this broker fetches as a follower."""
    shared = Following(
        config,
        runtime,
        view.connectors,
        view.originals.serves_later,
        storage.logs,
        storage.effects,
        storage.replicas.disk_failed,
        quota,
    )
    return ReplicaFetcherManager(shared)


class Replication(Room):
    """``offsets`` hears of the leaderships that come and go."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        zk: ZkClient,
        storage: Storage,
        view: ClusterView,
        fetchers: ReplicaFetcherManager,
        offsets: LeadershipControl,
        controller: Controller,
    ) -> None:
        self._config = config
        self._fetchers = fetchers
        self._controller = controller
        self._replicas = replicas = storage.replicas
        logs, failures = storage.logs, storage.failures
        self.isr = IsrMaintenance(config, runtime, zk, replicas, storage.effects)
        self.checkpoints = HwCheckpoints(runtime, logs)
        self.roles = Roles(
            runtime.clock,
            replicas,
            view.cache,
            view.log_config,
            self.checkpoints,
            fetchers,
            offsets,
            failures,
        )
        self.retries = PartitionRetries(replicas, self.roles)
        self.log_dirs = LogDirs(runtime, zk, logs, replicas, failures, view.leader_and_isr)
        self._epochs = EpochCheck(zk, runtime, replicas, self.roles)

    def handlers(self) -> list[Handler]:
        return [
            LeaderAndIsrApi(self.roles, self.retries, self._epochs),
            StopReplicaApi(self.roles, self.retries, self._epochs),
            UpdateMetadataApi(self.roles, self._epochs),
            ControlledShutdownApi(self._controller),
        ]

    def add_metrics(self, registry: Registry) -> None:
        broker_metrics.add_replicas(registry, self._replicas, self.isr)
        broker_metrics.add_fetchers(registry, self._fetchers)

    def schedule(self, scheduler: Scheduler) -> None:
        config = self._config
        for name, period_ms, act in (
            (
                "highwatermark-checkpoint",
                config.replica_high_watermark_checkpoint_interval_ms,
                self.checkpoint_high_watermarks,
            ),
            ("isr-expiration", config.replica_lag_time_max_ms, self.isr.maybe_shrink_isr),
            ("idle-fetchers", _IDLE_FETCHER_CHECK_MS, self._fetchers.shutdown_idle_fetchers),
            ("refused-partitions", _REFUSED_RETRY_MS, self.retries.retry),
        ):
            scheduler.every(name, period_ms, act, delay_ms=period_ms)

    def checkpoint_high_watermarks(self) -> None:
        replicas = self._replicas
        replicas.disk_failed(self.checkpoints.checkpoint_high_watermarks(replicas.partitions))

    def tasks(self) -> Iterator[Part]:
        yield Part("fetchers", stop=self._fetchers.stop)
        yield Part("isr maintenance", self.isr.start, self.isr.stop)
