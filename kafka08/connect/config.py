"""The settings of a worker and those that every connector has, each declared once.

Names and defaults are those of org.apache.kafka.connect.runtime.WorkerConfig and ConnectorConfig.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kafka08.client.cluster import parse_broker_list
from kafka08.errors import ConfigError
from kafka08.settings import LIST, LONG, LONG_MAX, Settings, setting

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


@dataclass(frozen=True, kw_only=True)
class WorkerConfig(Settings):
    """What connect-standalone reads from its first file.

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
        doc="how long the end waits for records to be acknowledged",
    )
    task_shutdown_graceful_timeout_ms: int = setting(
        "task.shutdown.graceful.timeout.ms",
        5000,
        LONG,
        0,
        LONG_MAX,
        doc="how long all tasks together may take to end",
    )
    plugin_path: tuple[str, ...] = setting(
        "plugin.path", (), LIST, doc="directories and zip files in which connectors are looked for"
    )

    def check(self) -> None:
        try:
            parse_broker_list(self.bootstrap_servers)
        except ConfigError as error:
            value = ",".join(self.bootstrap_servers)
            raise ConfigError(f"bootstrap.servers has value {value}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class ConnectorConfig(Settings):
    """What every connector's file says."""

    name: str = setting("name", doc="its name; offsets and the group are kept under it")
    connector_class: str = setting("connector.class", doc="a short name or module.Class")
    tasks_max: int = setting("tasks.max", 1, low=1, doc="most tasks to cut the work into")
    key_converter: str = setting("key.converter", "", doc="instead of the worker's")
    value_converter: str = setting("value.converter", "", doc="instead of the worker's")

    def check(self) -> None:
        if not self.name.strip():
            raise ConfigError(f"name has value {self.name!r} which is empty.")


@dataclass(frozen=True, kw_only=True)
class SinkConfig(Settings):
    """What every sink's file says besides: one of the two."""

    topics: tuple[str, ...] = setting("topics", (), LIST, doc="the topics to read")
    topics_regex: str = setting("topics.regex", "", doc="a regex that whole topic names match")

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


def with_prefix(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The settings below a prefix, without it."""
    return {
        key.removeprefix(prefix): value
        for key, value in properties.items()
        if key.startswith(prefix)
    }
