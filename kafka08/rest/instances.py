"""The consumer instances of this proxy: bounded in number, and ended when they are idle."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.errors import KafkaError
from kafka08.rest.config import RestConfig
from kafka08.rest.errors import RestError, instance_exists, instance_not_found
from kafka08.rest.readers import BoundedReader, InstanceReader, Shown
from kafka08.runtime import Lock, Runtime

logger = logging.getLogger("io.confluent.kafkarest.ConsumerManager")


class InstanceSettings(NamedTuple):
    """The settings of an instance; ``timeout_ms`` of a read, 0 for the proxy's."""

    version: int
    format: str
    config: ConsumerConfig
    min_bytes: int = 1
    timeout_ms: int = 0


class Instance:
    """One consumer instance. ``lock`` is held by the request that uses ``reader``.

    ``consumed`` and ``committed``: the last offsets that were returned and stored, by partition.
    """

    def __init__(
        self, group: str, name: str, settings: InstanceSettings, runtime: Runtime, backoff_s: float
    ) -> None:
        self.group = group
        self.name = name
        self.settings = settings
        self.lock: Lock = runtime.lock()
        self.stopping = runtime.event()
        self.stream_reader = BoundedReader(runtime, self.stopping, backoff_s)
        self.reader: InstanceReader | None = None
        self.topics: tuple[str, ...] = ()
        self.pattern = ""
        self.consumed: dict[TopicPartition, int] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.users = 0
        self.used_at = runtime.clock.monotonic()

    def subscribe(self, reader: InstanceReader, topics: tuple[str, ...], pattern: str = "") -> None:
        """Read with ``reader`` from now on; the one before is closed."""
        self.unsubscribe()
        self.reader, self.topics, self.pattern = reader, topics, pattern

    def unsubscribe(self) -> None:
        reader, self.reader, self.topics, self.pattern = self.reader, None, (), ""
        self.consumed, self.committed = {}, {}
        if reader is not None:
            reader.close()

    def note(self, found: list[Shown]) -> None:
        """Count messages as returned."""
        for message, _ in found:
            self.consumed[TopicPartition(message.topic, message.partition)] = message.offset

    def close(self) -> None:
        """End a read in progress, and leave the group."""
        self.stopping.set()
        with self.lock:
            self.unsubscribe()


class Instances:
    """All instances by group and name. Those that were idle for too long are closed by
    ``end_idle``, which their owner calls every second or so."""

    def __init__(self, config: RestConfig, runtime: Runtime) -> None:
        self._config = config
        self._runtime = runtime
        self._all: dict[tuple[str, str], Instance] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._all)

    def create(self, group: str, name: str | None, settings: InstanceSettings) -> Instance:
        """Raises RestError 40902, 429, 503."""
        config = self._config
        proxy = f"{config.id}-" if config.id else ""
        name = name or f"rest-consumer-{proxy}{uuid.uuid4()}"
        if self._closed:
            raise RestError(503, 503, "The proxy is shutting down.")
        if (group, name) in self._all:
            raise instance_exists()
        if len(self._all) >= config.consumer_instances_max:
            raise RestError(429, 429, "Too many consumer instances (consumer.instances.max).")
        if Counter(of for of, _ in self._all)[group] >= config.consumer_instances_group_max:
            reason = "Too many consumer instances in this group (consumer.instances.group.max)."
            raise RestError(429, 429, reason)
        backoff_s = config.consumer_iterator_backoff_ms / 1000
        made = Instance(group, name, settings, self._runtime, backoff_s)
        self._all[group, name] = made
        return made

    @contextmanager
    def use(self, group: str, name: str, version: int = 0) -> Iterator[Instance]:
        """The instance for one request, which restarts its idle time. One request at a time.

        ``version``: that of the path, 0 for any. Raises RestError 40403.
        """
        found = self._all.get((group, name))
        if found is None or version not in (0, found.settings.version):
            raise instance_not_found()
        found.users += 1
        try:
            with found.lock:
                if found.stopping.is_set():
                    raise instance_not_found()
                yield found
        finally:
            found.users -= 1
            found.used_at = self._runtime.clock.monotonic()

    def delete(self, group: str, name: str) -> None:
        """Raises RestError 40403."""
        found = self._all.pop((group, name), None)
        if found is None:
            raise instance_not_found()
        found.close()

    def end_idle(self) -> None:
        """Close the instances whose time is over."""
        now = self._runtime.clock.monotonic()
        idle_s = self._config.consumer_instance_timeout_ms / 1000
        for key, each in list(self._all.items()):
            if not each.users and now - each.used_at >= idle_s:
                self._all.pop(key, None)
                logger.info("Closing idle consumer instance %s of group %s", each.name, each.group)
                _close(each)

    def stop_reads(self) -> None:
        """Let reads in progress end with what they have, and take no more instances."""
        self._closed = True
        for each in self._all.values():
            each.stopping.set()

    def close(self, timeout_s: float) -> None:
        """Close all at once, and wait for at most ``timeout_s``."""
        self.stop_reads()
        closing, self._all = list(self._all.values()), {}
        tasks = [self._runtime.spawn(f"close-{each.name}", _close, each) for each in closing]
        deadline = self._runtime.clock.monotonic() + timeout_s
        late = [
            task
            for task in tasks
            if not task.join(max(deadline - self._runtime.clock.monotonic(), 0.0))
        ]
        if late:
            logger.warning("%d consumer instances did not leave their groups in time", len(late))


def _close(instance: Instance) -> None:
    try:
        instance.close()
    except (KafkaError, OSError, RestError) as error:
        logger.warning("Consumer instance %s was not closed cleanly: %s", instance.name, error)
