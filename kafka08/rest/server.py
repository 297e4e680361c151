"""Builds, starts and stops the REST proxy (io.confluent.kafkarest.KafkaRestMain)."""

from __future__ import annotations

import ipaddress
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

from kafka08 import properties
from kafka08.client.security import runtime_for
from kafka08.errors import ConfigError, KafkaError
from kafka08.network.http import HttpServer
from kafka08.network.tls import Tls, server_context
from kafka08.rest.access import Access, Origins
from kafka08.rest.admin_v3 import AdminV3
from kafka08.rest.application import Application
from kafka08.rest.calls import Route
from kafka08.rest.cluster import Cluster
from kafka08.rest.config import Listener, RestConfig, producer_properties, security_of
from kafka08.rest.consumers import Consumers
from kafka08.rest.consumers_v2 import ConsumersV2
from kafka08.rest.groups_v3 import GroupsV3
from kafka08.rest.instances import Instances
from kafka08.rest.meters import RequestMeters
from kafka08.rest.offset_reader import OffsetReader
from kafka08.rest.producing import Producers
from kafka08.rest.topics import Topics
from kafka08.runtime import GeventRuntime, Runtime, Scheduler
from kafka08.security import users
from kafka08.zookeeper import access_of
from zk.client import ZkClient

logger = logging.getLogger("io.confluent.kafkarest.KafkaRestMain")

_NAME = "REST proxy"
_IDLE_CHECK_MS = 1000
_LOCAL = "localhost"


class RestProxy:
    """One proxy. ``given``: all settings of the file. ``start`` raises KafkaError with nothing left
    running."""

    def __init__(self, given: Mapping[str, str], runtime: Runtime) -> None:
        self.config = config = RestConfig.from_properties(given)
        self._given = dict(given)
        self._runtime = runtime
        self._users = (
            users.load(config.users_file, "authentication.users.file")
            if config.users_file
            else None
        )
        _check_listeners(config)
        self._security = security_of(given)
        self._clients = runtime_for(self._security, runtime)
        self._scheduler = Scheduler(runtime)
        self._instances = Instances(
            runtime,
            server_id=config.id,
            limit=config.consumer_instances_max,
            group_limit=config.consumer_instances_group_max,
            idle_s=config.consumer_instance_timeout_ms / 1000,
            backoff_s=config.consumer_iterator_backoff_ms / 1000,
        )
        self._servers: list[HttpServer] = []
        self._stops: list[Callable[[], Any]] = []

    def start(self) -> None:
        try:
            self._start()
        except BaseException:
            self._stop_all()
            raise
        logger.info("Server started, listening for requests...")

    def _start(self) -> None:
        config, runtime = self.config, self._runtime
        graceful_s = config.shutdown_graceful_ms / 1000
        zk = ZkClient(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_session_timeout_ms,
            gevent=isinstance(runtime, GeventRuntime),
            access=access_of(config),
        ).start()
        self._stops.append(zk.close)
        if self._clients is not runtime:
            self._stops.append(self._clients.close)
        cluster = Cluster(
            zk,
            self._clients,
            connections=config.simpleconsumer_pool_size_max,
            patience_s=config.simpleconsumer_pool_timeout_ms / 1000,
            protocol=self._security.security_protocol,
        )
        producers = Producers(producer_properties(self._given), cluster.brokers, self._clients)
        self._stops.append(lambda: producers.close(graceful_s))
        self._stops.append(lambda: self._instances.close(graceful_s))
        self._scheduler.every("rest-idle-instances", _IDLE_CHECK_MS, self._instances.end_idle)
        self._stops.append(self._scheduler.stop)
        offsets = OffsetReader(cluster, config.consumer_request_max_bytes)
        consumers = Consumers(config, self._given, cluster, self._instances, self._clients)
        chroot = config.zookeeper_connect.partition("/")[2]
        admin_v3 = AdminV3(cluster, own_id=config.cluster_id, chroot=chroot)
        application = self._application(
            [
                *Topics(config, cluster, producers, offsets).routes(),
                *consumers.routes(),
                *ConsumersV2(consumers, runtime).routes(),
                *admin_v3.routes(),
                *GroupsV3(cluster, admin_v3).routes(),
            ]
        )
        for listener in config.parsed_listeners():
            server = self._server(listener, application)
            self._servers.append(server)
            server.start()

    def _application(self, routes: list[Route]) -> Application:
        config = self.config
        meters = RequestMeters(self._instances.__len__)
        return Application(
            [*routes, meters.route()],
            Access(self._users, read_only=config.read_only),
            Origins(config.access_control_allow_origin),
            self._runtime.clock,
            meters,
            methods=config.access_control_allow_methods,
            debug=config.debug,
        )

    def _server(self, listener: Listener, application: Application) -> HttpServer:
        config = self.config
        names = [each.host for each in config.parsed_listeners()] + [config.host_name]
        return HttpServer(
            listener.host,
            listener.port,
            application,
            name=_NAME,
            connections=config.connections_max,
            deadline_ms=config.request_deadline_ms,
            allowed_hosts=[*config.allowed_hosts, *filter(None, names)],
            body_bytes=config.request_max_bytes,
            tls=Tls(config, server_context) if listener.scheme == "https" else None,
        )

    @property
    def ports(self) -> list[int]:
        """Those of the listeners, in their order."""
        return [server.port for server in self._servers]

    def shutdown(self) -> None:
        """Let requests in progress end, and leave all groups."""
        logger.info("Shutting down the REST proxy")
        self._stop_all()

    def _stop_all(self) -> None:
        # Reads end at once, so that their connections can.
        self._instances.stop_reads()
        servers, self._servers = self._servers, []
        for server in servers:
            server.stop(self.config.shutdown_graceful_ms)
        while self._stops:
            try:
                self._stops.pop()()
            except (KafkaError, OSError) as error:
                logger.warning("While shutting down: %s", error)


def _check_listeners(config: RestConfig) -> None:
    for each in config.parsed_listeners():
        if _is_local(each.host):
            continue
        if not config.users_file:
            logger.warning(
                "%s://%s:%d can be reached from other machines without a login "
                "(authentication.users.file)",
                *each,
            )
        elif each.scheme == "http" and not config.insecure_authentication:
            raise ConfigError(
                f"listeners has http://{each.host}:{each.port}, and authentication.users.file is "
                "set: passwords would be sent in clear. Use https://, or set "
                "authentication.over.http=true."
            )


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == _LOCAL


def main(argv: list[str]) -> int:
    """``kafka-rest.properties``: serve until SIGTERM or SIGINT; the exit status.

    128 + the signal's number after a clean stop, as the JVM's; 1 when the start fails.
    """
    if len(argv) != 1:
        print("USAGE: kafka-rest-start.sh [-daemon] kafka-rest.properties")
        return 1
    runtime = GeventRuntime()
    stop = runtime.event()
    received = runtime.set_by_signals(stop)
    try:
        proxy = RestProxy(properties.load(argv[0]), runtime)
        proxy.start()
    except (KafkaError, OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        logger.critical("The REST proxy cannot start: %s", reason)
        return 1
    stop.wait()
    proxy.shutdown()
    runtime.close()
    sys.stdout.flush()
    return 128 + received[0]
