"""A consumer group on one broker: its members in this process, its nodes, what it has read.

Knows nothing of pytest.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from integration.harness import Broker, Process, Tools, properties
from integration.wire import entry, gzip_set, wait_until
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.consumer.filters import TopicFilter
from kafka08.consumer.stream import KafkaStream
from kafka08.message.consumed import Message

WAIT_S = 40
SESSION_MS = 6000


class Member:
    """A connector, its streams, and every message a thread of its own has taken from them."""

    def __init__(self, connector: ConsumerConnector) -> None:
        self.connector = connector
        self.streams: list[KafkaStream] = []
        self.messages: list[Message] = []
        self._threads: list[threading.Thread] = []

    @property
    def id(self) -> str:
        return self.connector.consumer_id

    def join(self, topics: dict[str, int] | TopicFilter, streams: int = 1) -> Member:
        if isinstance(topics, TopicFilter):
            self.streams = self.connector.create_message_streams_by_filter(topics, streams)
        else:
            made = self.connector.create_message_streams(topics)
            self.streams = [stream for listed in made.values() for stream in listed]
        return self

    def collect(self) -> Member:
        """Read in the background until the connector is closed."""
        for stream in self.streams:
            thread = threading.Thread(target=self._read, args=[stream], daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def _read(self, stream: KafkaStream) -> None:
        while True:
            with contextlib.suppress(ConsumerTimeoutError):
                for message in stream:
                    self.messages.append(message)
                return

    @property
    def values(self) -> list[bytes]:
        return [message.value for message in list(self.messages)]

    def take(self, count: int) -> list[Message]:
        """The next ``count`` messages of the first stream."""
        found: list[Message] = []
        deadline = time.monotonic() + WAIT_S
        while len(found) < count:
            assert time.monotonic() < deadline, f"only {found}"
            with contextlib.suppress(ConsumerTimeoutError):
                found.append(next(self.streams[0]))
        return found

    def nothing_follows(self) -> bool:
        """No message within consumer.timeout.ms."""
        try:
            return not self.streams[0].has_next()
        except ConsumerTimeoutError:
            return True

    def close(self) -> None:
        self.connector.close()
        for thread in self._threads:
            thread.join(WAIT_S)


class Scene:
    """One group; ``broker`` may be shared, its names are not."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self.broker = broker
        self.directory = directory
        self.group = f"scene-{uuid.uuid4().hex[:8]}"
        self.zk = KazooClient(broker.zookeeper, timeout=10)
        self._members: list[Member] = []
        self._processes: list[Process] = []

    def __enter__(self) -> Scene:
        self.zk.start(30)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for member in self._members:
            member.close()
        for process in self._processes:
            process.kill()
        self.zk.stop()
        self.zk.close()

    # --- topics

    def topic(self, partitions: int = 1, name: str = "t") -> str:
        topic = f"{name}-{self.group}"
        self.broker.create_topic(topic, partitions)
        return topic

    def write(
        self, topic: str, values: Sequence[bytes], partition: int = 0, packed: bool = False
    ) -> None:
        """Message by message, or as one compressed set."""
        with self.broker.wire() as wire:
            if packed:
                wire.produce(topic, partition, gzip_set([(None, value) for value in values]))
            else:
                wire.produce(topic, partition, b"".join(entry(None, value) for value in values))

    def grow(self, topic: str, partitions: int) -> None:
        replicas = {str(number): [self.broker.broker_id] for number in range(partitions)}
        payload = json.dumps({"version": 1, "partitions": replicas}).encode()
        self.zk.set(f"/brokers/topics/{topic}", payload)
        self.broker.wait_for_leader(topic, partitions)

    # --- members

    def settings(self, name: str, **settings: object) -> dict[str, str]:
        values: dict[str, object] = {
            "group_id": self.group,
            "consumer_id": name,
            "zookeeper_connect": self.broker.zookeeper,
            "zookeeper_session_timeout_ms": SESSION_MS,
            "auto_offset_reset": "smallest",
            "rebalance_backoff_ms": 200,
            "rebalance_max_retries": 30,
            "consumer_timeout_ms": 200,
            "offsets_channel_backoff_ms": 100,
            **settings,
        }
        return {
            key.replace("_", "."): str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in values.items()
        }

    def member(self, name: str = "c1", **settings: object) -> Member:
        """Not joined yet. Settings by attribute name."""
        config = ConsumerConfig.from_properties(self.settings(name, **settings))
        member = Member(ConsumerConnector(config))
        self._members.append(member)
        return member

    def original(self, name: str, regex: str, **settings: object) -> Process:
        """The original's console consumer as a member with one stream."""
        directory = self.directory / name
        directory.mkdir(parents=True)
        config = directory / "consumer.properties"
        config.write_text(
            properties(self.settings(name, **{"consumer_timeout_ms": -1, **settings}))
        )
        words = ["--zookeeper", self.broker.zookeeper, "--whitelist", regex]
        words += ["--consumer.config", str(config)]
        process = Tools("original", directory).background("kafka.tools.ConsoleConsumer", *words)
        self._processes.append(process)
        return process

    # --- nodes

    def owners(self, topic: str) -> dict[int, str]:
        """Thread by partition, without the group's name."""
        base = f"/consumers/{self.group}/owners/{topic}"
        found = {}
        with contextlib.suppress(NoNodeError):
            for name in self.zk.get_children(base):
                with contextlib.suppress(NoNodeError):
                    thread = self.zk.get(f"{base}/{name}")[0].decode()
                    found[int(name)] = thread.removeprefix(f"{self.group}_")
        return found

    def owned(self, topic: str, expected: dict[int, str]) -> None:
        """Wait until the owners are these."""
        try:
            wait_until("owners", WAIT_S, lambda: self.owners(topic) == expected)
        except TimeoutError:
            assert self.owners(topic) == expected
            raise

    def offset(self, topic: str, partition: int = 0) -> str | None:
        path = f"/consumers/{self.group}/offsets/{topic}/{partition}"
        try:
            return str(self.zk.get(path)[0].decode())
        except NoNodeError:
            return None

    def set_offset(self, topic: str, offset: int, partition: int = 0) -> None:
        path = f"/consumers/{self.group}/offsets/{topic}/{partition}"
        self.zk.ensure_path(path)
        self.zk.set(path, b"%d" % offset)

    def registration(self, name: str) -> bytes:
        return bytes(self.zk.get(f"/consumers/{self.group}/ids/{self.group}_{name}")[0])


def eventually(what: str, probe: Callable[[], object]) -> None:
    wait_until(what, WAIT_S, probe)
