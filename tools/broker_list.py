"""--broker-list as the console tools check it (kafka.utils.ToolsUtils.validatePortOrDie)."""

from __future__ import annotations

from kafka08.client.cluster import Endpoint, parse_broker_list
from kafka08.errors import ConfigError
from tools.options import OptionParser

ADVICE = "Please provide valid host:port like host1:9091,host2:9092\n "


def broker_list(parser: OptionParser, text: str) -> list[Endpoint]:
    """The endpoints; ends in the usage when one has no port."""
    try:
        return parse_broker_list(text)
    except ConfigError:
        parser.usage_and_exit(ADVICE)
