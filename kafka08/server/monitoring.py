"""A broker's metrics on their way out: the HTTP listener and the CSV files, where they are set."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
from collections.abc import Callable

from kafka08.common import bare
from kafka08.config import BrokerConfig
from kafka08.errors import KafkaError
from kafka08.metrics import names
from kafka08.metrics.csv_reporter import CLASS, CsvReporter
from kafka08.metrics.registry import Registry, one
from kafka08.network.http import HttpServer
from kafka08.runtime import Runtime
from kafka08.server.broker_metrics import add_process
from kafka08.server.health import Health
from kafka08.server.http_endpoints import Endpoints

logger = logging.getLogger("kafka.server.Monitoring")

_NAME = "http.port"


class Monitoring:
    """Serves from ``start`` on, while the broker still starts. An error, such as a port that is in
    use, is logged, and the broker does without. ``is_read``: whether the settings have somebody
    read the metrics."""

    def __init__(self, config: BrokerConfig, runtime: Runtime) -> None:
        self._config = config
        self._runtime = runtime
        self._stops: list[Callable[[], None]] = []
        self._writes_csv = (
            config.kafka_csv_metrics_reporter_enabled and CLASS in config.kafka_metrics_reporters
        )
        self.is_read = config.http_port >= 0 or self._writes_csv
        self.registry = Registry(runtime)
        self.health = Health()
        self.registry.add(names.BROKER_STATE, one(lambda: self.health.state))
        add_process(self.registry)

    def start(self) -> None:
        config = self._config
        if config.http_port >= 0:
            self._serve()
        elif os.environ.get("JMX_PORT"):
            logger.info(
                "JMX_PORT is set, but there is no JMX here: set http.port to serve the metrics "
                "over HTTP, to Prometheus and under JMX names"
            )
        if self._writes_csv:
            reporter = CsvReporter(
                self._runtime,
                self.registry,
                config.kafka_csv_metrics_dir,
                config.kafka_metrics_polling_interval_secs,
            )
            reporter.start()
            self._stops.append(reporter.stop)
        if self._stops:
            self.registry.start()
            self._stops.append(self.registry.stop)

    def _serve(self) -> None:
        config = self._config
        try:
            server = HttpServer(
                config.http_host,
                config.http_port,
                Endpoints(self._runtime, self.registry, self.health),
                name=_NAME,
                allowed_hosts=_names(config),
            )
        except (KafkaError, ImportError) as error:
            logger.error("The broker goes on without its metrics over HTTP: %s", error)
            return
        if not _is_loopback(config.http_host):
            logger.warning(
                "http.host=%s: everybody who reaches this address can read the metrics",
                config.http_host,
            )
        server.start()
        self._stops.append(server.stop)

    def stop(self) -> None:
        while self._stops:
            self._stops.pop()()


def _names(config: BrokerConfig) -> list[str]:
    """The names by which this machine may be asked."""
    given = [config.host_name, config.advertised_host_name, socket.gethostname()]
    return [*(name for name in given if name), *config.http_allowed_hosts]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(bare(host)).is_loopback
    except ValueError:
        return host == "localhost"
