"""A standalone worker: checks the settings of all connectors, then runs them until stopped.

Mirrors org.apache.kafka.connect.runtime.Worker and StandaloneHerder. ``source`` and ``sink`` run
the tasks.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Mapping
from typing import NamedTuple

from kafka08.client.cluster import ClusterClient, parse_broker_list
from kafka08.client.security import ClientSecurity, runtime_of
from kafka08.connect import plugins
from kafka08.connect.config import ConnectorConfig, SinkConfig, WorkerConfig
from kafka08.connect.converters import Converter
from kafka08.connect.interface import (
    Connector,
    Context,
    JobConnector,
    Place,
    SinkConnector,
    Task,
)
from kafka08.connect.offsets import OffsetFile
from kafka08.connect.runner import JobRunner, Runner, await_topics
from kafka08.connect.sink import SinkRunner, Supply
from kafka08.connect.source import PRODUCER, Delivery, SourceRunner
from kafka08.consumer.config import LARGEST, SMALLEST, ConsumerConfig
from kafka08.errors import ConfigError, KafkaError
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.runtime import Runtime
from kafka08.settings.properties import with_prefix

logger = logging.getLogger("org.apache.kafka.connect.runtime.Worker")

SERVERS = "bootstrap.servers"


class CheckedConnector(NamedTuple):
    """A connector whose settings are valid, not yet started."""

    config: ConnectorConfig
    connector: Connector
    properties: dict[str, str]
    converters: tuple[Converter, Converter]
    sink: SinkConfig | None
    consumer: ConsumerConfig | None


class Worker:
    """``properties`` are the worker's. ``add`` connectors, ``start``, ``wait``, ``stop``.

    Raises ConfigError.
    """

    def __init__(self, properties: Mapping[str, str], runtime: Runtime | None = None) -> None:
        self.config = WorkerConfig.from_properties(properties)
        self._properties = dict(properties)
        self._runtime = runtime or runtime_of(properties)
        _check_security(properties)
        self._endpoints = parse_broker_list(self.config.bootstrap_servers)
        self._cluster = ClusterClient(
            self._endpoints,
            client_id="kafka08-connect",
            timeout_ms=10000,
            runtime=self._runtime,
        )
        KafkaProducerConfig.of(self._producer_settings())
        self._changed = self._runtime.event()
        self._planned: list[CheckedConnector] = []
        self._runners: list[Runner] = []
        self._offsets: OffsetFile | None = None
        sys.path[:0] = [path for path in self.config.plugin_path if path not in sys.path]

    # --- connectors

    def add(self, properties: Mapping[str, str]) -> None:
        """Check a connector's settings. Raises ConfigError."""
        config = ConnectorConfig.from_properties(properties)
        if any(config.name == other.config.name for other in self._planned):
            raise ConfigError(f"name has value {config.name} which another connector has.")
        found = plugins.find(
            "connector.class", config.connector_class, plugins.CONNECTORS, Connector
        )
        if found.settings is not None:
            found.settings.from_properties(properties)
        sink = consumer = None
        if issubclass(found, SinkConnector):
            sink = SinkConfig.from_properties(properties)
            consumer = self._consumer_config(config.name)
        _warn_of_unknown(properties, found)
        converters = (
            self._converter("key.converter", properties),
            self._converter("value.converter", properties),
        )
        spark = {key: v for key, v in self._properties.items() if key.startswith("spark.")}
        given = {SERVERS: ",".join(self.config.bootstrap_servers), **spark, **properties}
        self._planned.append(CheckedConnector(config, found(), given, converters, sink, consumer))

    def _converter(self, option: str, properties: Mapping[str, str]) -> Converter:
        own = bool(properties.get(option))
        source = properties if own else self._properties
        name = source[option] if own else getattr(self.config, option.replace(".", "_"))
        found = plugins.find(option, name, plugins.CONVERTERS, Converter)
        made: Converter = found(with_prefix(source, f"{option}."), option)
        return made

    def _consumer_config(self, name: str) -> ConsumerConfig:
        group = f"connect-{name}"
        given = {"auto.offset.reset": SMALLEST, **with_prefix(self._properties, "consumer.")}
        reset = given["auto.offset.reset"]
        given["auto.offset.reset"] = {"earliest": SMALLEST, "latest": LARGEST}.get(reset, reset)
        return ConsumerConfig.from_properties({**given, "group.id": group, "zookeeper.connect": ""})

    # --- running

    def start(self) -> Worker:
        """Raises ConfigError, also when no broker answers."""
        try:
            self._cluster.fetch_metadata([])
        except (OSError, KafkaError) as error:
            value = ",".join(self.config.bootstrap_servers)
            raise ConfigError(f"{SERVERS} has value {value}: {error}") from None
        self._offsets = OffsetFile(self.config.offset_storage_file_filename, self._runtime.lock())
        for planned in self._planned:
            planned.connector.start(planned.properties)
            configs = planned.connector.task_configs(planned.config.tasks_max)
            for number, properties in enumerate(configs):
                task = planned.connector.task_class()
                runner = self._runner(planned, task, properties, (number, len(configs)))
                self._runners.append(runner)
        for runner in self._runners:
            runner.start()
        return self

    def _runner(
        self,
        planned: CheckedConnector,
        task: Task,
        properties: dict[str, str],
        share: tuple[int, int],
    ) -> Runner:
        name = planned.config.name
        offsets = self._offsets
        assert offsets is not None

        def remembered(source: Place) -> Place | None:
            return offsets.read(name, source)

        context = Context(f"{name}-{share[0]}", self._runtime.event(), remembered)
        rest = (task, properties, context, self._runtime, self._changed)
        interval = self.config.offset_flush_interval_ms / 1000
        if isinstance(planned.connector, JobConnector):
            return JobRunner(*rest)
        if planned.sink is not None and planned.consumer is not None:
            supply = Supply(
                *planned.converters,
                self._endpoints,
                self._cluster,
                planned.sink,
                planned.consumer,
                share,
                interval,
            )
            return SinkRunner(supply, *rest)
        delivery = Delivery(
            *planned.converters,
            lambda: self._producer(properties, context),
            offsets,
            interval,
            self.config.offset_flush_timeout_ms / 1000,
        )
        return SourceRunner(name, delivery, *rest)

    def _producer(self, properties: Mapping[str, str], context: Context) -> KafkaProducer:
        if properties.get("topic"):
            topics = [properties["topic"]]
            await_topics(self._cluster, topics, "topic", context.stopping, self._runtime)
        settings = {"client.id": context.name, **self._producer_settings()}
        return KafkaProducer(settings, runtime=self._runtime)

    def _producer_settings(self) -> dict[str, object]:
        given = with_prefix(self._properties, "producer.")
        return {**PRODUCER, **given, SERVERS: self.config.bootstrap_servers}

    def wait(self, timeout: float = math.inf) -> bool:
        """Wait until all tasks have ended; False after ``timeout`` seconds."""
        deadline = self._runtime.clock.monotonic() + timeout
        while not all(runner.done for runner in self._runners):
            left = deadline - self._runtime.clock.monotonic()
            if left <= 0:
                return False
            self._changed.wait(min(left, 1.0))
            self._changed.clear()
        return True

    def stop(self) -> None:
        """Stop all tasks after a last flush and commit. May be repeated."""
        for runner in self._runners:
            runner.ask_stop()
        limit = self.config.task_shutdown_graceful_timeout_ms + self.config.offset_flush_timeout_ms
        deadline = self._runtime.clock.monotonic() + limit / 1000
        for runner in self._runners:
            if not runner.join(max(deadline - self._runtime.clock.monotonic(), 0.0)):
                logger.error("Graceful stop of task %s failed.", runner.id)
        for planned in self._planned:
            planned.connector.stop()
        self._cluster.close()
        if self._offsets is not None:
            self._offsets.close()
            self._offsets = None

    def errors(self) -> dict[str, Exception]:
        """The errors of failed tasks, by task id."""
        return {each.id: each.error for each in self._runners if each.error is not None}


def _warn_of_unknown(properties: Mapping[str, str], connector: type[Connector]) -> None:
    """Warn of unknown options: a misspelt one would silently have no effect."""
    if connector.settings is None:
        return
    known = ConnectorConfig.keys() | SinkConfig.keys() | connector.settings.keys()
    for key in sorted(set(properties) - known):
        if not key.startswith(("key.converter.", "value.converter.", "spark.")):
            logger.warning("Property %s of %s is not valid", key, properties["name"])


def _check_security(properties: Mapping[str, str]) -> None:
    """All connections of a worker use the same security settings. Raises ConfigError."""
    for key in sorted(ClientSecurity.keys()):
        for prefix in ("producer.", "consumer."):
            if prefix + key in properties and properties[prefix + key] != properties.get(key):
                raise ConfigError(
                    f"{prefix}{key} has another value than {key}, and all connections of the "
                    f"worker use {key}."
                )
