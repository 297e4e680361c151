"""The base classes of connectors: subclass these and name the class in ``connector.class``.

A connector declares its settings and divides its work into tasks. Each task runs on a thread of
its own. Mirrors org.apache.kafka.connect.{source,sink,connector}. Does not depend on the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

from kafka08.common import TopicPartition
from kafka08.errors import KafkaError
from kafka08.runtime import Event
from kafka08.settings.settings import Settings

# A value of the types of JSON, or bytes.
Value: TypeAlias = Any
# Identifies a source (a file's name) and a position in it. JSON values only.
Place = Mapping[str, Value]


class ConnectError(KafkaError):
    """A task cannot continue. The text gives the reason, and the option and value at fault."""

    java_class = "org.apache.kafka.connect.errors.ConnectException"


class RetriableError(ConnectError):
    """Raised by ``put``: the same records are put again after a pause."""

    retriable = True
    java_class = "org.apache.kafka.connect.errors.RetriableException"


class DataError(ConnectError):
    """A record that a converter or a task cannot interpret."""

    java_class = "org.apache.kafka.connect.errors.DataException"


class SourceRecord(NamedTuple):
    """A record from a source. Once it is stored, ``offset`` is remembered for ``source``."""

    source: Place
    offset: Place
    topic: str
    value: Value
    key: Value = None
    partition: int | None = None


class SinkRecord(NamedTuple):
    """A message of a topic, with key and value as decoded by the converters."""

    topic: str
    partition: int
    offset: int
    key: Value
    value: Value


class Context(NamedTuple):
    """The objects that the worker passes to a task.

    ``stopping`` is set when the task must end: wait on it instead of sleeping. ``offset(source)``
    returns the remembered offset of a source, None at first.
    """

    name: str
    stopping: Event
    offset: Callable[[Place], Place | None] = lambda source: None


class Task:
    """One thread's share of a connector. All methods are called by that thread."""

    context: Context

    def start(self, properties: Mapping[str, str]) -> None:
        """Open resources. ``properties`` are one element of ``task_configs``."""

    def stop(self) -> None:
        """Close resources. Called once, also after an error."""


class SourceTask(Task):
    def poll(self) -> Sequence[SourceRecord]:
        """The next records in the order of their offsets. If it returns none, it is called
        again after a moment."""
        raise NotImplementedError

    def commit(self) -> None:
        """Called when all records polled so far are stored and their offsets remembered."""


class SinkTask(Task):
    def open(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Called with partitions newly assigned to this task. Returns the offsets to start from,
        for those where the task does not use the group's."""
        return {}

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Accept records. They may stay in memory until ``flush``."""
        raise NotImplementedError

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make all records durable that were put, the messages before these offsets. The offsets
        are committed when this returns."""


class JobTask(Task):
    """A task that reads and writes topics itself, such as a Spark job."""

    def run(self) -> None:
        """Run once; called repeatedly. Wait on ``context.stopping`` between runs."""
        raise NotImplementedError


class Connector:
    """Divides the work into tasks. ``settings`` declares the options, which are checked before
    any task starts."""

    settings: ClassVar[type[Settings] | None] = None
    task_class: ClassVar[type[Task]]

    def __init__(self) -> None:
        self.properties: dict[str, str] = {}

    def start(self, properties: Mapping[str, str]) -> None:
        self.properties = dict(properties)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """The properties of each task, at most ``max_tasks`` of them; by default one task."""
        return [dict(self.properties)]

    def stop(self) -> None:
        """Called when all tasks have ended."""


class SourceConnector(Connector):
    """Writes to topics; ``task_class`` is a SourceTask."""


class SinkConnector(Connector):
    """Reads ``topics`` or ``topics.regex``; ``task_class`` is a SinkTask.

    The partitions are divided among the tasks.
    """

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.properties) for _ in range(max_tasks)]


class JobConnector(Connector):
    """Its ``task_class`` is a JobTask, which connects to brokers by itself."""
