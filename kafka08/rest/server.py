"""Builds, starts and stops the REST proxy (io.confluent.kafkarest.KafkaRestMain)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from kafka08.client.security import ClientSecurity, runtime_for
from kafka08.common import PLAINTEXT
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import ConfigError, KafkaError
from kafka08.groups.admin import GroupAdmin
from kafka08.network.channel import Channel, Connect
from kafka08.network.http import Bounds, HttpServer, is_loopback
from kafka08.network.tls import Tls, server_context
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.rest.application import Application
from kafka08.rest.cluster import CLIENT_ID, Cluster, Opener
from kafka08.rest.config import (
    CLIENT,
    RestConfig,
    RestListener,
    producer_properties,
    proxy_consumer,
)
from kafka08.rest.consumers import Consumers
from kafka08.rest.consumers_v2 import ConsumersV2
from kafka08.rest.errors import refusal
from kafka08.rest.instances import Instances
from kafka08.rest.meters import RequestMeters
from kafka08.rest.openapi.document import OpenApi
from kafka08.rest.producing import Producing, SharedProducer
from kafka08.rest.readers import Connecting, OffsetReader
from kafka08.rest.topics import Topics
from kafka08.rest.v3.acls import AclsV3
from kafka08.rest.v3.admin import AdminV3
from kafka08.rest.v3.broker_configs import BrokerConfigsV3
from kafka08.rest.v3.groups import GroupsV3
from kafka08.rest.v3.records import RecordsV3
from kafka08.runtime import GeventRuntime, Runtime, Scheduler
from kafka08.security.users import Users, load
from kafka08.settings import properties
from kafka08.zookeeper import access_of
from zk.client import ZkClient

logger = logging.getLogger("io.confluent.kafkarest.KafkaRestMain")

_NAME = "REST proxy"
_IDLE_CHECK_MS = 1000


class ClientMakers(NamedTuple):
    """The functions that make the clients of brokers."""

    simple: Opener = SimpleConsumer
    producer: Producing = KafkaProducer
    connector: Connecting = ConsumerConnector
    channel: Connect = Channel


_CLIENTS = ClientMakers()


class RestParts:
    """The parts that answer the requests of one proxy. ``given``: all settings of the file. The
    ``clients`` of brokers run on a runtime whose connections are for ``protocol``."""

    def __init__(
        self,
        given: Mapping[str, str],
        zk: ZkClient,
        runtime: Runtime,
        clients: Runtime,
        *,
        users: Users | None = None,
        protocol: str = PLAINTEXT,
        make: ClientMakers = _CLIENTS,
    ) -> None:
        config = RestConfig.from_properties(given)
        self.cluster = Cluster(
            config,
            zk,
            clients,
            open_consumer=make.simple,
            channel=make.channel,
            protocol=protocol,
        )
        self.producer = SharedProducer(
            producer_properties(given), self.cluster.brokers, clients, make=make.producer
        )
        self.groups = GroupAdmin(
            zk,
            client_id=CLIENT_ID,
            security=ClientSecurity(security_protocol=protocol),
            runtime=clients,
            channel=make.channel,
        )
        self.instances = Instances(config, runtime)
        consumers = Consumers(config, given, self.cluster, self.instances, clients, make.connector)
        offsets = OffsetReader(
            self.cluster,
            config.consumer_request_max_bytes,
            proxy_consumer(config, given).reads_committed,
        )
        chroot = config.zookeeper_connect.partition("/")[2]
        admin_v3 = AdminV3(self.cluster, own_id=config.cluster_id, chroot=chroot)
        meters = RequestMeters(self.instances.__len__)
        self.description = OpenApi(
            [
                *Topics(config, self.cluster, self.producer, offsets).routes(),
                *consumers.routes(),
                *ConsumersV2(consumers, runtime, make.channel).routes(),
                *admin_v3.routes(),
                *BrokerConfigsV3(self.cluster, admin_v3).routes(),
                *AclsV3(self.cluster, admin_v3).routes(),
                *GroupsV3(self.cluster, self.groups, admin_v3).routes(),
                *RecordsV3(config, self.producer, admin_v3).routes(),
                meters.route(),
            ],
            has_login=users is not None,
        )
        routes = self.description.routes
        self.application = Application(routes, config, users, runtime.clock, meters)


def http_server(config: RestConfig, listener: RestListener, application: Application) -> HttpServer:
    """The server of one listener, with the bounds of the settings. Raises KafkaError."""
    names = [each.host for each in config.parsed_listeners()] + [config.host_name]
    return HttpServer(
        listener.host,
        listener.port,
        application,
        name=_NAME,
        bounds=Bounds(
            config.connections_max,
            config.request_deadline_ms,
            config.request_max_bytes,
            config.requests_max_bytes,
        ),
        allowed_hosts=[*config.allowed_hosts, *filter(None, names)],
        tls=Tls(config, server_context) if listener.scheme == "https" else None,
        refusal=refusal,
    )


class RestProxy:
    """One proxy. ``given``: all settings of the file. ``start`` raises KafkaError with nothing left
    running."""

    def __init__(self, given: Mapping[str, str], runtime: Runtime) -> None:
        self.config = config = RestConfig.from_properties(given)
        self._given = given
        self._runtime = runtime
        self._users = (
            load(config.users_file, "authentication.users.file") if config.users_file else None
        )
        _check_listeners(config)
        self._security = ClientSecurity.from_properties(properties.with_prefix(given, CLIENT))
        self._clients = runtime_for(self._security, runtime)
        self._servers: list[HttpServer] = []
        self._stops: list[Callable[[], object]] = []

    def start(self) -> None:
        with ExitStack() as undo:
            undo.callback(self._stop_all)
            self._start()
            undo.pop_all()
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
        parts = RestParts(
            self._given,
            zk,
            runtime,
            self._clients,
            users=self._users,
            protocol=self._security.security_protocol,
        )
        self._stops.append(parts.groups.close)
        self._stops.append(lambda: parts.producer.close(graceful_s))
        self._stops.append(lambda: parts.instances.close(graceful_s))
        scheduler = Scheduler(runtime)
        scheduler.every("rest-idle-instances", _IDLE_CHECK_MS, parts.instances.end_idle)
        self._stops.append(scheduler.stop)
        for listener in config.parsed_listeners():
            server = http_server(config, listener, parts.application)
            self._servers.append(server)
            self._stops.append(partial(server.stop, config.shutdown_graceful_ms))
            server.start()
        # Reads end at once, so that their connections can.
        self._stops.append(parts.instances.stop_reads)

    @property
    def ports(self) -> list[int]:
        """Those of the listeners, in their order."""
        return [server.port for server in self._servers]

    def shutdown(self) -> None:
        """Let requests in progress end, and leave all groups."""
        logger.info("Shutting down the REST proxy")
        self._stop_all()

    def _stop_all(self) -> None:
        self._servers.clear()
        while self._stops:
            try:
                self._stops.pop()()
            except (KafkaError, OSError) as error:
                logger.warning("While shutting down: %s", error)


def _check_listeners(config: RestConfig) -> None:
    for each in config.parsed_listeners():
        if is_loopback(each.host):
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


def main(argv: list[str]) -> int:
    """``kafka-rest.properties``: serve until SIGTERM or SIGINT; the exit status.

    128 + the signal's number after a clean stop, as the JVM's; 1 when the start fails.
    """
    if len(argv) != 1:
        print("USAGE: kafka-rest-start.sh [-daemon] kafka-rest.properties")
        return 1
    runtime = GeventRuntime()
    received = runtime.signals()
    try:
        proxy = RestProxy(properties.load(argv[0]), runtime)
        proxy.start()
    except (KafkaError, OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        logger.critical("The REST proxy cannot start: %s", reason)
        return 1
    number = received.get()
    proxy.shutdown()
    runtime.close()
    sys.stdout.flush()
    return 128 + number
