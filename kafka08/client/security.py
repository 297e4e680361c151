"""How a client connects: ``security.protocol``, ``sasl.mechanism`` and ``sasl.jaas.config``.

Clients are given a runtime, whose connections have logged in when they come back.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.common import PLAINTEXT, PROTOCOLS, SASL_SSL, SSL
from kafka08.errors import ConfigError
from kafka08.network.client_login import SaslConnector
from kafka08.network.tls import SecureConnector, Tls, client_context
from kafka08.runtime import GeventRuntime, Runtime, Socket, SocketConnector, ThreadRuntime
from kafka08.security import jaas
from kafka08.security.sides import client_side
from kafka08.settings.settings import PASSWORD, dotted, setting
from kafka08.settings.tls import SslSettings

_JAAS = "sasl.jaas.config"


class ClientSecurity(SslSettings):
    """The settings that every client takes."""

    security_protocol: str = dotted(
        PLAINTEXT, doc="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL: that of the broker's port"
    )
    sasl_mechanism: str = dotted("PLAIN", doc="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
    sasl_jaas_config: str | None = setting(
        _JAAS, None, PASSWORD, doc="the login module with username and password"
    )


PLAIN = ClientSecurity()


class _Secured:
    """A runtime whose connections are those of ``connector``."""

    def __init__(self, connector: SocketConnector) -> None:
        super().__init__()
        self._connector = connector

    def connect(self, host: str, port: int, timeout: float) -> Socket:
        return self._connector.connect(host, port, timeout)


class SecuredRuntime(_Secured, ThreadRuntime):
    """Threads, and secured connections."""


class SecuredGeventRuntime(_Secured, GeventRuntime):
    """Greenlets, and secured connections."""


def runtime_for(settings: ClientSecurity, plain: Runtime | None = None) -> Runtime:
    """The runtime of a client with these settings: ``plain``, threads if it is not given, or one
    of its kind whose connections are secured. Raises ConfigError."""
    plain = plain or ThreadRuntime()
    connector = connector_for(settings, plain)
    if connector is plain:
        return plain
    kind = SecuredGeventRuntime if isinstance(plain, GeventRuntime) else SecuredRuntime
    return kind(connector)


def connector_for(settings: ClientSecurity, plain: Runtime) -> SocketConnector:
    """Connections of ``plain``, secured as the settings say; ``plain`` itself if they are not.

    Raises ConfigError.
    """
    protocol = settings.security_protocol.upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(
            f"security.protocol {settings.security_protocol} is not one of {', '.join(PROTOCOLS)}"
        )
    if protocol == PLAINTEXT:
        return plain
    connector: SocketConnector = plain
    if protocol in (SSL, SASL_SSL):
        connector = SecureConnector(plain, Tls(settings, client_context))
    if protocol == SSL:
        return connector
    if settings.sasl_jaas_config is None:
        raise ConfigError(f"{_JAAS} has no value, and security.protocol {protocol} needs one.")
    mechanism = settings.sasl_mechanism.upper()
    side = client_side(mechanism, jaas.parse(settings.sasl_jaas_config, _JAAS), _JAAS)
    return SaslConnector(connector, mechanism, side)


def runtime_of(properties: Mapping[str, str]) -> Runtime:
    """The same for the settings of a file. Raises ConfigError."""
    return runtime_for(ClientSecurity.from_properties(properties))
