"""How a client connects: ``security.protocol``, ``sasl.mechanism`` and ``sasl.jaas.config``.

Clients are given a runtime, whose connections have logged in when they come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka08.common import PLAINTEXT, SASL_PLAINTEXT
from kafka08.errors import ConfigError
from kafka08.network.client_login import SaslConnector
from kafka08.runtime import Connector, Runtime, ThreadRuntime
from kafka08.security import jaas
from kafka08.security.sides import client_side
from kafka08.settings import PASSWORD, Settings, setting

_JAAS = "sasl.jaas.config"
_PROTOCOLS = (PLAINTEXT, SASL_PLAINTEXT)


class ClientSecurity(Settings):
    """The settings that every client takes."""

    security_protocol: str = setting(
        "security.protocol", PLAINTEXT, doc="PLAINTEXT or SASL_PLAINTEXT: that of the broker's port"
    )
    sasl_mechanism: str = setting(
        "sasl.mechanism", "PLAIN", doc="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"
    )
    sasl_jaas_config: str | None = setting(
        _JAAS, None, PASSWORD, doc="the login module with username and password"
    )


class SecuredRuntime(ThreadRuntime):
    """Threads, and connections through ``connector``."""

    def __init__(self, connector: Connector) -> None:
        super().__init__()
        self._connector = connector

    def connect(self, host: str, port: int, timeout: float) -> Any:
        return self._connector.connect(host, port, timeout)


def runtime_for(settings: ClientSecurity) -> Runtime:
    """The runtime of a client with these settings. Raises ConfigError."""
    protocol, plain = settings.security_protocol.upper(), ThreadRuntime()
    if protocol not in _PROTOCOLS:
        raise ConfigError(
            f"security.protocol {settings.security_protocol} is not supported, only "
            f"{' and '.join(_PROTOCOLS)}"
        )
    if protocol == PLAINTEXT:
        return plain
    if settings.sasl_jaas_config is None:
        raise ConfigError(f"{_JAAS} has no value, and security.protocol {protocol} needs one.")
    mechanism = settings.sasl_mechanism.upper()
    side = client_side(mechanism, jaas.parse(settings.sasl_jaas_config, _JAAS), _JAAS)
    return SecuredRuntime(SaslConnector(plain, mechanism, side))


def runtime_of(properties: Mapping[str, str]) -> Runtime:
    """The same for the settings of a file. Raises ConfigError."""
    return runtime_for(ClientSecurity.from_properties(properties))
