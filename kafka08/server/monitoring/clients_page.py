"""The page of a broker that says which versions its clients speak, as JSON."""

from __future__ import annotations

import json

from kafka08.runtime import Runtime
from kafka08.server.requests.spoken import SpokenVersions, described
from kafka08.settings.broker import BrokerConfig


class ClientsPage:
    """``data`` has the settings of the broker on which versions and formats depend, and ``heard``:
    an object for each client, API, version, and topic or group."""

    def __init__(self, config: BrokerConfig, runtime: Runtime, spoken: SpokenVersions) -> None:
        self._runtime = runtime
        self._spoken = spoken
        self._about = {
            "broker_id": config.broker_id,
            "api.versions.enable": config.api_versions_enable,
            "log.message.format.version": config.log_message_format_version,
        }

    def data(self) -> bytes:
        spoken = self._spoken
        about = self._about | {"since_ms": spoken.since_ms, "forgotten": spoken.forgotten}
        items = spoken.items()

        def encode() -> bytes:
            return json.dumps(about | {"heard": described(items)}).encode() + b"\n"

        return self._runtime.blocking(encode)
