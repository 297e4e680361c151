"""Times for which somebody waits, of ours, 0.8.2.2 and 3.9.1: `make bench WHAT=waiting`.

All use ZooKeeper. The kinds take turns, and a round starts new brokers, so that what comes first is
the first of its kind. Groups of 0.9 and later are librdkafka's, those in ZooKeeper are our own
consumer's, with `group.initial.rebalance.delay.ms=0` where there is such a setting. A topic is
created and deleted by a request where the release has one, and by ZooKeeper as the tools of 0.8.2.2
do. It exists when each partition has a leader that answers, and has been deleted when its
directories are gone. A reassignment moves all replicas of a topic from one broker to another one.
At the end the first broker is killed, which is the controller and leads all partitions of a topic;
the time counts from the end of its session in ZooKeeper, which lasts 6 s with all kinds.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from integration import modern, original
from integration.bench.clients import Server
from integration.bench.machine import described
from integration.bench.real import HEAP, NEW, OLD, OURS
from integration.bench.table import figure, figures, quotient
from integration.harness import Broker, ZooKeeper, kill_everything, zookeeper_client
from integration.modern import ModernBroker
from integration.wire import CONSUMER_METADATA, Wire, WireError, entry, frame, string, wait_until
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.network.channel import Channel
from kafka08.protocol import schemas

PATIENCE_S = 600
POLL_S = 0.002
PARTITIONS = 6
MEMBERS = 3
Leave = Callable[[], object]
RECORD = entry(None, b"x" * 100)
MOVED_BYTES = 100_000_000
PROPS = {
    "delete.topic.enable": "true",
    "auto.create.topics.enable": "true",
    "offsets.topic.num.partitions": 50,
    "offsets.topic.replication.factor": 1,
    "zookeeper.session.timeout.ms": 6000,
    "log.index.size.max.bytes": 1 << 20,  # a thousand partitions share one disk
}
LATER = {"group.initial.rebalance.delay.ms": 0}


def until(what: str, done: Callable[[], object]) -> None:
    """Raises TimeoutError."""
    wait_until(what, PATIENCE_S, done, POLL_S)


def taken(act: Callable[..., object], *args: object) -> float:
    """Seconds."""
    begin = time.monotonic()
    act(*args)
    return time.monotonic() - begin


class Barrier:
    """Counts the members that have had their first record, out of ``count``."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._left = count
        self.ended = 0.0

    def reached(self) -> None:
        with self._lock:
            self._left -= 1
            self.ended = time.monotonic()

    @property
    def is_over(self) -> bool:
        return not self._left


def _together(count: int, member: Callable[[Barrier], Leave]) -> float:
    """Seconds until all of so many members at once have their first record. They leave then."""
    all_, begin = Barrier(count), time.monotonic()
    with ThreadPoolExecutor(count) as pool:
        leaves = [each.result() for each in [pool.submit(member, all_) for _ in range(count)]]
    for leave in leaves:
        leave()
    return all_.ended - begin


class Site:
    """Two brokers of one kind, with the ids 0 and 1, that have just started."""

    def __init__(self, kind: str, zookeeper: str, directory: Path) -> None:
        self.kind = kind
        self._chroot = f"{zookeeper}/{directory.name}"
        self.brokers: list[Server] = [self._broker(number, directory) for number in range(2)]
        for broker in self.brokers:
            broker.start()
        self._names = (f"waiting{number}" for number in itertools.count())

    def _broker(self, number: int, directory: Path) -> Server:
        at = directory / str(number)
        if self.kind == NEW:
            props = {**PROPS, **LATER, "broker.id": number}
            return ModernBroker(at, self._chroot, java=HEAP, props=props)
        ours = {"api.versions.enable": "true", **LATER} if self.kind == OURS else {}
        kind = "ours" if self.kind == OURS else "original"
        return Broker(kind, at, self._chroot, broker_id=number, props={**PROPS, **ours}, heap=HEAP)

    @property
    def first(self) -> Server:
        return self.brokers[0]

    @property
    def addresses(self) -> str:
        return ",".join(broker.address for broker in self.brokers)

    def stop(self) -> None:
        for broker in self.brokers:
            broker.kill()

    # Clients

    def first_coordinator(self) -> None:
        """The answer for a group when no group has been there yet."""
        with Wire(self.first.port) as wire:

            def found() -> bool:
                reply = wire.call(frame(CONSUMER_METADATA, string("first")))
                return reply[:2] == b"\0\0"

            until("a coordinator", found)

    def first_produce(self) -> None:
        """To a topic that did not exist, by a client of 0.8: it asks until there is a leader."""
        topic = next(self._names)
        ports = [broker.port for broker in self.brokers]
        with contextlib.ExitStack() as stack:
            wires = [stack.enter_context(Wire(port)) for port in ports]

            def sent() -> bool:
                leader = wires[0].leader(topic, 0)
                return leader >= 0 and wires[leader].produce(topic, 0, RECORD) >= 0

            until("a first produce", sent)

    def filled(self) -> str:
        """A topic with a record in each partition."""
        topic = next(self._names)
        self.create_by_zookeeper(topic, PARTITIONS)
        for number in range(PARTITIONS):
            self.produce(topic, number, RECORD)
        return topic

    def produce(self, topic: str, partition: int, data: bytes) -> None:
        """Raises RuntimeError if no broker leads the partition."""
        for broker in self.brokers:
            with contextlib.suppress(WireError), Wire(broker.port) as wire:
                wire.produce(topic, partition, data)
                return
        raise RuntimeError(f"no leader of {topic}-{partition}")

    def group(self, topic: str, members: int) -> float:
        """Seconds until each of the members has a first record."""
        group = f"group-{uuid.uuid4()}"
        return _together(members, lambda all_: self._first_record(topic, group, all_))

    def _first_record(self, topic: str, group: str, all_: Barrier) -> Leave:
        from confluent_kafka import Consumer

        config = {
            "bootstrap.servers": self.addresses,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        consumer = Consumer(config)
        consumer.subscribe([topic])
        until("a record", lambda: (message := consumer.poll(1)) and not message.error())
        all_.reached()
        # A member that did not poll would keep the others waiting for their part.
        until("all members", lambda: consumer.poll(POLL_S) is None and all_.is_over)
        return consumer.close

    def zookeeper_group(self, topic: str, members: int) -> float:
        group = f"group-{uuid.uuid4()}"
        return _together(members, lambda all_: self._first_by_zookeeper(topic, group, all_))

    def _first_by_zookeeper(self, topic: str, group: str, all_: Barrier) -> Leave:
        config = ConsumerConfig(
            group_id=group,
            zookeeper_connect=self._chroot,
            auto_offset_reset="smallest",
            auto_commit_enable=False,
        )
        connector = ConsumerConnector(config)
        next(connector.create_message_streams({topic: 1})[topic][0])
        all_.reached()
        return connector.close

    # Topics

    def create_by_request(self, topic: str, partitions: int) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.addresses})
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(PATIENCE_S)
        self._await_leaders(topic, partitions)

    def create_by_zookeeper(
        self, topic: str, partitions: int, brokers: Sequence[int] = (0, 1)
    ) -> None:
        """With a replica of each partition, on the brokers in turn."""
        each = itertools.cycle(brokers)
        self._create(topic, [[next(each)] for _ in range(partitions)])

    def _create(self, topic: str, replicas: Sequence[Sequence[int]]) -> None:
        lists = {str(number): on for number, on in enumerate(replicas)}
        self._put(f"/brokers/topics/{topic}", {"version": 1, "partitions": lists})
        self._await_leaders(topic, len(replicas))

    def _await_leaders(self, topic: str, partitions: int) -> None:
        """Until each partition has a leader that answers."""
        with contextlib.ExitStack() as stack:
            channels = [
                stack.enter_context(Channel("127.0.0.1", broker.port, timeout_ms=60_000))
                for broker in self.brokers
            ]
            left: dict[int, int] = {}

            def led() -> bool:
                found = channels[0].call(schemas.MetadataRequest([topic])).topics[0].partitions
                left.update((each.partition, each.leader) for each in found if each.leader >= 0)
                return len(left) == partitions

            until(f"leaders of {topic}", led)

            def answered() -> bool:
                for number, channel in enumerate(channels):
                    on = [key for key, leader in left.items() if leader == number]
                    asked = [schemas.OffsetsPartition(key, -1) for key in on]
                    request = schemas.OffsetsRequest(-1, [schemas.OffsetsTopic(topic, asked)])
                    for each in channel.call(request).topics[0].partitions if on else ():
                        if not each.error:
                            del left[each.partition]
                return not left

            until(f"answers for {topic}", answered)

    def delete_by_request(self, topic: str) -> None:
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.addresses})
        admin.delete_topics([topic])[topic].result(PATIENCE_S)
        self._await_no_files(topic)

    def delete_by_zookeeper(self, topic: str) -> None:
        self._put(f"/admin/delete_topics/{topic}", {})
        self._await_no_files(topic)

    def _await_no_files(self, topic: str) -> None:
        directories = [broker.log_dir for broker in self.brokers]
        until(
            f"the end of {topic}",
            lambda: not any(next(at.glob(f"{topic}-*"), None) for at in directories),
        )

    def reassign(self, topic: str) -> None:
        """From broker 0 to broker 1, until the controller has taken its node away."""
        moves = [
            {"topic": topic, "partition": number, "replicas": [1]} for number in range(PARTITIONS)
        ]
        self._put("/admin/reassign_partitions", {"version": 1, "partitions": moves})
        with zookeeper_client(self._chroot) as client:
            until("a reassignment", lambda: client.exists("/admin/reassign_partitions") is None)

    def to_move(self) -> str:
        topic = next(self._names)
        self.create_by_zookeeper(topic, PARTITIONS, [0])
        data = RECORD * 2000
        for number in range(MOVED_BYTES // len(data)):
            self.produce(topic, number % PARTITIONS, data)
        return topic

    def fail_over(self, partitions: int) -> float:
        """Kill the first broker, the leader of so many partitions; seconds from the end of its
        session until the other one shows itself as their leader."""
        topic = next(self._names)
        self._create(topic, [[0, 1]] * partitions)
        survivor = Channel("127.0.0.1", self.brokers[1].port, timeout_ms=60_000)
        ended: list[float] = []
        with zookeeper_client(self._chroot) as client, survivor as channel:
            client.exists("/brokers/ids/0", lambda _: ended.append(time.monotonic()))

            def led() -> bool:
                found = channel.call(schemas.MetadataRequest([topic])).topics[0].partitions
                return bool(ended) and sum(each.leader == 1 for each in found) == partitions

            self.first.kill()
            until(f"new leaders of {topic}", led)
            return time.monotonic() - ended[0]

    def _put(self, path: str, value: Mapping[str, object]) -> None:
        with zookeeper_client(self._chroot) as client:
            client.create(path, json.dumps(value).encode(), makepath=True)


def measure(site: Site, sizes: Sequence[int]) -> Iterator[tuple[str, float]]:
    """Names and seconds, in the order in which they are measured."""
    later, old = site.kind != OLD, site.kind != NEW
    yield "first coordinator of groups", taken(site.first_coordinator)
    yield "first produce to a new topic", taken(site.first_produce)
    filled = site.filled()
    for members in (1, MEMBERS):
        shown = "alone" if members == 1 else f"{members} at once"
        if later:
            yield f"first record, group of 0.9+, {shown}", site.group(filled, members)
        if old:
            name = f"first record, group in ZooKeeper, {shown}"
            yield name, site.zookeeper_group(filled, members)
    for count in sizes:
        if later:
            topic = f"by-request-{count}"
            yield f"create {count:,}, request", taken(site.create_by_request, topic, count)
            yield f"delete {count:,}, request", taken(site.delete_by_request, topic)
        topic = f"by-zookeeper-{count}"
        yield f"create {count:,}, ZooKeeper", taken(site.create_by_zookeeper, topic, count)
        yield f"delete {count:,}, ZooKeeper", taken(site.delete_by_zookeeper, topic)
    moved = site.to_move()
    yield "reassign 100 MB in 6 partitions", taken(site.reassign, moved)
    most = max(sizes)
    yield f"new leaders of {most:,} after a session ended", site.fail_over(most)


def table(found: Mapping[tuple[str, str], Sequence[float]], kinds: Sequence[str]) -> str:
    """Seconds, medians; and ours compared with the others."""
    rows = []
    for name in dict.fromkeys(name for name, _ in found):
        medians = [
            statistics.median(found[name, kind]) if (name, kind) in found else None
            for kind in kinds
        ]
        ratios = [quotient(medians[0], other) for other in medians[1:]]
        rows.append([name, *map(figure, medians), *ratios])
    return figures(["", *kinds, *(f"ours / {kind}" for kind in kinds[1:])], rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m integration.bench.waiting", description=__doc__
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--kinds", nargs="+", choices=(OURS, OLD, NEW), default=[OURS, OLD, NEW])
    options = parser.parse_args()
    missing = {OURS: "", OLD: original.missing(), NEW: modern.missing()}
    kinds = [kind for kind in options.kinds if not missing[kind]]
    found: dict[tuple[str, str], list[float]] = {}
    try:
        with tempfile.TemporaryDirectory(
            prefix="kafka08-bench-", ignore_cleanup_errors=True
        ) as name:
            directory = Path(name)
            zookeeper = ZooKeeper(directory / "zookeeper").start()
            for number in range(options.rounds):
                for kind in kinds if number % 2 == 0 else kinds[::-1]:
                    at = directory / f"{kind.replace('.', '-')}-{number}"
                    site = Site(kind, zookeeper.connect, at)
                    for what, seconds in measure(site, options.partitions):
                        print(f"round {number + 1}: {kind}: {what}: {seconds:.3f}", file=sys.stderr)
                        found.setdefault((what, kind), []).append(seconds)
                    site.stop()
    finally:
        kill_everything()
    print(f"{described()}, median of {options.rounds}\n")
    print(table(found, kinds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
