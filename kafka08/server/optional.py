"""Stands for the logins of a broker whose listeners take none, as those of most brokers do.

The modules of logins are loaded only where a listener has them (``logins_of``).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kafka08.common import SASL
from kafka08.config import BrokerConfig
from kafka08.runtime import Connector

if TYPE_CHECKING:
    from kafka08.server.access.logins import LoginSettings

_LOGINS = "kafka08.server.access.logins"


class NoLogins:
    """Has the methods of ``LoginSettings`` that a broker calls."""

    def connector(self, connector: Connector) -> Connector:
        return connector

    def credentials(self, *parts: Any) -> None:
        return None

    def by_listener(self, *parts: Any) -> dict[str, Any]:
        return {}


def logins_of(config: BrokerConfig) -> LoginSettings | NoLogins:
    """Raises ConfigError."""
    if any(each.protocol in SASL for each in config.resolved_listeners().bound):
        found: LoginSettings = import_module(_LOGINS).LoginSettings(config)
        return found
    return NoLogins()
