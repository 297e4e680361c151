"""A broker's metrics and health, and their way out where the settings give one."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable

from kafka08.metrics import names
from kafka08.metrics.registry import Registry, one
from kafka08.runtime import Runtime
from kafka08.server import optional
from kafka08.server.monitoring.broker_metrics import add_process
from kafka08.server.monitoring.health import Health
from kafka08.server.requests.dispatch import Handler
from kafka08.server.requests.spoken import SpokenVersions
from kafka08.settings.broker import BrokerConfig

logger = logging.getLogger("kafka.server.Monitoring")


class Monitoring:
    """Serves from ``start`` on, while the broker still starts. An error, such as a port that is in
    use, is logged, and the broker does without. ``is_read``: whether the settings have somebody
    read the metrics."""

    def __init__(self, config: BrokerConfig, runtime: Runtime) -> None:
        self._config = config
        self._runtime = runtime
        self._stops: list[Callable[[], object]] = []
        self.is_read = config.http_port >= 0 or config.writes_csv_metrics
        self.registry = Registry(runtime)
        self.health = Health()
        self.spoken = SpokenVersions(runtime.clock)
        self.registry.add(names.BROKER_STATE, one(lambda: self.health.state))
        add_process(self.registry)

    def heard(self, handlers: Iterable[Handler]) -> list[Handler]:
        """The handlers; they note who speaks to them if that can be asked for over HTTP."""
        return list(handlers) if self._config.http_port < 0 else self.spoken.heard(handlers)

    def start(self) -> None:
        if self._config.http_port < 0 and os.environ.get("JMX_PORT"):
            logger.info(
                "JMX_PORT is set, but there is no JMX here: set http.port to serve the metrics "
                "over HTTP, to Prometheus and under JMX names"
            )
        if self.is_read:
            self._stops += optional.start_metric_outputs(
                self._config, self._runtime, self.registry, self.health, self.spoken
            )
        if self._stops:
            self.registry.start()
            self._stops.append(self.registry.stop)

    def stop(self) -> None:
        while self._stops:
            self._stops.pop()()
