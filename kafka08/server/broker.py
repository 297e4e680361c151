"""Builds, starts and stops all parts of a broker (kafka.Kafka, kafka.server.KafkaServer).

Start and stop follow the original's order: the registration in ZooKeeper, which makes clients and
brokers find it, comes last and goes last.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from kafka08 import admin
from kafka08.errors import KafkaError
from kafka08.log.manager import LogManager
from kafka08.runtime import Runtime, Scheduler
from kafka08.server.cluster_view.controlled_shutdown import controlled_shutdown
from kafka08.server.cluster_view.healthcheck import KafkaHealthcheck
from kafka08.server.cluster_view.originals import FORMATS, warn_of_originals
from kafka08.server.monitoring import broker_metrics
from kafka08.server.monitoring.health import PENDING_SHUTDOWN, SHUTTING_DOWN
from kafka08.server.monitoring.monitoring import Monitoring
from kafka08.server.part import Part
from kafka08.server.requests.listeners import Listening
from kafka08.server.rooms import Rooms
from kafka08.settings.broker import BrokerConfig
from kafka08.zookeeper import access_of
from zk.access import NodeAccess
from zk.client import ZkClient
from zk.errors import SessionExpiredError, ZkConnectionError
from zk.registry import ensure_common_paths, register_broker

logger = logging.getLogger("kafka.server.KafkaServer")

T = TypeVar("T")

_ZOOKEEPER_RETRY_SECONDS = 0.5


def connected(config: BrokerConfig, access: NodeAccess) -> ZkClient:
    """A session on greenlets, maybe without a chroot. Raises ConfigError, ZkConnectionError."""
    return ZkClient(
        config.zookeeper_connect,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms,
        gevent=True,
        create_chroot=False,
        access=access,
    ).start()


class KafkaServer:
    """One broker. ``start`` raises KafkaError or OSError with nothing left running. ``listen`` and
    ``connect`` make its listeners and its session in ZooKeeper."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        listen: Callable[[BrokerConfig, Runtime], Listening] = Listening,
        connect: Callable[[BrokerConfig, NodeAccess], ZkClient] = connected,
    ) -> None:
        self.config = config
        self._runtime = runtime
        self._listen = listen
        self._connect = connect
        self._begun: list[Part] = []
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
        self._begin(Part("metrics", monitoring.start, monitoring.stop))
        listening = self._listen(config, runtime)
        zk = self._connect_zookeeper()
        logs = self._load_logs(zk, monitoring)
        rooms = Rooms(config, runtime, zk, logs, listening, monitoring)
        for part in self._parts(rooms, zk, monitoring):
            self._begin(part)

    def _parts(self, rooms: Rooms, zk: ZkClient, monitoring: Monitoring) -> Iterator[Part]:
        """In the order of their start. Each is yielded when those before it have started."""
        storage, replication, members = rooms.storage, rooms.replication, rooms.groups.members
        changes, log_dirs = rooms.config_changes, replication.log_dirs
        registrations, controller = rooms.view.registrations, rooms.controller
        scheduler, health = Scheduler(self._runtime), monitoring.health
        yield Part("the high watermarks", stop=replication.checkpoint_high_watermarks)
        yield from storage.tasks(scheduler)
        yield from replication.tasks()
        run = partial(rooms.run, monitoring.registry, scheduler)
        yield Part("the scheduler", run, scheduler.stop)
        yield Part("offset loading", stop=rooms.groups.offsets.stop)
        yield from rooms.transactions.tasks()
        yield Part("the watch over log dirs", log_dirs.start, log_dirs.stop)
        yield from rooms.access.tasks(scheduler)
        yield Part("quotas", rooms.quotas.load)
        serve = partial(rooms.server.start, rooms.dispatcher.handle, rooms.logins)
        yield Part("the socket server", serve, rooms.server.stop)
        yield Part("waiting requests", stop=storage.replicas.close)
        yield Part("the timers of groups", members.start, members.stop)
        # From here on watches and nodes depend on the session: its end must be noticed.
        register = partial(self._register, rooms, zk)
        timeout_ms, fence = self.config.zookeeper_session_timeout_ms, storage.replicas.fence
        expired = rooms.session_expired(register)
        healthcheck = KafkaHealthcheck(self._runtime, zk, timeout_ms, expired, fence)
        yield Part("the watch over settings", changes.start, changes.stop)
        if rooms.view.is_followed:
            yield Part("the watch over brokers", registrations.start, registrations.stop)
        yield Part("the controller", controller.start, controller.stop)
        yield Part("the healthcheck", healthcheck.start, healthcheck.stop)
        pauses = rooms.groups.pauses
        yield Part("the watch for pauses", pauses.start, pauses.stop)
        yield Part("waiting for ZooKeeper", stop=self._stopping.set)
        yield Part("the registration", register)
        broker_metrics.add_checks(health, storage.replicas, storage.logs)
        health.runs(lambda: controller.context is not None)
        yield Part("the state", stop=partial(health.enter, SHUTTING_DOWN))
        if self.config.controlled_shutdown_enable:
            yield Part("leaderships", stop=partial(self._hand_over, rooms, zk))
            yield Part("the state", stop=partial(health.enter, PENDING_SHUTDOWN))

    def _begin(self, part: Part) -> None:
        if part.start is not None:
            self._patiently(part.start)
        if part.stop is not None:
            self._begun.append(part)

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
        zk = self._connect(config, access)
        self._begin(Part("zookeeper", stop=zk.close))
        self._patiently(lambda: ensure_common_paths(zk))
        if access.set_acl:
            self._patiently(lambda: warn_of_originals(zk, config.broker_id))
        return zk

    def _load_logs(self, zk: ZkClient, monitoring: Monitoring) -> LogManager:
        topic_configs = self._patiently(lambda: admin.fetch_all_topic_configs(zk))
        logs = LogManager(self.config, clock=self._runtime.clock, topic_configs=topic_configs)
        monitoring.health.loads(lambda: logs.is_recovering)
        self._runtime.blocking(logs.load)
        broker_metrics.add_logs(monitoring.registry, logs)
        self._begin(Part("the logs", stop=lambda: self._runtime.blocking(logs.close)))
        return logs

    def _register(self, rooms: Rooms, zk: ZkClient) -> None:
        register_broker(
            zk, rooms.me, clock=self._runtime.clock, wait=self._stopping.wait,
            formats=FORMATS if self.config.api_versions_enable else None,
            endpoints=rooms.endpoints, location=rooms.location,
        )  # fmt: skip

    def _hand_over(self, rooms: Rooms, zk: ZkClient) -> None:
        rooms.fetchers.leave()
        controlled_shutdown(self.config, rooms.view.connectors, zk, self._runtime.sleep)

    def shutdown(self) -> None:
        """Hand leaderships over, stop everything, leave the logs clean."""
        self._say("shutting down")
        self._stop_all()
        self._say("shut down completed")

    def _stop_all(self) -> None:
        while self._begun:
            name, _, stop = self._begun.pop()
            assert stop is not None
            try:
                stop()
            except KafkaError as error:
                logger.error("Stopping %s failed: %s", name, error)
            except Exception:
                logger.exception("Stopping %s failed", name)
