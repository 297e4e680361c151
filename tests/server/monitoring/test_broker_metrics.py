"""The values of a broker's metrics, from the parts that count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.cluster.partition import Partition
from kafka08.common import OFFSETS_TOPIC, Broker, TopicPartition
from kafka08.controller.context import ControllerContext, ControllerStats, LeaderAndIsr, LiveBroker
from kafka08.controller.states import PartitionState
from kafka08.errors import NO_ERROR
from kafka08.groups.records import Committed, GroupPartition
from kafka08.message.compression import GZIP
from kafka08.metrics.exposition import PLAIN, Exposition
from kafka08.metrics.meters import Timer
from kafka08.metrics.registry import AT_ONCE, Registry, Series
from kafka08.metrics.requests import PARTS, RequestMetrics
from kafka08.network.peer import Peer, current_peer
from kafka08.protocol.schemas import PartitionStateInfo
from kafka08.server.monitoring import broker_metrics
from kafka08.server.monitoring.health import Health
from kafka08.server.replication.isr import IsrMaintenance
from tests.message.sets import wrapper
from tests.server.support import ME, PEER, Rig, message_set

TOPIC = "kafka_server_brokertopicmetrics_"


class Metrics:
    """The series of a rig's broker."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        zk: Any = rig.zk
        self.isr = IsrMaintenance(rig.config, rig.runtime, zk, rig.replicas, rig.effects)
        self.registry = Registry(rig.runtime)
        broker_metrics.add_logs(self.registry, rig.logs)
        broker_metrics.add_replicas(self.registry, rig.replicas, self.isr)
        broker_metrics.add_offsets(self.registry, rig.offsets)

    def all(self) -> list[Series]:
        return [series for _, piece in self.registry.pieces() for series in piece]

    def value(self, name: str, **labels: str) -> Any:
        [found] = [
            each for each in self.all() if each.metric.name == name and each.labels == labels
        ]
        return getattr(found.value, "count", found.value)


@pytest.fixture
def metrics(rig: Rig) -> Metrics:
    return Metrics(rig)


@pytest.fixture
def peer() -> Iterator[Peer]:
    """Requests of the test come from it."""
    peer = Peer("127.0.0.1:1")
    token = current_peer.set(peer)
    yield peer
    current_peer.reset(token)


@pytest.mark.scenario("ops-1")
def test_produced_messages_and_their_bytes(rig: Rig, metrics: Metrics) -> None:
    rig.lead()
    data = message_set("a", "b", "c")
    rig.produce(("t", 0, data))
    for labels in ({}, {"topic": "t"}):
        assert metrics.value(TOPIC + "messagesin_total", **labels) == 3
        assert metrics.value(TOPIC + "bytesin_total", **labels) == len(data)
    assert metrics.value("kafka_log_log_logendoffset", topic="t", partition="0") == 3
    assert metrics.value("kafka_log_log_size", topic="t", partition="0") == len(data)
    assert metrics.value("kafka_log_log_numlogsegments", topic="t", partition="0") == 1


@pytest.mark.scenario("ops-4")
def test_messages_inside_others_count_and_bytes_are_those_of_the_wire(
    rig: Rig, metrics: Metrics
) -> None:
    rig.lead()
    data = wrapper(message_set(*(["x" * 100] * 50)), codec=GZIP)
    rig.produce(("t", 0, data))
    assert metrics.value(TOPIC + "messagesin_total", topic="t") == 50
    assert metrics.value(TOPIC + "bytesin_total", topic="t") == len(data) < 2000


@pytest.mark.scenario("ops-2")
def test_commits_count_as_messages_of_the_offsets_topic(rig: Rig, metrics: Metrics) -> None:
    """As in 0.8.2.2. The tombstones of expired offsets do not."""
    offsets = rig.offsets.partition_for("g")
    rig.lead(*offsets)
    rig.runtime.run_spawned()
    commits = {GroupPartition("g", "t", number): Committed(1, "", 0) for number in (0, 1)}
    assert rig.offsets.commit("g", commits) == NO_ERROR
    size = rig.replicas.partition(offsets).leader_log().size
    rig.clock.advance(10 * rig.config.offsets_retention_minutes * 60)
    rig.offsets.expire()
    assert rig.replicas.partition(offsets).leader_log().log_end_offset == 4
    for labels in ({}, {"topic": OFFSETS_TOPIC}):
        assert metrics.value(TOPIC + "messagesin_total", **labels) == 2
        assert metrics.value(TOPIC + "bytesin_total", **labels) == size > 0


def test_refused_sets(rig: Rig, metrics: Metrics) -> None:
    rig.topic_settings["t"] = {"max.message.bytes": "50"}
    rig.lead()
    data = message_set("x" * 100)
    answer = rig.produce(("t", 0, data), ("unknown", 0, data))
    assert answer is not None and answer[("t", 0)][0] == 10
    assert metrics.value(TOPIC + "bytesrejected_total", topic="t") == len(data)
    assert metrics.value(TOPIC + "failedproducerequests_total") == 1
    assert metrics.value(TOPIC + "totalproducerequests_total") == 1
    assert metrics.value(TOPIC + "messagesin_total") == 0
    assert not [each for each in metrics.all() if each.labels.get("topic") == "unknown"]


def test_bytes_to_consumers_and_to_followers_are_apart(rig: Rig, metrics: Metrics) -> None:
    rig.lead(replicas=[ME, PEER])
    rig.append("a")
    size = len(rig.fetch(("t", 0, 0, 1000), replica_id=PEER)[("t", 0)][2])
    rig.fetch(("t", 0, 1, 1000), replica_id=PEER)
    rig.fetch(("t", 0, 0, 1000))
    rig.fetch(("t", 0, 0, 1000))
    assert metrics.value(TOPIC + "bytesout_total", topic="t") == 2 * size
    assert metrics.value(TOPIC + "replicationbytesout_total", topic="t") == size
    rig.fetch(("t", 0, 99, 1000), ("unknown", 0, 0, 1000))
    assert metrics.value(TOPIC + "totalfetchrequests_total") == 4
    assert metrics.value(TOPIC + "totalfetchrequests_total", topic="t") == 4


def test_failed_reads(rig: Rig, metrics: Metrics) -> None:
    rig.lead()
    rig.follow("f")
    rig.fetch(("t", 0, 99, 1000), ("f", 0, 0, 1000), ("unknown", 0, 0, 1000))
    assert metrics.value(TOPIC + "failedfetchrequests_total") == 1
    assert metrics.value(TOPIC + "failedfetchrequests_total", topic="t") == 1


@pytest.mark.scenario("ops-6")
def test_partitions_by_role(rig: Rig, metrics: Metrics) -> None:
    rig.lead(replicas=[ME, PEER], isr=[ME])
    rig.lead("u")
    rig.follow("f")
    manager = "kafka_server_replicamanager_"
    assert metrics.value(manager + "leadercount") == 2
    assert metrics.value(manager + "partitioncount") == 3
    assert metrics.value(manager + "underreplicatedpartitions") == 1
    one_of = "kafka_cluster_partition_underreplicated"
    assert [metrics.value(one_of, topic=topic, partition="0") for topic in "tuf"] == [1, 0, 0]


@pytest.mark.scenario("ops-7")
def test_produces_that_are_not_acknowledged_in_time(rig: Rig, metrics: Metrics) -> None:
    rig.lead(replicas=[ME, PEER])
    rig.produce(("t", 0, message_set("a")), acks=-1, timeout_ms=100)
    name = "kafka_server_delayedproducerrequestmetrics_expires_total"
    assert metrics.value(name) == metrics.value(name, topic="t", partition="0") == 1


@pytest.mark.scenario("ops-11")
def test_a_long_poll_without_data(rig: Rig, metrics: Metrics, peer: Peer) -> None:
    rig.lead()
    peer.read_at = peer.begun_at = rig.runtime.clock.monotonic()
    rig.fetch(("t", 0, 0, 1000), max_wait_ms=500, min_bytes=1)
    assert metrics.value("kafka_server_delayedfetchrequestmetrics_consumerexpires_total") == 1
    meter, queued, local, remote, _ = peer.unsent[-1]
    assert meter is rig.dispatcher.metrics.fetch_consumer
    assert (queued, local, remote) == (0.0, 0.0, 0.5)


@pytest.mark.scenario("ops-10")
def test_produces_that_wait_for_followers(rig: Rig, metrics: Metrics, peer: Peer) -> None:
    partition = rig.lead(replicas=[ME, PEER])
    clock, follower = rig.runtime.clock, Peer("127.0.0.1:2")

    def follow() -> None:
        clock.advance(0.2)
        token = current_peer.set(follower)
        rig.fetch(("t", 0, partition.any_log().log_end_offset, 1000), replica_id=PEER)
        current_peer.reset(token)

    for _ in range(100):
        peer.read_at = peer.begun_at = clock.monotonic()
        rig.runtime.while_waiting = [follow]
        answer = rig.produce(("t", 0, message_set("a")), acks=-1)
        assert answer is not None and answer[("t", 0)][0] == 0
    for meter, queued, local, remote, over in peer.unsent:
        meter.record(queued, local, remote, clock.monotonic() - over, 0.0)
    produce = dict(rig.dispatcher.metrics.items())["Produce"]
    assert (produce.requests.count, produce.total_time.count) == (100, 100)
    assert produce.total_time.quantiles((0.5,))[0] >= 200
    assert produce.remote_time.quantiles((0.5,))[0] == pytest.approx(200, rel=0.07)
    sums = [getattr(produce, part).sum for part in PARTS]
    assert sum(sums[:-1]) == pytest.approx(sums[-1], abs=1)


def test_requests_without_an_answer_are_counted_at_once(
    rig: Rig, metrics: Metrics, peer: Peer
) -> None:
    rig.lead()
    rig.produce(("t", 0, message_set("a")), acks=0)
    assert rig.dispatcher.metrics.of(0, "Produce").requests.count == 1
    assert [name for name, meter in rig.dispatcher.metrics.items() if meter.requests.count] == [
        "Produce"
    ]


@pytest.mark.scenario("ops-5")
def test_series_end_with_their_topic(rig: Rig, metrics: Metrics) -> None:
    rig.lead()
    rig.append("a")
    assert [each for each in metrics.all() if each.labels.get("topic") == "t"]
    key = TopicPartition("t", 0)
    del rig.replicas.partitions[key]
    rig.logs.delete_log(key)
    rig.replicas.counts.keep(rig.replicas.partitions)
    assert not [each for each in metrics.all() if each.labels.get("topic") == "t"]
    assert metrics.value(TOPIC + "messagesin_total") == 1


class Elected:
    """A controller with two partitions: one is led by a dead broker, one not by its first."""

    def __init__(self) -> None:
        self.stats = ControllerStats()
        self.context: ControllerContext | None = ControllerContext(self.stats)
        context = self.context
        context.brokers[ME] = LiveBroker(Broker(ME, "h", 1), 0)
        for topic, leader in (("dead", PEER), ("moved", ME)):
            key = TopicPartition(topic, 0)
            context.assign(key, (PEER, ME))
            context.leadership[key] = LeaderAndIsr(leader, 0, (leader,), 1, 0)
            context.set_partition_state(key, PartitionState.ONLINE)


@pytest.mark.scenario("ops-6", "ops-8")
def test_the_controller_s_view(rig: Rig) -> None:
    registry, controller = Registry(rig.runtime), Elected()
    given: Any = controller
    broker_metrics.add_controller(registry, given)

    def values() -> list[Any]:
        found = [piece[0] for _, piece in registry.pieces()]
        return [each.value for each in found if each.metric.kind == "gauge"]

    assert values() == [1, 1, 1, 2, 2]
    controller.context = None
    assert values() == [0, 0, 0, 0, 0]


def test_what_under_replicated_means() -> None:
    assert not broker_metrics.is_under_replicated(Partition(TopicPartition("t", 0), ME))


@pytest.mark.scenario("ops-20")
def test_without_zookeeper_or_a_disk_a_broker_is_not_ready(rig: Rig) -> None:
    health = Health()
    health.runs(bool)
    broker_metrics.add_checks(health, rig.replicas, rig.logs)
    assert health.reasons() == []
    rig.replicas.fence(True)
    assert health.reasons() == ["ZooKeeper is out of reach"]
    rig.replicas.fence(False)
    rig.logs.take_offline(str(rig.directory))
    assert health.reasons() == [f"data directories have failed: {rig.directory}"]


def test_isrs_beside_what_acks_all_needs(rig: Rig, metrics: Metrics) -> None:
    rig.lead("enough", isr=(ME, PEER))
    rig.lead("alone", isr=(ME,))
    prefix = "kafka_server_replicamanager_"

    def counts() -> tuple[int, int]:
        return tuple(  # type: ignore[return-value]
            metrics.value(f"{prefix}{kind}minisrpartitioncount") for kind in ("under", "at")
        )

    def of_each(kind: str) -> list[float]:
        name = f"kafka_cluster_partition_{kind}"
        return [metrics.value(name, topic=topic, partition="0") for topic in ("enough", "alone")]

    assert counts() == (0, 1)
    for topic in ("enough", "alone"):
        log = rig.replicas.partition(TopicPartition(topic, 0)).leader_log()
        log.config = log.config.override({"min.insync.replicas": "2"})
    assert counts() == (1, 1)
    assert (of_each("underminisr"), of_each("atminisr")) == ([0, 1], [1, 0])
    assert of_each("insyncreplicascount") == [2, 1]
    for topic in ("enough", "alone"):
        rig.follow(topic)
    assert counts() == (0, 0)
    assert of_each("underminisr") == of_each("atminisr") == of_each("insyncreplicascount") == [0, 0]


def test_whether_zookeeper_is_in_reach(rig: Rig, metrics: Metrics) -> None:
    name = "kafka_server_sessionexpirelistener_zookeeperoutofreach"
    assert metrics.value(name) == 0
    rig.replicas.fence(True)
    assert metrics.value(name) == 1


def full(rig: Rig, count: int) -> Registry:
    """The metrics of a broker that leads so many partitions, ten a topic, and is the controller."""
    registry, controller = Registry(rig.runtime), Elected()
    keys = [TopicPartition(f"topic-{number // 10}", number % 10) for number in range(count)]
    state = PartitionStateInfo("t", 0, 9, ME, 0, [ME], 1, [ME, PEER])
    rig.lead("its-log-for-all")
    log = rig.replicas.partition(TopicPartition("its-log-for-all", 0)).leader_log()
    logs: Any = SimpleNamespace(
        logs=dict.fromkeys(keys, log),
        flush_times=Timer(),
        cleaner=None,
        log_dirs=[],
        failed_dirs=[],
    )
    assert controller.context is not None
    for key in keys:
        partition = rig.replicas.partitions[key] = Partition(key, ME)
        partition.open_log(log, 0)
        partition.make_leader(state, rig.runtime.clock.monotonic())
        rig.replicas.counts.topics.of(key.topic)
        controller.context.assign(key, (ME, PEER))
        controller.context.leadership[key] = LeaderAndIsr(ME, 0, (ME,), 1, 0)
    zk: Any = rig.zk
    given: Any = controller
    isr = IsrMaintenance(rig.config, rig.runtime, zk, rig.replicas, rig.effects)
    broker_metrics.add_process(registry)
    broker_metrics.add_logs(registry, logs)
    broker_metrics.add_replicas(registry, rig.replicas, isr)
    broker_metrics.add_offsets(registry, rig.offsets)
    server: Any = SimpleNamespace(backlog=lambda: (0, 0, 0), connections=0)
    broker_metrics.add_requests(registry, server, RequestMetrics())
    broker_metrics.add_controller(registry, given)
    return registry


def pieces(rig: Rig, registry: Registry) -> tuple[list[float], int]:
    """The seconds of this thread between two points at which others run during a scrape, and the
    bytes of the text."""
    times = [time.thread_time()]
    rig.runtime.on_sleep = lambda seconds: times.append(time.thread_time())
    text = Exposition(rig.runtime, registry).text(PLAIN)
    times.append(time.thread_time())
    return [after - before for before, after in pairwise(times)], len(text)


@pytest.mark.scenario("ops-12")
def test_others_run_after_each_piece_of_a_scrape(rig: Rig) -> None:
    pytest.importorskip("prometheus_client")
    registry = full(rig, 1000)
    sizes = [len(piece) for _, piece in registry.pieces()]
    assert max(sizes) == AT_ONCE
    assert sum(sizes) > 5000
    times, _ = pieces(rig, registry)
    assert len(times) > len(sizes)


@pytest.mark.scenario("ops-12")
def test_no_piece_of_a_scrape_holds_the_loop(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("prometheus_client")
    registry = full(rig, 1000)
    pieces(rig, registry)
    found = [pieces(rig, registry) for _ in range(3)]
    assert found[0][1] > 400_000
    assert min(max(times) for times, _ in found) < 0.05
    assert not caplog.messages  # none was left out
