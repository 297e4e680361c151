"""Fixtures and checks for the tests of both Spark APIs: brokers, topics, streams, groups, files.

Spark is imported when a stream is made, not before.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from integration.harness import SHARED, Broker, ZooKeeper, zookeeper_client
from integration.spark.support import produce
from integration.wire import wait_until

DEADLINE_S = 180
# PySpark itself raises these warnings.
SPARK_WARNINGS = [
    pytest.mark.filterwarnings(f"ignore::{name}")
    for name in ("DeprecationWarning", "FutureWarning", "ResourceWarning")
]
SMALLEST = {"auto.offset.reset": "smallest"}


class Servers:
    """A broker of each kind when asked for; clusters for tests that break them."""

    def __init__(
        self, zookeeper: ZooKeeper, make: Callable[[str], Path], props: Mapping[str, object]
    ) -> None:
        self._zookeeper = zookeeper
        self._make = make
        self._props = props
        self._shared: dict[str, Broker] = {}
        self._all: list[Broker] = []

    def get(self, kind: str) -> Broker:
        if kind not in self._shared:
            (self._shared[kind],) = self.cluster(kind, 1, SHARED)
        return self._shared[kind]

    def cluster(
        self, kind: str, count: int, more: Mapping[str, object] | None = None
    ) -> list[Broker]:
        """New brokers, with a ZooKeeper tree of their own; ``more``: more settings."""
        chroot = f"{self._zookeeper.connect}/spark-{kind}-{uuid.uuid4().hex[:6]}"
        props = {**self._props, **(more or {})}
        found = [
            Broker(kind, self._make(f"{kind}-{n}"), chroot, broker_id=n, props=props)
            for n in range(count)
        ]
        self._all += found
        for broker in found:
            broker.start()
        return found

    def stop(self) -> None:
        for broker in self._all:
            broker.kill()


def addresses(brokers: Iterable[Broker]) -> str:
    return ",".join(broker.address for broker in brokers)


# --- topics


def new_topic(broker: Broker, partitions: int = 1, **config: object) -> str:
    """Settings take _ for a dot."""
    topic = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, partitions, {k.replace("_", "."): v for k, v in config.items()})
    return topic


def send(broker: Broker, topic: str, partition: int, values: Iterable[int]) -> None:
    produce(broker, topic, partition, [(None, str(value).encode()) for value in values])


def zookeeper_of(broker: Broker) -> AbstractContextManager[KazooClient]:
    return zookeeper_client(broker.zookeeper)


def grow(broker: Broker, topic: str, partitions: int) -> None:
    payload = {"version": 1, "partitions": {str(n): [broker.broker_id] for n in range(partitions)}}
    with zookeeper_of(broker) as client:
        client.set(f"/brokers/topics/{topic}", json.dumps(payload).encode())
    broker.wait_for_leader(topic, partitions)


def partition_state(broker: Broker, topic: str) -> dict[str, Any]:
    """``leader``, ``isr`` and the rest of partition 0; empty when there is none yet."""
    with zookeeper_of(broker) as client:
        try:
            data = client.get(f"/brokers/topics/{topic}/partitions/0/state")[0]
        except NoNodeError:
            return {}
    found: dict[str, Any] = json.loads(data)
    return found


def replicated_topic(broker: Broker, replicas: list[int]) -> str:
    """A topic of one partition, led by ``broker`` with all ``replicas`` in the isr."""
    topic = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, replicas=replicas)
    wait_until(
        "replicas in sync",
        DEADLINE_S,
        lambda: sorted(partition_state(broker, topic).get("isr", ())) == sorted(replicas),
    )
    return topic


# --- groups


def committed(broker: Broker, group: str, topic: str) -> dict[int, int]:
    with zookeeper_of(broker) as client:
        path = f"/consumers/{group}/offsets/{topic}"
        if not client.exists(path):
            return {}
        return {int(p): int(client.get(f"{path}/{p}")[0]) for p in client.get_children(path)}


def owners(broker: Broker, group: str, topic: str) -> Counter[str]:
    """Member -> partitions that it owns."""
    return Counter(owned(broker, group, topic).values())


def owned(broker: Broker, group: str, topic: str) -> dict[int, str]:
    with zookeeper_of(broker) as client:
        path = f"/consumers/{group}/owners/{topic}"
        try:
            children = client.get_children(path)
            return {int(p): client.get(f"{path}/{p}")[0].decode() for p in children}
        except NoNodeError:
            return {}  # none yet, or changing hands just now


# --- streams


def direct(broker: Broker, **params: str) -> dict[str, str]:
    """kafkaParams; names take _ for a dot."""
    named = {key.replace("_", "."): value for key, value in params.items()}
    return {"metadata.broker.list": broker.address, **named}


class Seen:
    """The values that outputs received; safe to read while batches run."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.ranges: list[list[Any]] = []
        # Spark counts arguments, and of a method self would be one.
        self.collect: Callable[[Any], None] = lambda rdd: self.values.extend(rdd.collect())
        self.offsets: Callable[[Any], None] = lambda rdd: self.ranges.append(rdd.offsetRanges())

    def wait(self, count: int) -> None:
        wait_until(f"{count} values", DEADLINE_S, lambda: len(self.values) >= count)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """(from, until) of the first partition, batch by batch."""
        return [(found[0].fromOffset, found[0].untilOffset) for found in self.ranges]


@contextmanager
def conf_of(sc: Any, **settings: object) -> Iterator[None]:
    """Settings that streams read when they run, on the shared context."""
    named = {f"spark.streaming.{key.replace('_', '.')}": str(v) for key, v in settings.items()}
    for key, value in named.items():
        sc._conf.set(key, value)
    try:
        yield
    finally:
        for key in named:
            sc._conf._jconf.remove(key)


@contextmanager
def running(
    sc: Any, define: Callable[[Any], None], seconds: float = 0.5, *, graceful: bool = True
) -> Iterator[Any]:
    from pyspark.streaming import StreamingContext

    ssc = StreamingContext(sc, seconds)
    define(ssc)
    ssc.start()
    try:
        yield ssc
    finally:
        ssc.stop(False, graceful)


# --- files


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def lines_of(path: Path) -> list[str]:
    return text_of(path).splitlines()


def batches_in(checkpoint: Path, log: str) -> list[int]:
    """Numbers of the batches that a query has in ``offsets`` (begun) or ``commits`` (ended)."""
    return sorted(int(path.name) for path in (checkpoint / log).glob("*") if path.name.isdigit())


def messages_committed(checkpoint: Path, topic: str) -> int:
    """How many messages of ``topic`` are in the batches of a query that have ended."""
    ended = batches_in(checkpoint, "commits")
    if not ended:
        return 0
    text = (checkpoint / "offsets" / str(ended[-1])).read_text()
    return sum(json.loads(text.splitlines()[-1])[topic].values())
