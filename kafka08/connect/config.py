"""The settings of a worker and those common to all connectors, each declared once.

Names and defaults are those of org.apache.kafka.connect.runtime.WorkerConfig and ConnectorConfig.
"""

from __future__ import annotations

import re

from kafka08.client.cluster import parse_broker_list
from kafka08.errors import ConfigError
from kafka08.settings.settings import LIST, LONG, Settings, dotted

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


class WorkerConfig(Settings):
    """The settings that connect-standalone reads from its first file.

    ``producer.*`` and ``consumer.*`` go to the clients of the tasks, without the prefix.
    """

    bootstrap_servers: tuple[str, ...] = dotted(
        kind=LIST, doc="host:port of brokers to learn the cluster from"
    )
    key_converter: str = dotted(JSON_CONVERTER, doc="how keys become bytes and back")
    value_converter: str = dotted(JSON_CONVERTER, doc="how values become bytes and back")
    offset_storage_file_filename: str = dotted(doc="the file in which sources keep their offsets")
    offset_flush_interval_ms: int = dotted(60000, LONG, 1, doc="time between two commits")
    offset_flush_timeout_ms: int = dotted(
        5000, LONG, 1, doc="how long a stopping task waits for records to be acknowledged"
    )
    task_shutdown_graceful_timeout_ms: int = dotted(
        5000, LONG, 0, doc="how long all tasks together may take to stop"
    )
    plugin_path: tuple[str, ...] = dotted(
        (), LIST, doc="directories and zip files that are searched for connectors"
    )

    def check(self) -> None:
        try:
            parse_broker_list(self.bootstrap_servers)
        except ConfigError as error:
            value = ",".join(self.bootstrap_servers)
            raise ConfigError(f"bootstrap.servers has value {value}: {error}") from None


class ConnectorConfig(Settings):
    """The settings common to all connectors' files."""

    name: str = dotted(doc="the connector's name; offsets and the group are kept under it")
    connector_class: str = dotted(doc="a short name or module.Class")
    tasks_max: int = dotted(1, low=1, doc="largest number of tasks that share the work")
    key_converter: str = dotted("", doc="replaces the worker's")
    value_converter: str = dotted("", doc="replaces the worker's")

    def check(self) -> None:
        if not self.name.strip():
            raise ConfigError(f"name has value {self.name!r} which is empty.")


class SinkConfig(Settings):
    """The further settings of a sink's file; one of the two must be set."""

    topics: tuple[str, ...] = dotted((), LIST, doc="the topics to read")
    topics_regex: str = dotted("", doc="a regex that must match whole topic names")

    def check(self) -> None:
        if bool(self.topics) == bool(self.topics_regex):
            raise ConfigError(
                "A sink needs one of topics and topics.regex: "
                f"topics has value {','.join(self.topics)!r}, "
                f"topics.regex has value {self.topics_regex!r}"
            )
        try:
            re.compile(self.topics_regex)
        except re.error as error:
            raise ConfigError(
                f"topics.regex has value {self.topics_regex} which is not a regex: {error}"
            ) from None
