"""Consumer groups and committed offsets: those that this broker coordinates, and those in
ZooKeeper."""

from __future__ import annotations

from kafka08.common import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kafka08.metrics.registry import Registry
from kafka08.runtime import Runtime, Scheduler
from kafka08.server.apis import coordinated_groups
from kafka08.server.apis.group_members import DescribeGroupsApi
from kafka08.server.apis.groups import (
    ConsumerMetadataApi,
    OffsetCommitApi,
    OffsetFetchApi,
    stubs,
)
from kafka08.server.cluster_view.pauses import Pauses
from kafka08.server.cluster_view.room import ClusterView
from kafka08.server.groups.coordinator import GroupCoordinator
from kafka08.server.groups.offset_manager import OffsetManager
from kafka08.server.groups.requests import GroupRequests
from kafka08.server.groups.zk_offsets import ZkOffsets
from kafka08.server.monitoring import broker_metrics
from kafka08.server.part import Room
from kafka08.server.requests.dispatch import Handler
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.settings.broker import BrokerConfig
from zk.client import ZkClient


class ConsumerGroups(Room):
    """``view`` also says whether brokers of 0.8.2.2 must be able to read what is stored."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        zk: ZkClient,
        replicas: ReplicaManager,
        view: ClusterView,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._zk = zk
        self._view = view
        self.coordinator = GroupCoordinator(config, runtime.clock)
        self.offsets = OffsetManager(config, runtime, replicas, self.coordinator)
        self.pauses = Pauses(
            runtime, zk, config.zookeeper_session_timeout_ms, lambda: replicas.fenced
        )
        self.members = GroupRequests(runtime, self.coordinator, self.offsets, view.originals)

    def handlers(self) -> list[Handler]:
        config, runtime, zk, view = self._config, self._runtime, self._zk, self._view
        zk_offsets = ZkOffsets(zk)
        topics = [(OFFSETS_TOPIC, config.offsets_topic_num_partitions)]
        if config.api_versions_enable:
            topics.append((TRANSACTIONS_TOPIC, config.transaction_state_log_num_partitions))
        return [
            OffsetCommitApi(runtime, view.cache, self.members, zk_offsets, config),
            OffsetFetchApi(runtime, view.cache, self.offsets, zk_offsets, self.pauses),
            ConsumerMetadataApi(view.cache, view.creator, topics, view.reachable),
            *(self._later() if config.api_versions_enable else self._original()),
        ]

    def _later(self) -> list[Handler]:
        return [
            *coordinated_groups.handlers(self.members, self._zk, self._view.cache),
            DescribeGroupsApi(self._runtime, self._zk, self.members),
        ]

    def _original(self) -> list[Handler]:
        return [*stubs(), DescribeGroupsApi(self._runtime, self._zk)]

    def add_metrics(self, registry: Registry) -> None:
        broker_metrics.add_offsets(registry, self.offsets)

    def schedule(self, scheduler: Scheduler) -> None:
        period_ms = self._config.offsets_retention_check_interval_ms
        scheduler.every("offsets-expiration", period_ms, self.offsets.expire)
