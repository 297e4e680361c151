"""The listeners of the settings: their certificates, logins and limits, and the socket server that
is bound to them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kafka08.common import SASL_SSL, SSL, Endpoint
from kafka08.metrics import names as metrics
from kafka08.metrics.registry import Registry
from kafka08.network.connection_limits import NO_LIMIT, UNLIMITED, ConnectionLimits, Most
from kafka08.network.failures import Failures
from kafka08.network.hosts import canonical_host_name
from kafka08.network.server import Listener, Login, Server
from kafka08.network.tls import SecureConnector, Tls, client_context, server_context
from kafka08.protocol.later_schemas import ServedVersions
from kafka08.runtime import Clock, Runtime, Scheduler, SocketConnector
from kafka08.security.names import mapping
from kafka08.server import optional
from kafka08.server.part import Room
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.listeners import Listeners
from zk import znodes
from zk.endpoints import NO_PORT, plain_address

if TYPE_CHECKING:
    from kafka08.server.access.scram_credentials import ScramCredentials

logger = logging.getLogger("kafka.server.KafkaServer")

# How often the files of certificates are looked at.
RELOAD_MS = 10_000
_SECURE = (SSL, SASL_SSL)


class Listening(Room):
    """The listeners of the settings, and what they take: certificates, logins, limits. Raises
    ConfigError, and OSError for a host without an address."""

    def __init__(self, config: BrokerConfig, runtime: Runtime) -> None:
        self._config = config
        self._runtime = runtime
        self.listeners = config.resolved_listeners().named(canonical_host_name)
        self.logins = optional.logins_of(config)
        self.certificates = Certificates(config, self.listeners)
        self.limits = connection_limits(config, self.listeners, runtime.clock)
        self._failures = Failures(runtime.clock)
        self.connector = self.logins.connector(self.certificates.connector(runtime))

    def bind(self) -> Server:
        """The server, which is bound and does not serve yet. Raises KafkaError."""
        config = self._config
        if plain_address(self.listeners.advertised)[1] == NO_PORT:
            logger.warning(
                "No listener is PLAINTEXT, so %s has a null host: brokers, controllers and "
                "consumers of 0.8.2.2 cannot reach this broker, and fail over it.",
                znodes.broker_path(config.broker_id),
            )
        return Server(
            list(map(self._listener, self.listeners.bound)),
            max_request_bytes=config.socket_request_max_bytes,
            send_buffer_bytes=config.socket_send_buffer_bytes,
            receive_buffer_bytes=config.socket_receive_buffer_bytes,
            limits=self.limits,
            idle_ms=config.connections_max_idle_ms,
            queued_max_bytes=config.queued_max_request_bytes,
            failures=self._failures,
        )

    def _listener(self, endpoint: Endpoint) -> Listener:
        rules = self._config.of_listener(endpoint.listener).ssl_principal_mapping_rules
        return Listener(
            endpoint.host,
            endpoint.port,
            endpoint.listener,
            tls=self.certificates.servers.get(endpoint.listener),
            name_of=mapping(rules),
        )

    def logins_by_listener(
        self,
        credentials: ScramCredentials | None,
        versions: Callable[[], Sequence[ServedVersions]],
    ) -> dict[str, Login]:
        """As ``LoginSettings.by_listener``."""
        return self.logins.by_listener(self._runtime, credentials, versions, self._failures)

    def add_metrics(self, registry: Registry) -> None:
        def ends() -> Iterator[tuple[tuple[str], float]]:
            for listener, tls in self.certificates.servers.items():
                if tls.expires is not None:
                    yield (listener,), tls.expires.timestamp()

        if self.certificates.servers:
            registry.add(metrics.CERTIFICATE_END, ends)

    def schedule(self, scheduler: Scheduler) -> None:
        certificates = self.certificates
        if certificates.servers:
            scheduler.every("ssl-reload", RELOAD_MS, certificates.reload, delay_ms=RELOAD_MS)


class Certificates:
    """The TLS contexts of listeners, and that of connections to other brokers. Raises
    ConfigError."""

    def __init__(self, config: BrokerConfig, listeners: Listeners) -> None:
        self.servers: dict[str, Tls] = {}
        for each in listeners.bound:
            if each.protocol in _SECURE:
                own = config.of_listener(each.listener)
                make = partial(server_context, client_auth=own.ssl_client_auth)
                self.servers[each.listener] = Tls(own, make)
        self._client: Tls | None = None
        if listeners.inter_broker.protocol in _SECURE:
            own = config.of_listener(listeners.inter_broker.listener)
            self._client = Tls(own, client_context)

    def connector(self, runtime: Runtime) -> SocketConnector:
        """Connects to the listener between brokers."""
        return runtime if self._client is None else SecureConnector(runtime, self._client)

    def reload(self) -> None:
        """Take changed files into use."""
        for tls in self.servers.values():
            tls.reload()
        if self._client is not None:
            self._client.reload()


def connection_limits(config: BrokerConfig, listeners: Listeners, clock: Clock) -> ConnectionLimits:
    """The limits on connections. Raises ConfigError, and OSError for a host without an address."""
    return ConnectionLimits(
        clock,
        of_all=Most(config.max_connections, config.max_connection_creation_rate),
        of_listeners=dict(_own_limits(config, listeners)),
        of_address=config.max_connections_per_ip,
        of_addresses=config.max_connections_per_ip_overrides,
        exempt=listeners.inter_broker.listener if len(listeners.bound) > 1 else "",
        seconds=config.quota_seconds,
    )


def _own_limits(config: BrokerConfig, listeners: Listeners) -> Iterator[tuple[str, Most]]:
    """Those that are set for single listeners."""
    for each in listeners.bound:
        given = config.listener_name.get(each.listener.lower(), {})
        own = config.of_listener(each.listener)
        most = Most(
            own.max_connections if "max.connections" in given else UNLIMITED,
            own.max_connection_creation_rate
            if "max.connection.creation.rate" in given
            else UNLIMITED,
        )
        if most != NO_LIMIT:
            yield each.listener, most
