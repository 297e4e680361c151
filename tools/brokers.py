"""The brokers that a command line names, and clients of them with the settings it names."""

from __future__ import annotations

from kafka08.client.admin import AdminClient
from kafka08.client.cluster import ClusterClient, Endpoint, parse_broker_list
from kafka08.client.security import runtime_of
from kafka08.errors import ConfigError
from kafka08.runtime import Runtime
from kafka08.settings.settings import INT
from tools.options import Arguments, OptionParser

ADVICE = "Please provide valid host:port like host1:9091,host2:9092\n "
_TIMEOUT_MS = 30000


def broker_list(parser: OptionParser, text: str) -> list[Endpoint]:
    """The endpoints; ends in the usage when one has no port (ToolsUtils.validatePortOrDie)."""
    try:
        return parse_broker_list(text)
    except ConfigError:
        parser.usage_and_exit(ADVICE)


def runtime(args: Arguments) -> Runtime:
    """That of clients with ``--command-config``. Raises ConfigError, FileNotFoundError."""
    return runtime_of(args.properties("command-config"))


def cluster_client(
    parser: OptionParser, args: Arguments, option: str, client_id: str, runtime: Runtime
) -> ClusterClient:
    """A client of the brokers of ``option``, which have ``--max-wait-ms`` to answer."""
    return ClusterClient(
        broker_list(parser, args.value(option)),
        client_id=client_id,
        timeout_ms=args.value("max-wait-ms"),
        runtime=runtime,
    )


def admin_client(parser: OptionParser, args: Arguments) -> AdminClient:
    """A client of the brokers of ``--bootstrap-server``. Raises ConfigError, FileNotFoundError."""
    endpoints = broker_list(parser, args.value("bootstrap-server"))
    config = args.properties("command-config")
    return AdminClient(
        endpoints,
        client_id=config.get("client.id", ""),
        timeout_ms=INT.parse(config.get("request.timeout.ms", str(_TIMEOUT_MS))),
        runtime=runtime_of(config),
    )
