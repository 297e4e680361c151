"""Starts the HTTP listener and the CSV files of a broker's metrics, where they are set.

``Monitoring`` loads this module only then: the libraries take 1.5 MB and 12 ms of a start.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator

from kafka08.errors import KafkaError
from kafka08.metrics.csv_reporter import CsvReporter
from kafka08.metrics.exposition import Exposition
from kafka08.metrics.registry import Registry
from kafka08.network.http import HttpServer, is_loopback
from kafka08.runtime import Runtime
from kafka08.server.monitoring.clients_page import ClientsPage
from kafka08.server.monitoring.health import Health
from kafka08.server.monitoring.http_endpoints import Endpoints
from kafka08.server.monitoring.pages import Pages
from kafka08.server.requests.spoken import SpokenVersions
from kafka08.settings.broker import BrokerConfig

logger = logging.getLogger("kafka.server.Monitoring")

_NAME = "http.port"


def start(
    config: BrokerConfig,
    runtime: Runtime,
    registry: Registry,
    health: Health,
    spoken: SpokenVersions,
) -> Iterator[Callable[[], object]]:
    """Yields the function that stops each output, once it has started."""
    if config.http_port >= 0:
        exposition = Exposition(
            runtime,
            registry,
            bean_names=config.metrics_bean_names,
            partitions=config.metrics_partitions,
        )
        clients = ClientsPage(config, runtime, spoken)
        yield from serve_pages(
            config, Endpoints(runtime, registry, health, exposition, clients.data)
        )
    if config.writes_csv_metrics:
        reporter = CsvReporter(
            runtime,
            registry,
            config.kafka_csv_metrics_dir,
            config.kafka_metrics_polling_interval_secs,
        )
        reporter.start()
        yield reporter.stop


def serve_pages(config: BrokerConfig, pages: Pages) -> Iterator[Callable[[], object]]:
    """Yields the function that stops the listener of ``http.port``, once it has started."""
    try:
        server = HttpServer(
            config.http_host, config.http_port, pages, name=_NAME, allowed_hosts=_names(config)
        )
    except (KafkaError, ImportError) as error:
        logger.error("The broker continues without its metrics over HTTP: %s", error)
        return
    if not is_loopback(config.http_host):
        logger.warning(
            "http.host=%s: everybody who reaches this address can read the metrics",
            config.http_host,
        )
    server.start()
    yield server.stop


def _names(config: BrokerConfig) -> list[str]:
    """The names by which this machine may be asked."""
    given = [config.host_name, config.advertised_host_name, socket.gethostname()]
    return [*(name for name in given if name), *config.http_allowed_hosts]
