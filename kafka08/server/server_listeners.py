"""Binds the socket server to the listeners of the settings."""

from __future__ import annotations

from kafka08.common import PLAINTEXT, SASL_PLAINTEXT, Endpoint
from kafka08.config import BrokerConfig
from kafka08.errors import ConfigError
from kafka08.listeners import Listeners
from kafka08.network.server import Listener, Server


def bind(config: BrokerConfig, listeners: Listeners) -> Server:
    """The server, which is bound and does not serve yet. Raises KafkaError."""
    return Server(
        [_listener(each) for each in listeners.bound],
        max_request_bytes=config.socket_request_max_bytes,
        send_buffer_bytes=config.socket_send_buffer_bytes,
        receive_buffer_bytes=config.socket_receive_buffer_bytes,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_per_ip_overrides=config.max_connections_per_ip_overrides,
        idle_ms=config.connections_max_idle_ms,
        queued_max_bytes=config.queued_max_request_bytes,
    )


def _listener(endpoint: Endpoint) -> Listener:
    if endpoint.protocol not in (PLAINTEXT, SASL_PLAINTEXT):
        raise ConfigError(f"listeners has {endpoint}; {endpoint.protocol} is not served.")
    return Listener(endpoint.host, endpoint.port, endpoint.listener)
