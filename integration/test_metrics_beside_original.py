"""The same requests to a broker of this project and to an original: /metrics beside JMX.

The original's own kafka.tools.JmxTool reads its beans. Every bean that counts something, or shows
a number that does not depend on time, must have the same value here. ``EXCEPT`` has the others.
"""

from __future__ import annotations

import csv
import struct
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from integration.harness import Broker, Tools, ZooKeeper, free_port
from integration.scrape import Samples
from integration.test_metrics import Watched
from integration.wire import (
    CONSUMER_METADATA,
    METADATA,
    OFFSET_COMMIT,
    Wire,
    WireError,
    entry,
    fetch_frame,
    frame,
    gzip_set,
    produce_frame,
    string,
    wait_until,
)
from kafka08.metrics.docs import declared
from kafka08.metrics.registry import GAUGE, METER, PERCENT, TEXT

pytestmark = pytest.mark.original
Numbers = dict[str, float]
TOPICS = "kafka.server:type=BrokerTopicMetrics,name="
EXCEPT = {
    "*IdlePercent*": "nanoseconds in which a thread waited",
    "*name=ResponseQueueSize,processor=*": "the original has three network threads, we have one",
    "*type=FetchRequestPurgatory,*": "the original also counts those that were answered since",
    "*type=ProducerRequestPurgatory,*": "the same",
    "*name=max-clean-time-secs:*": "the original shows a large negative number at first",
    "*type=Log,name=Size,topic=gzip,*": "each compresses a set again with the final offsets",
    f"{TOPICS}ReplicationBytesOutPerSec*": "a name of later releases",
}
"""Patterns of beans that are not compared: why."""


class Original:
    """A broker whose beans JmxTool reads."""

    def __init__(self, zookeeper: str, directory: Path, props: dict[str, object]) -> None:
        self.port = free_port()
        self._tools = Tools("original", directory / "tools")
        jmx = "-Dcom.sun.management.jmxremote"
        heap = (
            *("-Xmx512M", "-Xms128M", jmx, f"{jmx}.port={self.port}"),
            *(f"{jmx}.rmi.port={self.port}", f"{jmx}.authenticate=false", f"{jmx}.ssl=false"),
            "-Djava.rmi.server.hostname=127.0.0.1",
        )
        self.broker = Broker("original", directory, zookeeper, props=props, heap=heap)

    def numbers(self) -> Numbers:
        """Bean and attribute, as "bean:attribute", to its value; texts are left out."""
        url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{self.port}/jmxrmi"
        tool = self._tools.background(
            *("kafka.tools.JmxTool", "--jmx-url", url, "--object-name", "kafka.*:*"),
            *("--reporting-interval", "600000"),
        )
        try:
            wait_until("two lines of JmxTool", 60, lambda: tool.log.count("\n") >= 2)
            head, values = list(csv.reader(tool.log.splitlines()))[:2]
        finally:
            tool.kill()
        assert len(head) == len(values)
        return {
            name: float(value)
            for name, value in zip(head, values, strict=True)
            if value.lstrip("-").replace(".", "", 1).replace("E", "").replace("-", "").isdigit()
        }


def beans(found: Samples) -> Numbers:
    """/metrics under the original's names, the attributes Count and Value only."""
    numbers = {}
    for metric in declared():
        labels = metric.labels or tuple((tag, f"{{{tag}}}") for tag in metric.tags)
        name = metric.name if metric.kind in (METER, GAUGE) else f"{metric.name}_count"
        for (sample, pairs), value in found.items():
            if sample != name or metric.kind in (TEXT, PERCENT):
                continue
            if metric.help.startswith("Not in 0.8.2.2."):
                continue
            given = dict(pairs)
            assert given.keys() <= {label for label, _ in labels}
            tags = "".join(f",{tag}={given[tag]}" for tag in metric.tags if tag in given)
            numbers[f"{metric.bean}{tags}:{'Value' if metric.kind == GAUGE else 'Count'}"] = value
    return numbers


@pytest.fixture(scope="module")
def both(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Watched, Original]]:
    props: dict[str, object] = {
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "auto.create.topics.enable": "false",
        "log.cleaner.enable": "true",
        "log.cleaner.dedupe.buffer.size": 4 << 20,
        "zookeeper.session.timeout.ms": 20_000,
    }
    directory, port = tmp_path_factory.mktemp("beside"), free_port()
    ours = Broker(
        "ours", directory / "ours", f"{zookeeper.connect}/beside-ours",
        props={**props, "http.port": port},
    )  # fmt: skip
    original = Original(f"{zookeeper.connect}/beside-original", directory / "original", props)
    try:
        for broker in (ours, original.broker):
            broker.start()
            broker.create_topic("plain", partitions=2)
            broker.create_topic("gzip")
            with broker.wire() as wire:
                wait_until("the coordinator", 60, lambda: not wire.coordinator_error("g"))
                wait_until("the offsets", 60, lambda: not wire.commit("g", "plain", 0, 1))
        yield Watched(ours, port), original
    finally:
        ours.kill()
        original.broker.kill()


def refused(wire: Wire, topic: str, partition: int, message_set: bytes) -> int:
    with pytest.raises(WireError) as error:
        wire.produce(topic, partition, message_set)
    return error.value.code


def load(broker: Broker) -> list[object]:
    """Requests of all kinds that 0.8.2.2 serves to clients, and what came back."""
    said: list[object] = []
    ten = b"".join(entry(b"k", b"x" * 100, offset) for offset in range(10))
    with broker.wire() as wire:
        said += [wire.produce("plain", 0, ten) for _ in range(20)]
        said += [wire.produce("plain", 1, ten, acks=-1) for _ in range(3)]
        for _ in range(5):
            wire.socket.sendall(produce_frame("plain", 1, ten, 0))
        said.append(wire.produce("plain", 1, ten))
        said += [wire.produce("gzip", 0, gzip_set([(None, b"z" * 50)] * 50)) for _ in range(2)]
        said.append(refused(wire, "plain", 0, entry(None, b"x" * 1_100_000)))
        broken = bytearray(entry(None, b"broken"))
        broken[-1] ^= 1
        said.append(refused(wire, "plain", 0, bytes(broken)))
        said.append(refused(wire, "plain", 7, ten))
        said.append(refused(wire, "nowhere", 0, ten))
        for offset in (0, 100, 150):
            said.append(wire.fetch("plain", 0, offset, 4000))
        said.append(len(wire.read_all("plain", 1)))
        said.append(len(wire.read_all("gzip", 0)))
        said.append(wire.fetch("plain", 0, 200, wait_ms=300))  # nobody produces meanwhile
        for topic, partition, offset in (("plain", 0, 1000), ("plain", 7, 0), ("nowhere", 0, 0)):
            with pytest.raises(WireError) as error:
                wire.fetch(topic, partition, offset)
            said.append(error.value.code)
        said += [wire.offset("plain", 0, when) for when in (-1, -2, -1)]
        with pytest.raises(WireError) as error:
            wire.offset("plain", 7)
        said.append(error.value.code)
        for _ in range(4):
            wire.call(frame(METADATA, struct.pack(">i", 1) + string("plain")))
        said.append(wire.coordinator_error("g"))
        wire.call(frame(CONSUMER_METADATA, string("h")))
        for number in range(3):
            said.append(wire.commit("g", "plain", number % 2, 10 + number))
        said.append(wire.commit("h", "plain", 0, 5))
        in_zookeeper = string("z") + struct.pack(">i", 1) + string("plain")
        in_zookeeper += struct.pack(">iiq", 1, 0, 5) + string("")
        said.append(wire.call(frame(OFFSET_COMMIT, in_zookeeper)))
        said += [wire.committed(group, "plain", 0) for group in ("g", "h", "nobody")]
    # A fetch that waits until somebody produces.
    with broker.wire() as waiting, broker.wire() as wire:
        waiting.socket.sendall(fetch_frame("gzip", 0, 100, max_wait_ms=20_000))
        time.sleep(0.5)
        said.append(wire.produce("gzip", 0, entry(None, b"late")))
        said.append(waiting.receive())
    return said


def difference(before: Numbers, after: Numbers) -> Numbers:
    """Counts since then, and gauges as they are."""
    return {
        name: value - (before.get(name, 0.0) if name.endswith(":Count") else 0.0)
        for name, value in after.items()
        if name.endswith((":Count", ":Value"))
        and not any(fnmatchcase(name, pattern) for pattern in EXCEPT)
    }


@pytest.mark.scenario("ops-2")
def test_every_counter_agrees(both: tuple[Watched, Original]) -> None:
    ours, original = both
    before = beans(ours.samples()), original.numbers()
    said = load(ours.broker), load(original.broker)
    assert said[0] == said[1]
    mine = difference(before[0], beans(ours.samples()))
    theirs = difference(before[1], original.numbers())
    out = f"{TOPICS}BytesOutPerSec"
    # The two log different bytes of one compressed set, and so send different ones.
    for numbers in (mine, theirs):
        numbers[f"{out}:Count"] -= numbers.pop(f"{out},topic=gzip:Count")
    # A bean without a count may not be there yet.
    assert {name: value for name, value in mine.items() if value} == {
        name: value for name, value in theirs.items() if value
    }
    assert mine[f"{TOPICS}MessagesInPerSec,topic=plain:Count"] == 290
    assert mine[f"{TOPICS}MessagesInPerSec,topic=__consumer_offsets:Count"] == 4
    assert mine[f"{TOPICS}FailedFetchRequestsPerSec:Count"] == 1
    requests = "kafka.network:type=RequestMetrics,name=RequestsPerSec,request="
    assert mine[f"{requests}Produce:Count"] == 36
    assert len(theirs) > 150


@pytest.mark.scenario("ops-2")
def test_a_fetch_that_waits_is_counted_once(both: tuple[Watched, Original]) -> None:
    """The original counts what the fetch found at first, and once more all that it returns."""
    ours, original = both
    name = f"{TOPICS}BytesOutPerSec,topic=waits:Count"
    sent = []
    for broker in (ours.broker, original.broker):
        broker.create_topic("waits")
        with broker.wire() as waiting, broker.wire() as wire:
            wire.produce("waits", 0, entry(None, b"early"))
            frame = fetch_frame("waits", 0, 0, max_wait_ms=20_000, min_bytes=50)
            waiting.socket.sendall(frame)
            time.sleep(0.5)
            wire.produce("waits", 0, entry(None, b"late"))
            sent.append(waiting.receive())
    assert sent[0] == sent[1]
    early, late = len(entry(None, b"early")), len(entry(None, b"late"))
    assert beans(ours.samples())[name] == early + late
    assert original.numbers()[name] == early + early + late
