"""The rooms of a broker, built in the order of their needs, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import Broker
from kafka08.controller.controller import Controller
from kafka08.log.manager import LogManager
from kafka08.metrics.registry import Registry
from kafka08.protocol.registry import APIS, ORIGINAL_APIS, Apis, served_by
from kafka08.runtime import Runtime, Scheduler
from kafka08.server.access.room import AccessControl
from kafka08.server.apis.versions import ApiVersionsApi, LoginVersions
from kafka08.server.cluster_view.config_changes import ConfigChanges
from kafka08.server.cluster_view.originals import Originals
from kafka08.server.cluster_view.room import ClusterView
from kafka08.server.groups.room import ConsumerGroups
from kafka08.server.monitoring import broker_metrics
from kafka08.server.monitoring.monitoring import Monitoring
from kafka08.server.part import Room
from kafka08.server.quotas.quotas import Quotas
from kafka08.server.replication.roles import Keepers
from kafka08.server.replication.room import Replication, fetchers_of
from kafka08.server.requests.dispatch import Dispatcher, Handler, last_versions
from kafka08.server.requests.effects import Effects
from kafka08.server.requests.listeners import Listening
from kafka08.server.storage.room import Storage
from kafka08.server.transactions.room import Transactions
from kafka08.settings.broker import BrokerConfig
from zk import entities
from zk.client import ZkClient
from zk.endpoints import plain_address
from zk.locations import Location


class Rooms:
    """The rooms of a broker whose logs are loaded. They are built in the order of their needs."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        zk: ZkClient,
        logs: LogManager,
        listening: Listening,
        monitoring: Monitoring,
    ) -> None:
        self.listening = listening
        self.quotas = quotas = Quotas(config, runtime.clock, zk, listening.limits)
        cache = MetadataCache(runtime.event())
        self.storage = storage = Storage(
            config, runtime, logs, Effects(runtime), cache, quotas.replication.leader
        )
        self.view = view = ClusterView(
            config,
            runtime,
            zk,
            cache,
            logs.logs,
            storage.replicas.follow_later,
            listening.connector,
            quotas.mutations,
        )
        self.groups = ConsumerGroups(config, runtime, zk, storage.replicas, view)
        self.transactions = Transactions(config, runtime, zk, storage, view, self.groups)
        keepers = Keepers(self.groups.offsets, self.transactions.coordinator.store)
        self.server = listening.bind()
        self.access = AccessControl(config, runtime, zk, listening.logins, self.server.end_sessions)
        self.endpoints = listening.listeners.announced(self.server.ports)
        self.location = Location(config.broker_rack, config.broker_unit)
        self.me = Broker(config.broker_id, *plain_address(self.endpoints))
        self.controller = Controller(
            config, zk, runtime, broker=self.me, connectors=view.connectors
        )
        self.fetchers = fetchers_of(config, runtime, storage, view, quotas.replication.follower)
        self.replication = Replication(
            config, runtime, zk, storage, view, self.fetchers, keepers, self.controller
        )
        members = self.groups, self.transactions
        rooms = storage, view, self.replication, *members, self.access, listening
        self.all = *rooms, monitoring.spoken
        heard = monitoring.heard(handlers_of(config, rooms, view.originals))
        handlers, is_timed = self.access.guard(heard, cache), monitoring.is_read
        self.dispatcher = Dispatcher(runtime, handlers, apis_of(config), quotas.throttle, is_timed)
        versions = LoginVersions(self.dispatcher.served, view.originals, config.api_versions_enable)
        self.logins = listening.logins_by_listener(self.access.credentials, versions.now)
        self.config_changes = ConfigChanges(
            runtime,
            zk,
            [
                (entities.TOPICS, view.topic_configs.changed),
                *quotas.watched(),
                *self.access.watched(),
            ],
        )

    def run(self, registry: Registry, scheduler: Scheduler) -> None:
        """Add the metrics, and start the timers."""
        for room in self.all:
            room.add_metrics(registry)
        broker_metrics.add_requests(registry, self.server, self.dispatcher.metrics)
        broker_metrics.add_controller(registry, self.controller)
        for room in self.all:
            room.schedule(scheduler)

    def session_expired(self, register: Callable[[], None]) -> list[Callable[[], None]]:
        """The acts that a new session needs, in this order."""
        replication, replicas = self.replication, self.storage.replicas
        return [
            self.controller.session_expired,
            replication.log_dirs.publish,
            replication.retries.clear,
            register,
            lambda: replication.roles.confirm_leaderships(self.view.leader),
            lambda: replicas.fence(False),
            self.config_changes.session_expired,
            self.quotas.load,
            self.access.load,
            self.view.registrations.session_expired,
        ]


def apis_of(config: BrokerConfig) -> Apis:
    return APIS if config.api_versions_enable else ORIGINAL_APIS


def handlers_of(config: BrokerConfig, rooms: Iterable[Room], originals: Originals) -> list[Handler]:
    """The handlers of ``apis_of``; with api.versions.enable also that of ApiVersions."""
    apis = apis_of(config)
    handlers = [each for room in rooms for each in room.handlers() if each.key in apis]
    if config.api_versions_enable:
        handlers.append(ApiVersionsApi(served_by(apis, last_versions(handlers)), originals))
    return handlers
