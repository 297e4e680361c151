"""What a connector is made of: subclass these and name the class in ``connector.class``.

A connector says which settings it takes and how its work is cut into tasks; a task does the work,
on a thread of its own. Mirrors org.apache.kafka.connect.{source,sink,connector}. Knows nothing of
who runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from kafka08.common import TopicPartition
from kafka08.errors import KafkaError
from kafka08.runtime import Event
from kafka08.settings import Settings

# What identifies a source (a file's name), and a place in it (a position): JSON values only.
Place = Mapping[str, Any]


class ConnectError(KafkaError):
    """A task cannot go on; the text says why, and names option and value where one is at fault."""

    java_class = "org.apache.kafka.connect.errors.ConnectException"


class RetriableError(ConnectError):
    """From ``put``: the same records are put again after a pause."""

    retriable = True
    java_class = "org.apache.kafka.connect.errors.RetriableException"


class DataError(ConnectError):
    """A record that a converter or a task cannot make sense of."""

    java_class = "org.apache.kafka.connect.errors.DataException"


class SourceRecord(NamedTuple):
    """What a source hands over. Once it is stored, ``offset`` is remembered for ``source``."""

    source: Place
    offset: Place
    topic: str
    value: Any
    key: Any = None
    partition: int | None = None


class SinkRecord(NamedTuple):
    """A message of a topic with key and value as the converters made them."""

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any


class Context(NamedTuple):
    """What the worker gives a task.

    ``stopping`` is set when the task is to end: wait on it instead of sleeping. ``offset(source)``
    is what was remembered for a source, None at first.
    """

    name: str
    stopping: Event
    offset: Callable[[Place], Place | None] = lambda source: None


class Task:
    """One thread's share of a connector. All methods are called by that thread."""

    context: Context

    def start(self, properties: Mapping[str, str]) -> None:
        """Open what is needed; ``properties`` are one element of ``task_configs``."""

    def stop(self) -> None:
        """Close it, also after an error, once."""


class SourceTask(Task):
    def poll(self) -> Sequence[SourceRecord]:
        """The next records in the order of their offsets. After nothing it is asked again in
        a moment."""
        raise NotImplementedError

    def commit(self) -> None:
        """All records polled so far are stored and their offsets remembered."""


class SinkTask(Task):
    def open(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """These are this task's from now on. The offsets to go on from, where the task knows
        better than the group."""
        return {}

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take records. They may stay in memory until ``flush``."""
        raise NotImplementedError

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make durable all that was put: the messages before these offsets. They are committed
        when this returns."""


class JobTask(Task):
    """Work that reads and writes topics by itself, such as a Spark job."""

    def run(self) -> None:
        """Do it once more; called again and again. Wait on ``context.stopping`` in between."""
        raise NotImplementedError


class Connector:
    """Cuts the work into tasks. ``settings`` declares the options: they are checked before
    anything starts."""

    settings: ClassVar[type[Settings] | None] = None
    task_class: ClassVar[type[Task]]

    def __init__(self) -> None:
        self.properties: dict[str, str] = {}

    def start(self, properties: Mapping[str, str]) -> None:
        self.properties = dict(properties)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Properties of each task, at most ``max_tasks`` of them; by default one task."""
        return [dict(self.properties)]

    def stop(self) -> None:
        """All tasks have ended."""


class SourceConnector(Connector):
    """Writes to topics; ``task_class`` is a SourceTask."""


class SinkConnector(Connector):
    """Reads ``topics`` or ``topics.regex``; ``task_class`` is a SinkTask.

    The partitions are shared out among the tasks.
    """

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.properties) for _ in range(max_tasks)]


class JobConnector(Connector):
    """Its ``task_class`` is a JobTask, which finds its own way to brokers and topics."""
