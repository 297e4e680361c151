"""Builds, starts and stops all parts of a broker (kafka.Kafka, kafka.server.KafkaServer).

The only module that knows all the others. Start and stop follow the original's order: the
registration in ZooKeeper, which makes clients and brokers find it, comes last and goes last.
"""

from __future__ import annotations

import logging
import resource
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from kafka08 import admin, properties
from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import Broker, Endpoint, TopicPartition
from kafka08.config import BrokerConfig, log_overrides
from kafka08.controller.controller import Controller
from kafka08.errors import ConfigError, KafkaError
from kafka08.log.manager import LogManager
from kafka08.message.compression import CodecMissingError, check_codecs
from kafka08.network.channel import Connectors
from kafka08.network.failures import Failures
from kafka08.network.hosts import canonical_host_name
from kafka08.protocol.registry import APIS, served_by
from kafka08.runtime import GeventRuntime, Runtime, Scheduler
from kafka08.secret_files import warn_of_passwords
from kafka08.server.apis import coordinated_groups, no_acls, scram_users
from kafka08.server.apis.admin import (
    AlterConfigsApi,
    CreatePartitionsApi,
    CreateTopicsApi,
    DeleteTopicsApi,
    DescribeConfigsApi,
    IncrementalAlterConfigsApi,
)
from kafka08.server.apis.delete_records import DeleteRecordsApi
from kafka08.server.apis.elections import ElectLeadersApi
from kafka08.server.apis.fetch import FetchApi
from kafka08.server.apis.group_members import DescribeGroupsApi
from kafka08.server.apis.groups import (
    ConsumerMetadataApi,
    HeartbeatStubApi,
    JoinGroupStubApi,
    OffsetCommitApi,
    OffsetFetchApi,
)
from kafka08.server.apis.leader_epochs import OffsetForLeaderEpochApi
from kafka08.server.apis.log_dirs import DescribeLogDirsApi
from kafka08.server.apis.metadata import MetadataApi
from kafka08.server.apis.offsets import OffsetsApi
from kafka08.server.apis.produce import ProduceApi
from kafka08.server.apis.producer_ids import InitProducerIdApi
from kafka08.server.apis.replicas import (
    ControlledShutdownApi,
    LeaderAndIsrApi,
    StopReplicaApi,
    UpdateMetadataApi,
)
from kafka08.server.apis.versions import ApiVersionsApi, LoginVersions
from kafka08.server.cluster_view import inter_broker
from kafka08.server.cluster_view.config_changes import ConfigChanges
from kafka08.server.cluster_view.controlled_shutdown import controlled_shutdown
from kafka08.server.cluster_view.healthcheck import KafkaHealthcheck
from kafka08.server.cluster_view.originals import FORMATS, Originals, warn_of_originals
from kafka08.server.cluster_view.producer_ids import ProducerIds
from kafka08.server.cluster_view.registrations import Reachable, Registrations
from kafka08.server.cluster_view.topic_configs import TopicConfigs
from kafka08.server.cluster_view.topic_creator import TopicCreator
from kafka08.server.groups.coordinator import GroupCoordinator
from kafka08.server.groups.offset_manager import OffsetManager
from kafka08.server.groups.requests import GroupRequests
from kafka08.server.groups.zk_offsets import ZkOffsets
from kafka08.server.monitoring import broker_metrics
from kafka08.server.monitoring.health import PENDING_SHUTDOWN, SHUTTING_DOWN, Health
from kafka08.server.monitoring.monitoring import Monitoring
from kafka08.server.optional import logins_of
from kafka08.server.quotas.quotas import Quotas
from kafka08.server.rebuild.tasks import RebuildTasks
from kafka08.server.rebuild.view import ConsumerView
from kafka08.server.replication.epochs import EpochCheck
from kafka08.server.replication.fetchers import FetcherManager
from kafka08.server.replication.hw_checkpoints import HwCheckpoints
from kafka08.server.replication.isr import IsrMaintenance
from kafka08.server.replication.partition_retries import PartitionRetries
from kafka08.server.replication.roles import Roles
from kafka08.server.requests.dispatch import Dispatcher, Handler, last_versions
from kafka08.server.requests.effects import Effects
from kafka08.server.requests.listeners import RELOAD_MS, Certificates, bind, connection_limits
from kafka08.server.storage.log_dir_failures import LogDirFailures
from kafka08.server.storage.log_dirs import LogDirs
from kafka08.server.storage.log_maintenance import LogMaintenance
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.zookeeper import access_of
from zk import entities
from zk.client import ZkClient
from zk.endpoints import plain_address
from zk.errors import SessionExpiredError, ZkConnectionError
from zk.registry import ensure_common_paths, register_broker
from zk.znodes import MalformedNodeError

if TYPE_CHECKING:
    from kafka08.server.access.authorization import Authorization

logger = logging.getLogger("kafka.server.KafkaServer")
startable_logger = logging.getLogger("kafka.server.KafkaServerStartable")

T = TypeVar("T")

_IDLE_FETCHER_CHECK_MS = 5_000
_REFUSED_RETRY_MS = 10_000
_COUNTS_MS = 5_000
_ZOOKEEPER_RETRY_SECONDS = 0.5

# Loaded only where the settings ask for them (ADR 54).
_AUTHORIZATION = "kafka08.server.access.authorization"
_CLEANER_TASKS = "kafka08.server.storage.cleaner_tasks"


class KafkaServer:
    """One broker. ``start`` raises KafkaError or OSError with nothing left running."""

    def __init__(self, config: BrokerConfig, runtime: Runtime) -> None:
        self.config = config
        self._runtime = runtime
        # The parts that have been started, each with the call that stops it; stopped in reverse.
        self._stops: list[tuple[str, Callable[[], Any]]] = []
        self._stopping = runtime.event()

    def _say(self, text: str) -> None:
        logger.info("[Kafka Server %d], %s", self.config.broker_id, text)

    def start(self) -> None:
        self._say("starting")
        try:
            self._start()
        except BaseException:
            self._stop_all()
            raise
        self._say("started")

    def _start(self) -> None:
        config, runtime = self.config, self._runtime
        monitoring = Monitoring(config, runtime)
        health, registry = monitoring.health, monitoring.registry
        monitoring.start()
        self._started("metrics", monitoring.stop)
        listeners = config.resolved_listeners().named(canonical_host_name)
        logins = logins_of(config)
        certificates = Certificates(config, listeners)
        zk = self._connect_zookeeper()
        log_manager = self._load_logs(zk, health)
        broker_metrics.add_logs(registry, log_manager)
        self._started("the logs", lambda: runtime.blocking(log_manager.close))

        scheduler = Scheduler(runtime)
        topic_configs = TopicConfigs(config, zk, log_manager.logs)
        limits = connection_limits(config, listeners, runtime.clock)
        quotas = Quotas(config, runtime.clock, zk, limits)
        watched = [(entities.TOPICS, topic_configs.changed), *quotas.watched()]
        creator = TopicCreator(zk, config)
        metadata_cache = MetadataCache(self._runtime.event())
        effects = Effects(runtime)

        failures = LogDirFailures(runtime, log_manager)
        replicas = ReplicaManager(config, runtime, log_manager, failures, effects)
        log_maintenance = LogMaintenance(
            config, runtime, log_manager, effects, replicas.disk_failed
        )
        isr = IsrMaintenance(config, runtime, zk, replicas, effects)
        originals = Originals(zk, config.broker_id, replicas.follow_modern)
        registrations = Registrations(
            runtime, zk, originals.registered if config.api_versions_enable else None
        )
        connectors = inter_broker.connectors(
            logins.connector(certificates.connector(runtime)), registrations, listeners
        )
        fetchers = FetcherManager(
            config,
            runtime,
            effects,
            log_manager,
            replicas.disk_failed,
            originals.serves_later,
            connectors,
            quotas.replication.follower,
        )
        groups = GroupCoordinator(config, runtime.clock)
        offsets = OffsetManager(config, runtime, replicas, groups)
        members = GroupRequests(runtime, groups, offsets, originals)
        checkpoints = HwCheckpoints(runtime, log_manager)
        roles = Roles(
            runtime.clock,
            replicas,
            metadata_cache,
            topic_configs.log_config,
            checkpoints,
            fetchers,
            offsets,
            failures,
        )
        retries = PartitionRetries(replicas, roles)
        log_dirs = LogDirs(
            runtime, zk, log_manager, replicas, failures, partial(_stored_leader_and_isr, zk)
        )

        def checkpoint_high_watermarks() -> None:
            replicas.disk_failed(checkpoints.checkpoint_high_watermarks(replicas.partitions))

        authorization: Authorization | None = None
        if config.authorizer_class_name:
            authorization = import_module(_AUTHORIZATION).Authorization(config, runtime, zk)
        failures_of_peers = Failures(runtime.clock)
        server = bind(config, listeners, certificates, failures_of_peers, limits)
        credentials = logins.credentials(zk, server.end_sessions)
        if credentials is not None:
            watched.append((entities.USERS, credentials.changed))
        config_changes = ConfigChanges(runtime, zk, watched)
        read_settings = [config_changes.session_expired, quotas.load]
        endpoints = listeners.announced(server.ports)
        me = Broker(config.broker_id, *plain_address(endpoints))
        controller = Controller(config, zk, runtime, broker=me, connectors=connectors)
        reachable = Reachable(metadata_cache, None if listeners.is_plain else registrations)
        dispatcher = self._dispatcher(
            zk,
            metadata_cache,
            log_manager,
            replicas,
            roles,
            retries,
            members,
            originals,
            creator,
            controller,
            authorization,
            reachable,
            quotas,
            monitoring.is_read,
        )

        self._started("the high watermarks", checkpoint_high_watermarks)
        log_maintenance.start(scheduler)
        self._started("log tasks", log_maintenance.stop)
        self._start_cleaner(log_manager, replicas)
        self._start_rebuilding(log_manager, replicas)
        self._started("fetchers", fetchers.stop)
        isr.start()
        self._started("isr maintenance", isr.stop)
        broker_metrics.add_replicas(registry, replicas, isr)
        broker_metrics.add_fetchers(registry, fetchers)
        broker_metrics.add_offsets(registry, offsets)
        broker_metrics.add_requests(registry, server, dispatcher.metrics)
        broker_metrics.add_controller(registry, controller)
        self._schedule(scheduler, checkpoint_high_watermarks, retries, isr, offsets, fetchers)
        scheduler.every("counts", _COUNTS_MS, lambda: replicas.counts.keep(replicas.partitions))
        if certificates.servers:
            scheduler.every("ssl-reload", RELOAD_MS, certificates.reload, delay_ms=RELOAD_MS)
        self._started("the scheduler", scheduler.stop)
        self._started("offset loading", offsets.stop)
        log_dirs.start()
        self._started("the watch over log dirs", log_dirs.stop)
        if authorization is not None:
            self._patiently(authorization.start)
            authorization.schedule(scheduler)
            self._started("the authorizer", authorization.stop)
        if credentials is not None:
            self._patiently(credentials.load)
            read_settings.append(credentials.load)
        self._patiently(quotas.load)
        versions = LoginVersions(dispatcher.served, originals, config.api_versions_enable)
        server.start(
            dispatcher.handle,
            logins.by_listener(runtime, credentials, versions.now, failures_of_peers),
        )
        self._started("the socket server", server.stop)
        self._started("waiting requests", replicas.close)
        members.start()
        self._started("the timers of groups", members.stop)
        # From here on watches and nodes depend on the session: its end must be noticed.
        healthcheck = self._healthcheck(
            zk,
            partial(self._register, zk, me, endpoints),
            replicas,
            roles,
            retries,
            controller,
            read_settings,
            log_dirs,
            registrations,
        )
        self._patiently(config_changes.start)
        self._started("the watch over settings", config_changes.stop)
        if config.api_versions_enable or not listeners.is_plain:
            self._patiently(registrations.start)
            self._started("the watch over brokers", registrations.stop)
        controller.start()
        self._started("the controller", controller.stop)
        healthcheck.start()
        self._started("the healthcheck", healthcheck.stop)
        self._started("waiting for ZooKeeper", self._stopping.set)
        self._patiently(partial(self._register, zk, me, endpoints))
        broker_metrics.add_checks(health, replicas, log_manager)
        health.runs(lambda: controller.context is not None)
        self._started("the state", lambda: health.enter(SHUTTING_DOWN))
        if config.controlled_shutdown_enable:
            self._started("leaderships", lambda: self._hand_over(zk, fetchers, connectors))
            self._started("the state", lambda: health.enter(PENDING_SHUTDOWN))

    def _started(self, name: str, stop: Callable[[], Any]) -> None:
        self._stops.append((name, stop))

    def _patiently(self, act: Callable[[], T]) -> T:
        """Call ``act()`` until ZooKeeper can be reached. The original waits without limit too."""
        while True:
            try:
                return act()
            except (ZkConnectionError, SessionExpiredError) as error:
                logger.warning("Waiting for ZooKeeper: %s", error)
                if self._stopping.wait(_ZOOKEEPER_RETRY_SECONDS):
                    raise

    def _connect_zookeeper(self) -> ZkClient:
        config = self.config
        self._say(f"Connecting to zookeeper on {config.zookeeper_connect}")
        access = access_of(config)
        zk = ZkClient(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms,
            gevent=True,
            access=access,
        ).start()
        self._started("zookeeper", zk.close)
        self._patiently(lambda: ensure_common_paths(zk))
        if access.set_acl:
            self._patiently(lambda: warn_of_originals(zk, config.broker_id))
        return zk

    def _load_logs(self, zk: ZkClient, health: Health) -> LogManager:
        log_manager = LogManager(
            self.config,
            clock=self._runtime.clock,
            topic_configs=self._patiently(lambda: admin.fetch_all_topic_configs(zk)),
        )
        health.loads(lambda: log_manager.is_recovering)
        self._runtime.blocking(log_manager.load)
        return log_manager

    def _start_cleaner(self, log_manager: LogManager, replicas: ReplicaManager) -> None:
        cleaner = log_manager.cleaner
        if cleaner is None:
            return
        tasks = import_module(_CLEANER_TASKS).CleanerTasks(
            self.config, self._runtime, cleaner, replicas.committed, replicas.disk_failed
        )
        tasks.start()
        self._started("the log cleaner", tasks.stop)

    def _start_rebuilding(self, log_manager: LogManager, replicas: ReplicaManager) -> None:
        tasks = RebuildTasks(
            self._runtime, log_manager.logs, replicas.led_until, self.config.log_rebuilt_sets_bytes
        )
        tasks.start()
        self._started("rebuilding", tasks.stop)

    def _dispatcher(
        self,
        zk: ZkClient,
        cache: MetadataCache,
        log_manager: LogManager,
        replicas: ReplicaManager,
        roles: Roles,
        retries: PartitionRetries,
        members: GroupRequests,
        originals: Originals,
        creator: TopicCreator,
        controller: Controller,
        authorization: Authorization | None,
        reachable: Reachable,
        quotas: Quotas,
        is_timed: bool,
    ) -> Dispatcher:
        config, zk_offsets = self.config, ZkOffsets(zk)
        view = ConsumerView(self._runtime)
        epochs = EpochCheck(zk, self._runtime, replicas, roles)
        handlers: list[Handler] = [
            ProduceApi(self._runtime, replicas, view),
            FetchApi(self._runtime, replicas, view, quotas.replication.leader),
            OffsetsApi(self._runtime, replicas, view.long_work),
            MetadataApi(self._runtime, cache, creator, originals, reachable),
            LeaderAndIsrApi(roles, retries, epochs),
            StopReplicaApi(roles, retries, epochs),
            UpdateMetadataApi(roles, epochs),
            ControlledShutdownApi(controller),
            OffsetCommitApi(self._runtime, cache, members, zk_offsets, config),
            OffsetFetchApi(self._runtime, cache, members.offsets, zk_offsets),
            ConsumerMetadataApi(cache, creator, config.offsets_topic_num_partitions, reachable),
            CreateTopicsApi(zk, config, cache, self._runtime, quotas.mutations),
            DeleteTopicsApi(zk, config, cache, self._runtime, quotas.mutations),
            DescribeConfigsApi(zk, config),
            AlterConfigsApi(zk, config.broker_id),
            CreatePartitionsApi(zk, config, cache, self._runtime, quotas.mutations),
        ]
        if not config.api_versions_enable:
            stubs: list[Handler] = [JoinGroupStubApi(), HeartbeatStubApi()]
            handlers += [*stubs, DescribeGroupsApi(self._runtime, zk)]
            if authorization is not None:
                handlers = authorization.guard(handlers, cache)
            return Dispatcher(self._runtime, handlers, throttle=quotas.throttle, is_timed=is_timed)
        handlers += coordinated_groups.handlers(members, zk, cache)
        handlers.append(DescribeGroupsApi(self._runtime, zk, members))
        handlers.append(IncrementalAlterConfigsApi(zk, config.broker_id))
        handlers.append(DeleteRecordsApi(self._runtime, replicas, cache))
        handlers.append(ElectLeadersApi(zk, cache, self._runtime))
        handlers.append(OffsetForLeaderEpochApi(self._runtime, replicas))
        handlers.append(DescribeLogDirsApi(log_manager))
        handlers.append(InitProducerIdApi(ProducerIds(self._runtime, zk, config.broker_id)))
        handlers += no_acls.handlers() if authorization is None else authorization.apis()
        handlers += scram_users.handlers(zk)
        handlers.append(ApiVersionsApi(served_by(APIS, last_versions(handlers)), originals))
        if authorization is not None:
            handlers = authorization.guard(handlers, cache)
        return Dispatcher(self._runtime, handlers, APIS, quotas.throttle, is_timed)

    def _schedule(
        self,
        scheduler: Scheduler,
        checkpoint_high_watermarks: Callable[[], None],
        retries: PartitionRetries,
        isr: IsrMaintenance,
        offsets: OffsetManager,
        fetchers: FetcherManager,
    ) -> None:
        config = self.config
        scheduler.every(
            "highwatermark-checkpoint",
            config.replica_high_watermark_checkpoint_interval_ms,
            checkpoint_high_watermarks,
            delay_ms=config.replica_high_watermark_checkpoint_interval_ms,
        )
        scheduler.every(
            "isr-expiration",
            config.replica_lag_time_max_ms,
            isr.maybe_shrink_isr,
            delay_ms=config.replica_lag_time_max_ms,
        )
        scheduler.every(
            "offsets-expiration", config.offsets_retention_check_interval_ms, offsets.expire
        )
        scheduler.every(
            "idle-fetchers",
            _IDLE_FETCHER_CHECK_MS,
            fetchers.shutdown_idle_fetchers,
            delay_ms=_IDLE_FETCHER_CHECK_MS,
        )
        scheduler.every(
            "refused-partitions",
            _REFUSED_RETRY_MS,
            retries.retry,
            delay_ms=_REFUSED_RETRY_MS,
        )

    def _register(self, zk: ZkClient, me: Broker, endpoints: tuple[Endpoint, ...]) -> None:
        register_broker(
            zk,
            me.id,
            me.host,
            me.port,
            clock=self._runtime.clock,
            wait=self._stopping.wait,
            formats=FORMATS if self.config.api_versions_enable else None,
            endpoints=endpoints,
        )

    def _healthcheck(
        self,
        zk: ZkClient,
        register: Callable[[], None],
        replicas: ReplicaManager,
        roles: Roles,
        retries: PartitionRetries,
        controller: Controller,
        read_settings: Iterable[Callable[[], None]],
        log_dirs: LogDirs,
        registrations: Registrations,
    ) -> KafkaHealthcheck:
        return KafkaHealthcheck(
            self._runtime,
            zk,
            self.config.zookeeper_session_timeout_ms,
            [
                controller.session_expired,
                log_dirs.publish,
                retries.clear,
                register,
                lambda: roles.confirm_leaderships(partial(_stored_leader, zk)),
                lambda: replicas.fence(False),
                *read_settings,
                registrations.session_expired,
            ],
            replicas.fence,
        )

    def shutdown(self) -> None:
        """Hand leaderships over, stop everything, leave the logs clean."""
        self._say("shutting down")
        self._stop_all()
        self._say("shut down completed")

    def _hand_over(self, zk: ZkClient, fetchers: FetcherManager, connectors: Connectors) -> None:
        fetchers.leave()
        controlled_shutdown(self.config, connectors, zk, self._runtime.sleep)

    def _stop_all(self) -> None:
        while self._stops:
            name, stop = self._stops.pop()
            try:
                stop()
            except KafkaError as error:
                logger.error("Stopping %s failed: %s", name, error)
            except Exception:
                logger.exception("Stopping %s failed", name)


def _stored_leader_and_isr(zk: ZkClient, key: TopicPartition) -> tuple[int, tuple[int, ...]] | None:
    try:
        found = admin.fetch_partition_state(zk, *key)
    except MalformedNodeError:
        return None
    return None if found is None else (found.leader, found.isr)


def _stored_leader(zk: ZkClient, key: TopicPartition) -> tuple[int, int] | None:
    """Leader and leader epoch as ZooKeeper has them."""
    try:
        found = admin.fetch_partition_state(zk, *key)
    except MalformedNodeError as error:
        logger.error("%s", error)
        return None
    return None if found is None else (found.leader, found.leader_epoch)


def main(argv: list[str]) -> int:
    """``kafka.Kafka server.properties``: serve until SIGTERM or SIGINT; the exit status.

    128 + the signal's number after a clean stop, as the JVM's; 1 when the start fails.
    """
    if len(argv) != 1:
        print(f"USAGE: java [options] {KafkaServer.__name__} server.properties")
        return 1
    try:
        check_codecs()
    except CodecMissingError as error:
        logger.critical("%s", error)
        return 1
    try:
        found = properties.load(argv[0])
        log_overrides(found, BrokerConfig.keys())
        warn_of_passwords(argv[0], found)
        config = BrokerConfig.from_properties(found)
    except (ConfigError, OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        logger.critical("%s: %s", argv[0], reason)
        return 1
    return _serve(config)


def _serve(config: BrokerConfig) -> int:
    _raise_file_limit()
    runtime = GeventRuntime(config.background_threads)
    stop = runtime.event()
    received = runtime.set_by_signals(stop)
    server = KafkaServer(config, runtime)
    try:
        server.start()
    except Exception as error:
        startable_logger.critical(
            "Fatal error during KafkaServerStartable startup. Prepare to shutdown: %s",
            error,
            exc_info=not isinstance(error, ConfigError),
        )
        return 1
    stop.wait()
    server.shutdown()
    runtime.close()
    sys.stdout.flush()
    return 128 + received[0]


def _raise_file_limit() -> None:
    """Raise the limit of descriptors as far as the system allows: connections and segments need
    them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
