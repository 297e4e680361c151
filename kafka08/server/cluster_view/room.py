"""The cluster as this broker knows it: topics and their settings, the other brokers and how they
are reached."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from kafka08 import admin
from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import TopicPartition
from kafka08.log.log import Log
from kafka08.runtime import Runtime, SocketConnector
from kafka08.server.apis.admin import (
    AlterConfigsApi,
    CreatePartitionsApi,
    CreateTopicsApi,
    DeleteTopicsApi,
    DescribeConfigsApi,
    IncrementalAlterConfigsApi,
)
from kafka08.server.apis.elections import ElectLeadersApi
from kafka08.server.apis.metadata import MetadataApi
from kafka08.server.cluster_view.originals import Originals
from kafka08.server.cluster_view.registrations import Reachable, Registrations, connectors
from kafka08.server.cluster_view.topic_configs import TopicConfigs
from kafka08.server.cluster_view.topic_creator import TopicCreator
from kafka08.server.part import Room
from kafka08.server.quotas.throttle import MutationQuota
from kafka08.server.requests.dispatch import Handler
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.topic import LogConfig
from zk.client import ZkClient
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.server.KafkaServer")


class ClusterView(Room):
    """``cache`` is filled by the controller. ``logs``: those that changed settings are applied to.
    ``tell_later``: as for ``Originals``. ``connector`` connects to the listener of other brokers.
    """

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        zk: ZkClient,
        cache: MetadataCache,
        logs: Mapping[TopicPartition, Log],
        tell_later: Callable[[frozenset[int]], None],
        connector: SocketConnector,
        mutations: MutationQuota,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._zk = zk
        self._mutations = mutations
        listeners = config.resolved_listeners()
        self.cache = cache
        self.topic_configs = TopicConfigs(config, zk, logs)
        self.originals = Originals(zk, config.broker_id, tell_later)
        self.creator = TopicCreator(zk, config, self.originals)
        self.registrations = Registrations(
            runtime, zk, self.originals.registered if config.api_versions_enable else None
        )
        self.is_followed = config.api_versions_enable or not listeners.is_plain
        self.connectors = connectors(connector, self.registrations, listeners)
        self.reachable = Reachable(cache, None if listeners.is_plain else self.registrations)

    def handlers(self) -> list[Handler]:
        config, runtime, zk, cache = self._config, self._runtime, self._zk, self.cache
        broker_id, mutations = config.broker_id, self._mutations
        rack_of = self.registrations.rack_of
        return [
            MetadataApi(runtime, cache, self.creator, self.originals, self.reachable, rack_of),
            CreateTopicsApi(zk, config, cache, runtime, mutations),
            DeleteTopicsApi(zk, config, cache, runtime, mutations),
            CreatePartitionsApi(zk, config, cache, runtime, mutations),
            DescribeConfigsApi(zk, config),
            AlterConfigsApi(zk, broker_id),
            IncrementalAlterConfigsApi(zk, broker_id),
            ElectLeadersApi(zk, cache, runtime),
        ]

    def log_config(self, topic: str) -> LogConfig:
        """The settings of a topic's logs. May wait."""
        return self.topic_configs.log_config(topic)

    def leader_and_isr(self, key: TopicPartition) -> tuple[int, tuple[int, ...]] | None:
        """Of a partition, as ZooKeeper has them."""
        try:
            state = admin.fetch_partition_state(self._zk, *key)
        except MalformedNodeError:
            return None
        return None if state is None else (state.leader, state.isr)

    def leader(self, key: TopicPartition) -> tuple[int, int] | None:
        """Leader and leader epoch of a partition, as ZooKeeper has them."""
        try:
            state = admin.fetch_partition_state(self._zk, *key)
        except MalformedNodeError as error:
            logger.error("%s", error)
            return None
        return None if state is None else (state.leader, state.leader_epoch)
