"""A cluster of brokers with its ZooKeepers: start, break, mend, ask, wait.

Reads ZooKeeper as raw JSON, independent of our own readers. The client side is
`kafka08.network.channel`, a new connection for every question, so that no fault outlives it.
Knows nothing of pytest.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from integration.cluster.hosts import Host, Hosts
from integration.cluster.nodes import TIMEOUT_S, BrokerNode, ZooKeeperNode
from kafka08.errors import KafkaError
from kafka08.message.sets import encode_set, iter_messages
from kafka08.network.channel import Channel
from kafka08.protocol import schemas

SESSION_MS = 3000
LAG_MS = 3000

# Which brokers of a mixed cluster are ours: the first leads, the second is controller.
_OURS_IN = {"mixed-original-leads": {2, 3, 4, 6}, "mixed-ours-leads": {1, 5}}
KINDS = ("ours", "original", *_OURS_IN)
T = TypeVar("T")


def kind_of(cluster_kind: str, broker_id: int) -> str:
    if cluster_kind in _OURS_IN:
        return "ours" if broker_id in _OURS_IN[cluster_kind] else "original"
    return cluster_kind


def eventually(what: str, probe: Callable[[], T], timeout: float = TIMEOUT_S) -> T:
    """Poll until `probe()` is true and return it; failures of the moment count as not yet."""
    deadline = time.monotonic() + timeout
    last: object = None
    while True:
        try:
            last = probe()
            if last:
                return last  # type: ignore[return-value]
        except (OSError, KafkaError, KazooException, KazooTimeoutError) as error:
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout} s (last: {last!r})")
        time.sleep(0.05)


class State(NamedTuple):
    """A partition's state node."""

    leader: int
    isr: list[int]
    leader_epoch: int
    controller_epoch: int
    version: int


class Cluster:
    """`brokers` by id, 1 to n; `zk` is a client on the chroot all of them use."""

    def __init__(
        self,
        hosts: Hosts,
        directory: Path,
        kind: str,
        *,
        brokers: int = 3,
        zookeepers: int = 1,
        props: Mapping[str, object] | None = None,
        chroot: str = "/cluster",
    ) -> None:
        self.hosts = hosts
        self.kind = kind
        self.chroot = chroot
        self.directory = directory
        self._names = itertools.count(1)
        self.zookeepers = [self._zookeeper(number + 1) for number in range(zookeepers)]
        for node in self.zookeepers:
            node.configure(self.zookeepers)
        self.props: dict[str, object] = {
            "zookeeper.connect": self.connect,
            "zookeeper.session.timeout.ms": SESSION_MS,
            "zookeeper.connection.timeout.ms": 30000,
            "replica.lag.time.max.ms": LAG_MS,
            "controlled.shutdown.retry.backoff.ms": 1000,
            "auto.leader.rebalance.enable": "false",
            "delete.topic.enable": "true",
            "default.replication.factor": min(3, brokers),
            "offsets.topic.num.partitions": 3,
            "num.network.threads": 2,
            "num.io.threads": 4,
            "log.index.size.max.bytes": 1 << 20,
            **(props or {}),
        }
        self.brokers = {number + 1: self._broker(number + 1) for number in range(brokers)}
        self.zk = KazooClient(self.connect, timeout=20)

    def _zookeeper(self, number: int) -> ZooKeeperNode:
        host = self.hosts.add()
        ports = tuple(self.hosts.port(wanted) for wanted in (2181, 2888, 3888))
        return ZooKeeperNode(self.directory / f"zookeeper-{number}", host, number, ports)

    def _broker(self, broker_id: int) -> BrokerNode:
        return self.extra_broker(kind_of(self.kind, broker_id), broker_id, f"broker-{broker_id}")

    def extra_broker(
        self, kind: str, broker_id: int, directory: str, host: Host | None = None
    ) -> BrokerNode:
        """A broker of this cluster that `brokers` does not list."""
        props = dict(self.props)
        if kind == "ours" and "mixed" in self.kind:
            # 0.8.2.2 followers and leaders must end up with the same bytes as ours.
            props["log.compressed.sets"] = "normalised"
        host = host or self.hosts.add()
        port = self.hosts.port(9092)
        return BrokerNode(kind, broker_id, self.directory / directory, host, port, props)

    @property
    def connect(self) -> str:
        return ",".join(node.address for node in self.zookeepers) + self.chroot

    # Life

    def start(self, first: int = 2) -> Cluster:
        """Everything; broker `first` becomes controller."""
        for node in self.zookeepers:
            node.spawn()
        self.await_zookeeper()
        order = sorted(self.brokers, key=lambda each: each != first)
        self.brokers[order[0]].start()
        for broker_id in order[1:]:
            self.brokers[broker_id].spawn()
        for broker_id in order[1:]:
            self.brokers[broker_id].await_started()
        self.await_ids(self.brokers)
        return self

    def await_zookeeper(self) -> None:
        if not self.zk.connected:
            # The first client may come before ZooKeeper listens.
            client = KazooClient(self.connect.partition("/")[0], timeout=20)
            client.start(TIMEOUT_S)
            client.ensure_path(self.chroot)
            client.stop()
            client.close()
            self.zk.start(TIMEOUT_S)

    def await_ensemble(self) -> None:
        """Until every ZooKeeper serves."""
        for node in self.zookeepers:
            client = KazooClient(node.address, timeout=20)
            client.start(TIMEOUT_S)
            client.stop()
            client.close()

    def stop(self) -> None:
        """Everything, at once and by force."""
        self.zk.stop()
        self.zk.close()
        for process in [*self.brokers.values(), *self.zookeepers]:
            with contextlib.suppress(OSError, AssertionError):
                process.kill()
            self.hosts.remove(process.host)

    def restore(self, controller: int = 2) -> None:
        """Every broker up and reachable, nothing pending, `controller` in office."""
        self.hosts.heal()
        for broker in self.brokers.values():
            if broker.alive:
                broker.resume()
            else:
                broker.spawn()
        for broker in self.brokers.values():
            broker.await_started()
        self.await_ids(self.brokers)
        self.elect(controller)

    def elect(self, wanted: int) -> None:
        """Make `wanted` the controller by throwing the others out of office.

        Not with the original: after that two of its brokers may believe that they lead.
        """
        deadline = time.monotonic() + TIMEOUT_S
        while self.controller() != wanted:
            assert time.monotonic() < deadline, f"broker {wanted} was never elected"
            with contextlib.suppress(NoNodeError):
                epoch = self.controller_epoch()
                self.zk.delete("/controller")
                eventually("an election", lambda e=epoch: self.controller_epoch() > e)
        eventually("the controller", lambda: self.knows_all(wanted))

    def knows_all(self, broker_id: int) -> bool:
        """Whether the broker has every live broker in its metadata (or has never been told)."""
        found = {each.node_id for each in self.metadata(broker_id).brokers}
        return not found or found >= set(self.ids())

    def kill(self, broker_id: int) -> None:
        self.brokers[broker_id].kill()

    def pause(self, broker_id: int) -> None:
        self.brokers[broker_id].pause()

    def resume(self, broker_id: int) -> None:
        self.brokers[broker_id].resume()

    def terminate(self, broker_id: int) -> int:
        return self.brokers[broker_id].stop(signal.SIGTERM)

    def cut(self, broker_id: int, from_: str) -> None:
        """Take away a broker's link to the zookeepers, the peers, or everything."""
        others: list[Host] = []
        if from_ in ("zookeeper", "everything"):
            others += [node.host for node in self.zookeepers]
        if from_ in ("peers", "everything"):
            others += [each.host for each in self.brokers.values() if each.id != broker_id]
        self.hosts.cut(self.brokers[broker_id].host, others)

    # ZooKeeper's view

    def json(self, path: str) -> Any:
        return json.loads(self.zk.get(path)[0])

    def ids(self) -> set[int]:
        return {int(each) for each in self.zk.get_children("/brokers/ids")}

    def await_ids(self, wanted: Iterable[int]) -> None:
        wanted = set(wanted)
        eventually(f"brokers {wanted} registered", lambda: self.ids() == wanted)

    def await_gone(self, broker_id: int) -> None:
        eventually(f"broker {broker_id} gone", lambda: broker_id not in self.ids())

    def controller(self) -> int:
        """The broker in office, -1 when there is none."""
        try:
            return int(self.json("/controller")["brokerid"])
        except NoNodeError:
            return -1

    def controller_epoch(self) -> int:
        return int(self.zk.get("/controller_epoch")[0])

    def state(self, topic: str, partition: int = 0) -> State | None:
        path = f"/brokers/topics/{topic}/partitions/{partition}/state"
        try:
            data, stat = self.zk.get(path)
        except NoNodeError:
            return None
        node = json.loads(data)
        return State(
            node["leader"],
            node["isr"],
            node["leader_epoch"],
            node["controller_epoch"],
            stat.version,
        )

    def assignment(self, topic: str) -> dict[str, list[int]] | None:
        try:
            found: dict[str, list[int]] = self.json(f"/brokers/topics/{topic}")["partitions"]
        except NoNodeError:
            return None
        return found

    def await_state(
        self, topic: str, wanted: Callable[[State], object], partition: int = 0, what: str = "state"
    ) -> State:
        """The first state seen that is as wanted."""
        last: list[State | None] = [None]

        def probe() -> State | None:
            last[0] = self.state(topic, partition)
            return last[0] if last[0] is not None and wanted(last[0]) else None

        try:
            return eventually(what, probe)  # type: ignore[return-value]
        except AssertionError as error:
            raise AssertionError(f"{error}: {last[0]}") from None

    def await_isr(self, topic: str, isr: Iterable[int], partition: int = 0) -> State:
        wanted = set(isr)
        return self.await_state(
            topic, lambda s: set(s.isr) == wanted, partition, f"isr {wanted} of {topic}"
        )

    def await_leader(self, topic: str, leader: int, partition: int = 0) -> State:
        """ZooKeeper names it, and it has taken office: it answers as leader."""
        state = self.await_state(
            topic, lambda s: s.leader == leader, partition, f"leader {leader} of {topic}"
        )
        eventually(
            f"broker {leader} leads {topic}", lambda: self.end(topic, partition, leader) >= 0
        )
        return state

    # Topics

    def new_topic(
        self,
        *replicas: Sequence[int],
        config: Mapping[str, object] | None = None,
        wait: bool = True,
        name: str | None = None,
    ) -> str:
        """A topic with these replicas by partition, made as TopicCommand makes it; its name."""
        topic = name or f"t{next(self._names)}"
        lists = [list(each) for each in replicas or [(1, 2, 3)]]
        values = {key: str(value) for key, value in (config or {}).items()}
        node = json.dumps({"version": 1, "config": values}).encode()
        try:
            self.zk.create(f"/config/topics/{topic}", node, makepath=True)
        except NodeExistsError:
            self.zk.set(f"/config/topics/{topic}", node)
        assignment = {str(number): each for number, each in enumerate(lists)}
        self.put(f"/brokers/topics/{topic}", {"version": 1, "partitions": assignment})
        if wait:
            for number, each in enumerate(lists):
                state = self.await_isr(topic, each, number)
                self.await_leader(topic, state.leader, number)
        return topic

    def write_state(self, topic: str, node: Mapping[str, object], version: int) -> None:
        """As the controller would, without telling anybody."""
        data = json.dumps(node).encode()
        self.zk.set(f"/brokers/topics/{topic}/partitions/0/state", data, version)

    def put(self, path: str, value: object) -> None:
        """Create a node with a JSON value."""
        self.zk.create(path, json.dumps(value, separators=(",", ":")).encode(), makepath=True)

    def reassign(self, topic: str, replicas: Sequence[int], partition: int = 0) -> None:
        entry = {"topic": topic, "partition": partition, "replicas": list(replicas)}
        self.put("/admin/reassign_partitions", {"version": 1, "partitions": [entry]})

    def elect_preferred(self, topic: str, partition: int = 0) -> None:
        entry = {"topic": topic, "partition": partition}
        self.put("/admin/preferred_replica_election", {"version": 1, "partitions": [entry]})

    def alter_config(self, topic: str, config: Mapping[str, object]) -> None:
        values = {key: str(value) for key, value in config.items()}
        node = json.dumps({"version": 1, "config": values}).encode()
        self.zk.set(f"/config/topics/{topic}", node)
        change = json.dumps(topic).encode()
        self.zk.create("/config/changes/config_change_", change, sequence=True)

    def await_no_node(self, path: str) -> None:
        eventually(f"{path} gone", lambda: not self.zk.exists(path))

    # Asking brokers

    def call(self, broker_id: int, request: Any, timeout_ms: int = 10000) -> Any:
        broker = self.brokers[broker_id]
        with Channel(broker.host.address, broker.port, timeout_ms=timeout_ms) as channel:
            return channel.call(request)

    def metadata(self, broker_id: int, *topics: str) -> schemas.MetadataResponse:
        """Of these topics, or of all; may create a topic."""
        answer: schemas.MetadataResponse = self.call(
            broker_id, schemas.MetadataRequest(list(topics))
        )
        return answer

    def shown(self, broker_id: int, topic: str, partition: int = 0) -> schemas.PartitionMetadata:
        """A partition's entry in a broker's metadata. Raises LookupError if there is none."""
        for each in self.metadata(broker_id, topic).topics[0].partitions:
            if each.partition == partition:
                return each
        raise OSError(f"broker {broker_id} shows no partition {partition} of {topic}")

    def produce(
        self,
        topic: str,
        values: Sequence[bytes],
        *,
        acks: int = -1,
        partition: int = 0,
        broker: int | None = None,
        timeout_ms: int = 10000,
        codec: int = 0,
    ) -> tuple[int, int]:
        """(error, base offset) of one request to the leader, or to `broker`."""
        data = memoryview(encode_set([(None, value) for value in values], codec))
        request = schemas.ProduceRequest(
            acks,
            timeout_ms,
            [schemas.ProduceTopic(topic, [schemas.ProducePartition(partition, data)])],
        )
        leader = self.leader(topic, partition) if broker is None else broker
        answer = self.call(leader, request, timeout_ms + 10000)
        if answer is None:
            return 0, -1
        result = answer.topics[0].partitions[0]
        return result.error, result.base_offset

    def put_records(self, topic: str, count: int, *, partition: int = 0, size: int = 20) -> None:
        """Acknowledged by the whole isr, 50 to a request; retried while leaders change."""
        for start in range(0, count, 50):
            values = [b"%0*d" % (size, n) for n in range(start, min(count, start + 50))]
            eventually(
                f"{count} records in {topic}",
                lambda v=values: self.produce(topic, v, partition=partition)[0] == 0,
            )

    def leader(self, topic: str, partition: int = 0) -> int:
        state = self.state(topic, partition)
        if state is None or state.leader not in self.brokers:
            raise OSError(f"{topic} has no leader: {state}")
        return state.leader

    def fetch(
        self,
        topic: str,
        offset: int,
        *,
        broker: int | None = None,
        partition: int = 0,
        replica: int = -1,
        max_bytes: int = 1 << 20,
    ) -> schemas.FetchPartitionResponse:
        request = schemas.FetchRequest(
            replica,
            0,
            0,
            [schemas.FetchTopic(topic, [schemas.FetchPartition(partition, offset, max_bytes)])],
        )
        leader = self.leader(topic, partition) if broker is None else broker
        found: schemas.FetchPartitionResponse = self.call(leader, request).topics[0].partitions[0]
        return found

    def end(
        self, topic: str, partition: int = 0, broker: int | None = None, time_: int = -1
    ) -> int:
        """The offset consumers see as the last (time -1) or first (-2); -1 when refused."""
        request = schemas.OffsetsRequest(
            -1, [schemas.OffsetsTopic(topic, [schemas.OffsetsPartition(partition, time_, 1)])]
        )
        leader = self.leader(topic, partition) if broker is None else broker
        found = self.call(leader, request).topics[0].partitions[0]
        return -1 if found.error else int(found.offsets[0])

    def read(self, topic: str, partition: int = 0, broker: int | None = None) -> list[bytes]:
        """Every value a consumer can see, and a check that offsets only grow."""
        values: list[bytes] = []
        offset = self.end(topic, partition, broker, -2)
        while True:
            answer = self.fetch(topic, offset, broker=broker, partition=partition)
            if answer.error:
                raise OSError(f"fetch of {topic} at {offset}: error {answer.error}")
            found = [m for m in iter_messages(answer.message_set) if m.offset >= offset]  # type: ignore[arg-type]
            if not found:
                if offset < answer.high_watermark:
                    raise OSError(f"nothing of {topic} at {offset} < {answer.high_watermark}")
                return values
            values += [bytes(m.value) for m in found if m.value is not None]
            offset = found[-1].offset + 1

    def await_identical(self, topic: str, partition: int = 0, ids: Iterable[int] = ()) -> bytes:
        """Until every replica's log has the same bytes; those bytes."""
        wanted = list(ids) or (self.assignment(topic) or {})[str(partition)]

        def probe() -> bool:
            logs = {self.brokers[each].log_bytes(topic, partition) for each in wanted}
            return len(logs) == 1

        eventually(f"identical logs of {topic} on {wanted}", probe)
        return self.brokers[wanted[0]].log_bytes(topic, partition)
