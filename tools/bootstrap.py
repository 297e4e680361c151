"""--bootstrap-server of the administrative tools, with --command-config."""

from __future__ import annotations

from kafka08.client.admin import AdminClient
from kafka08.client.security import runtime_of
from kafka08.settings import INT
from tools.admin_command import command_config
from tools.broker_list import broker_list
from tools.options import Arguments, OptionParser

_TIMEOUT_MS = 30000


def connect(parser: OptionParser, args: Arguments) -> AdminClient:
    """The client that the options ask for; ends in the usage when an address has no port. Raises
    ConfigError, FileNotFoundError."""
    endpoints = broker_list(parser, args.value("bootstrap-server"))
    config = command_config(args)
    return AdminClient(
        endpoints,
        client_id=config.get("client.id", ""),
        timeout_ms=INT.parse(config.get("request.timeout.ms", str(_TIMEOUT_MS))),
        runtime=runtime_of(config),
    )
