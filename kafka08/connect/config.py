"""The settings of a worker and those common to all connectors, each declared once.

Names and defaults are those of org.apache.kafka.connect.runtime.WorkerConfig and ConnectorConfig.
"""

from __future__ import annotations

import re

from kafka08.client.cluster import parse_broker_list
from kafka08.errors import ConfigError
from kafka08.settings.settings import LIST, LONG, LONG_MAX, Settings, setting

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


class WorkerConfig(Settings):
    """The settings that connect-standalone reads from its first file.

    ``producer.*`` and ``consumer.*`` go to the clients of the tasks, without the prefix.
    """

    bootstrap_servers: tuple[str, ...] = setting(
        "bootstrap.servers", kind=LIST, doc="host:port of brokers to learn the cluster from"
    )
    key_converter: str = setting(
        "key.converter", JSON_CONVERTER, doc="how keys become bytes and back"
    )
    value_converter: str = setting(
        "value.converter", JSON_CONVERTER, doc="how values become bytes and back"
    )
    offset_storage_file_filename: str = setting(
        "offset.storage.file.filename", doc="the file in which sources keep their offsets"
    )
    offset_flush_interval_ms: int = setting(
        "offset.flush.interval.ms", 60000, LONG, 1, LONG_MAX, doc="time between two commits"
    )
    offset_flush_timeout_ms: int = setting(
        "offset.flush.timeout.ms",
        5000,
        LONG,
        1,
        LONG_MAX,
        doc="how long a stopping task waits for records to be acknowledged",
    )
    task_shutdown_graceful_timeout_ms: int = setting(
        "task.shutdown.graceful.timeout.ms",
        5000,
        LONG,
        0,
        LONG_MAX,
        doc="how long all tasks together may take to stop",
    )
    plugin_path: tuple[str, ...] = setting(
        "plugin.path", (), LIST, doc="directories and zip files that are searched for connectors"
    )

    def check(self) -> None:
        try:
            parse_broker_list(self.bootstrap_servers)
        except ConfigError as error:
            value = ",".join(self.bootstrap_servers)
            raise ConfigError(f"bootstrap.servers has value {value}: {error}") from None


class ConnectorConfig(Settings):
    """The settings common to all connectors' files."""

    name: str = setting("name", doc="the connector's name; offsets and the group are kept under it")
    connector_class: str = setting("connector.class", doc="a short name or module.Class")
    tasks_max: int = setting(
        "tasks.max", 1, low=1, doc="largest number of tasks that share the work"
    )
    key_converter: str = setting("key.converter", "", doc="replaces the worker's")
    value_converter: str = setting("value.converter", "", doc="replaces the worker's")

    def check(self) -> None:
        if not self.name.strip():
            raise ConfigError(f"name has value {self.name!r} which is empty.")


class SinkConfig(Settings):
    """The further settings of a sink's file; one of the two must be set."""

    topics: tuple[str, ...] = setting("topics", (), LIST, doc="the topics to read")
    topics_regex: str = setting("topics.regex", "", doc="a regex that must match whole topic names")

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
