"""The metrics of real brokers, over HTTP.

``promtool`` of Debian's package ``prometheus`` checks the text where it is installed.
"""

from __future__ import annotations

import http.client
import json
import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Process, ZooKeeper, free_port
from integration.scrape import Samples, samples
from integration.wire import PRODUCE, entry, frame, produce_frame, string, wait_until
from kafka08.metrics import names
from kafka08.metrics.docs import declared
from kafka08.metrics.exposition import TYPES
from kafka08.metrics.registry import TEXT
from kafka08.producer.kafka_producer import KafkaProducer

pytest.importorskip("prometheus_client")
from prometheus_client.parser import text_string_to_metric_families

TOPICS = "kafka_server_brokertopicmetrics_"
REQUESTS = "kafka_network_requestmetrics_"
REQUEST_TIMED_OUT = 7


def get(port: int, path: str, timeout: float = 20, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    try:
        return answer.status, answer.read()
    finally:
        connection.close()


class Watched:
    """A broker with its listener."""

    def __init__(self, broker: Broker, port: int) -> None:
        self.broker = broker
        self.port = port

    def text(self) -> str:
        """Made now: who asks within a second of another gets the same text."""
        time.sleep(1.05)
        status, body = get(self.port, "/metrics")
        assert status == 200
        return body.decode()

    def samples(self) -> Samples:
        """Checks that no series is there twice."""
        return samples(self.text())

    def value(self, name: str, **labels: str) -> float:
        return self.samples()[name, frozenset(labels.items())]

    def has(self, name: str, label: str) -> bool:
        """Whether a series of that name has that label."""
        found = self.samples()
        return any(name == each and label in dict(labels) for each, labels in found)

    def ready(self) -> tuple[int, Any]:
        status, body = get(self.port, "/health/ready")
        return status, json.loads(body)

    def produce(self, topic: str, count: int, acks: str = "1") -> None:
        settings = {"bootstrap.servers": self.broker.address, "acks": acks, "linger.ms": "20"}
        with KafkaProducer(settings) as producer:
            for sent in [producer.send(topic, b"x" * 100) for _ in range(count)]:
                sent.get(30)


@pytest.fixture(scope="module")
def pair(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Watched, Watched]]:
    brokers = []
    for broker_id in (1, 2):
        port = free_port()
        props = {
            "http.port": port,
            "default.replication.factor": 2,
            "delete.topic.enable": "true",
            "log.cleaner.enable": "true",
            "log.cleaner.dedupe.buffer.size": 4 << 20,
            # The leader notices a silent follower before ZooKeeper does.
            "replica.lag.time.max.ms": 1000,
            "zookeeper.session.timeout.ms": 8000,
        }
        directory = tmp_path_factory.mktemp(f"metrics-{broker_id}")
        chroot = f"{zookeeper.connect}/metrics"
        broker = Broker("ours", directory, chroot, broker_id=broker_id, props=props)
        brokers.append(Watched(broker.start(), port))
    yield brokers[0], brokers[1]
    for watched in brokers:
        watched.broker.kill()


@pytest.mark.scenario("ops-1", "ops-10")
def test_what_was_produced_is_counted(pair: tuple[Watched, Watched]) -> None:
    leader, _ = pair
    leader.broker.create_topic("counted", replicas=[1, 2])
    before = leader.value(TOPICS + "messagesin_total")
    leader.produce("counted", 1000)
    found = leader.samples()
    assert found[TOPICS + "messagesin_total", frozenset({("topic", "counted")})] == 1000
    assert found[TOPICS + "messagesin_total", frozenset()] == before + 1000
    assert found[TOPICS + "bytesin_total", frozenset({("topic", "counted")})] >= 126_000
    produce = {("request", "Produce")}
    count = found[REQUESTS + "requests_total", frozenset(produce)]
    assert count == found[REQUESTS + "totaltimems_count", frozenset(produce)] > 0
    parts = (
        *("requestqueuetimems", "localtimems", "remotetimems"),
        *("responsequeuetimems", "responsesendtimems"),
    )
    total = found[REQUESTS + "totaltimems_sum", frozenset(produce)]
    in_parts = sum(found[f"{REQUESTS}{part}_sum", frozenset(produce)] for part in parts)
    assert abs(total - in_parts) <= count
    beans = json.loads(get(leader.port, "/jmx?qry=kafka.server:type=BrokerTopicMetrics,*")[1])
    named = {bean["name"]: bean for bean in beans["beans"]}
    bean = "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,topic=counted"
    assert named[bean]["Count"] == 1000


@pytest.mark.scenario("ops-1")
def test_the_text_passes_promtool(pair: tuple[Watched, Watched]) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian's package prometheus)")
    require_readable(pair[0].text())


def require_readable(text: str) -> None:
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=text.encode(), capture_output=True)
    # Status 3: promtool advises other names than those of 0.8.2.2. The text itself is right.
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert b"error while linting" not in done.stderr


@pytest.mark.scenario("ops-5")
def test_a_deleted_topic_leaves_no_series(pair: tuple[Watched, Watched]) -> None:
    first, _ = pair
    first.broker.create_topic("gone", replicas=[1, 2])
    first.produce("gone", 10)
    assert 'topic="gone"' in first.text()
    first.broker.delete_topic("gone")
    wait_until(
        "end of its series", 30, lambda: not any('topic="gone"' in each.text() for each in pair)
    )


@pytest.mark.scenario("ops-6")
def test_a_broker_that_dies_and_comes_back(pair: tuple[Watched, Watched]) -> None:
    first, second = pair
    first.broker.create_topic("pair", partitions=2, replicas=[1, 2])
    under = "kafka_server_replicamanager_underreplicatedpartitions"
    active = "kafka_controller_kafkacontroller_activecontrollercount"
    assert first.value(active) + second.value(active) == 1
    assert all(each.ready()[0] == 200 for each in pair)
    second.broker.kill()
    leads = "kafka_server_replicamanager_leadercount"
    wait_until("short isrs", 30, lambda: first.value(under) >= 2)
    assert first.value(under) <= first.value(leads)
    one_of = "kafka_cluster_partition_underreplicated"
    assert [first.value(one_of, topic="pair", partition=p) for p in "01"] == [1, 1]
    wait_until("a controller", 30, lambda: first.value(active) == 1)
    before = first.value("kafka_server_replicamanager_isrexpands_total")
    second.broker.start()
    wait_until("whole isrs", 60, lambda: first.value(under) == 0)
    assert first.value("kafka_server_replicamanager_isrexpands_total") >= before + 2
    assert second.ready()[0] == 200


@pytest.mark.scenario("ops-7")
def test_a_silent_follower_and_a_produce_that_waits_for_it(pair: tuple[Watched, Watched]) -> None:
    first, second = pair
    first.broker.create_topic("silent", replicas=[1, 2])
    first.produce("silent", 1, acks="all")
    before = first.value("kafka_server_replicamanager_isrshrinks_total")
    second.broker.pause()
    try:
        shrinks = "kafka_server_replicamanager_isrshrinks_total"
        first.produce("silent", 1, acks="all")  # waits until the follower has left the isr
        assert first.value(shrinks) > before
        produce = {"request": "Produce"}
        longest = first.value(REQUESTS + "remotetimems", **produce, quantile="0.999")
        assert longest > 500
    finally:
        second.broker.resume()


def produce_with_a_limit(broker: Broker, topic: str, timeout_ms: int) -> int:
    """The error code of a produce with acks -1 that may wait for so long."""
    sets = entry(None, b"m")
    body = struct.pack(">hii", -1, timeout_ms, 1) + string(topic)
    body += struct.pack(">iii", 1, 0, len(sets)) + sets
    with broker.wire() as wire:
        return int(struct.unpack(">hq", wire.call(frame(PRODUCE, body))[-10:])[0])


@pytest.mark.scenario("ops-7")
def test_a_produce_that_a_silent_follower_lets_time_out(pair: tuple[Watched, Watched]) -> None:
    """Its limit is shorter than the lag after which the follower leaves the isr."""
    first, second = pair
    first.broker.create_topic("late", replicas=[1, 2])
    first.produce("late", 1, acks="all")
    expired = "kafka_server_delayedproducerrequestmetrics_expires_total"
    before = first.value(expired)
    second.broker.pause()
    try:
        assert produce_with_a_limit(first.broker, "late", 100) == REQUEST_TIMED_OUT
    finally:
        second.broker.resume()
    assert first.value(expired) == before + 1
    assert first.value(expired, topic="late", partition="0") == 1


@pytest.mark.scenario("ops-3")
def test_every_declared_series_appears(pair: tuple[Watched, Watched]) -> None:
    """With its type, and each of its labels on some series; but for that of listeners with TLS,
    which these brokers do not have."""
    first, second = pair
    first.broker.create_topic("all", replicas=[1, 2])
    first.produce("all", 10, acks="all")
    with first.broker.wire() as wire:
        wait_until("the coordinator", 60, lambda: not wire.coordinator_error("all"))
        # The other broker coordinates about half of the groups.
        groups = [f"all-{number}" for number in range(10)]
        wait_until("a commit", 60, lambda: not all(wire.commit(g, "all", 0, 1) for g in groups))
        wire.read_all("all", 0)
    if not first.has("kafka_server_delayedproducerrequestmetrics_expires_total", "topic"):
        second.broker.pause()
        try:
            assert produce_with_a_limit(first.broker, "all", 100) == REQUEST_TIMED_OUT
        finally:
            second.broker.resume()
    types: dict[str, str] = {}
    labels: dict[str, set[str]] = {}
    for watched in pair:
        for family in text_string_to_metric_families(watched.text()):
            for sample in family.samples:
                types[sample.name] = family.type
                labels.setdefault(sample.name, set()).update(sample.labels)
    for metric in declared():
        if metric is names.CERTIFICATE_END:
            continue
        kind = TYPES[metric.kind]
        wanted = {label for label, _ in metric.labels} or set(metric.tags)
        wanted |= {"version"} if metric.kind == TEXT else set()
        ends = ("_count", "_sum", "") if kind == "summary" else ("",)
        for name in [metric.name + end for end in ends]:
            assert types.get(name) == kind, name
            quantile = {"quantile"} if kind == "summary" and name == metric.name else set()
            assert labels[name] == wanted | quantile, name


@pytest.mark.scenario("ops-8")
def test_unclean_elections_are_counted(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Both brokers are killed in turn, and the one with less starts alone."""
    chroot = f"{zookeeper.connect}/unclean"
    brokers = []
    for broker_id in (1, 2):
        port = free_port()
        props = {"http.port": port, "zookeeper.session.timeout.ms": 4000}
        broker = Broker(
            "ours", tmp_path / str(broker_id), chroot, broker_id=broker_id, props=props
        )  # fmt: skip
        launch(broker)
        brokers.append(Watched(broker.start(), port))
    first, second = brokers
    unclean = "kafka_controller_controllerstats_uncleanleaderelections_total"
    first.broker.create_topic("lost", partitions=3, replicas=[1, 2])
    first.broker.create_topic("kept", replicas=[1])
    first.produce("lost", 10, acks="all")
    assert first.value(unclean) == second.value(unclean) == 0
    second.broker.kill()
    first.produce("lost", 10, acks="all")  # waits for the end of its session
    first.broker.kill()
    second.broker.start()
    second.broker.wait_for_leader("lost", 3)
    assert second.value(unclean) == 3
    offline = "kafka_controller_kafkacontroller_offlinepartitionscount"
    assert second.value(offline) == 1
    assert second.value("kafka_controller_kafkacontroller_activecontrollercount") == 1


IDLE: tuple[tuple[str, dict[str, str]], ...] = (
    ("kafka_network_socketserver_networkprocessoravgidle_percent", {}),
    ("kafka_network_socketserver_idle_percent", {"networkProcessor": "0"}),
    ("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", {}),
)


def alone(
    name: str, zookeeper: ZooKeeper, directory: Path, launch: Callable[[Process], None]
) -> Watched:
    """A broker in a cluster of its own, started."""
    port = free_port()
    connect = f"{zookeeper.connect}/{name}"
    broker = Broker("ours", directory / name, connect, props={"http.port": port})
    launch(broker)
    return Watched(broker.start(), port)


@pytest.mark.scenario("ops-9")
def test_idle_shares_of_an_idle_broker_and_under_load(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    watched = alone("idle", zookeeper, tmp_path, launch)
    broker = watched.broker
    broker.create_topic("busy")

    def shares() -> list[float]:
        found = watched.samples()
        values = [found[name, frozenset(labels.items())] for name, labels in IDLE]
        assert all(0 <= each <= 1 for each in values)
        return values

    wait_until("an idle broker", 240, lambda: min(shares()) >= 0.9)
    over = threading.Event()

    def produce() -> None:
        request = produce_frame("busy", 0, entry(None, b"x" * 100) * 100, 1)
        with broker.wire() as wire:
            while not over.is_set():
                wire.call(request)

    threads = [threading.Thread(target=produce) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        wait_until("a busy broker", 120, lambda: max(shares()) < 0.7)
    finally:
        over.set()
        for thread in threads:
            thread.join()


class Scraper(threading.Thread):
    """Asks again and again until it is over; keeps the texts, those that came again left out."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self.over = threading.Event()
        self.texts: list[bytes] = []
        self.failed: list[object] = []

    def run(self) -> None:
        while not self.over.is_set() and not self.failed:
            try:
                status, body = get(self._port, "/metrics", timeout=120)
            except Exception as error:
                self.failed.append(error)
                return
            if status != 200:
                self.failed.append((status, body))
            elif body not in self.texts[-1:]:
                self.texts.append(body)


@pytest.mark.scenario("ops-12")
def test_two_scrapers_of_1000_partitions_under_load(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """`make bench WHAT=metrics` measures the rate; here no scrape and no produce fails."""
    watched = alone("many", zookeeper, tmp_path, launch)
    broker, port = watched.broker, watched.port
    for number in range(10):
        broker.create_topic(f"many{number}", partitions=100)
    scrapers = [Scraper(port), Scraper(port)]
    settings = {"bootstrap.servers": broker.address, "acks": "1", "linger.ms": "5"}
    sent = 0
    with KafkaProducer(settings) as producer:
        for scraper in scrapers:
            scraper.start()
        try:

            def seen() -> bool:
                nonlocal sent
                futures = [producer.send(f"many{number}", b"x" * 1000) for number in range(10)]
                for future in futures:
                    future.get(120)
                sent += len(futures)
                assert [each.failed for each in scrapers] == [[], []]
                return all(len(each.texts) >= 5 for each in scrapers)

            wait_until("five texts for each", 300, seen)
        finally:
            for scraper in scrapers:
                scraper.over.set()
    for scraper in scrapers:
        scraper.join(120)
        assert not scraper.is_alive()
        assert scraper.failed == []
        counts = []
        for text in scraper.texts:
            families = {each.name: each for each in text_string_to_metric_families(text.decode())}
            assert len(families["kafka_log_log_logendoffset"].samples) == 1000
            counts += [
                sample.value
                for sample in families["kafka_server_brokertopicmetrics_messagesin"].samples
                if not sample.labels
            ]
        # The produces went on meanwhile.
        assert len(counts) == len(scraper.texts)
        assert counts == sorted(counts)
        assert counts[0] < counts[-1] <= sent
    assert Watched(broker, port).value(TOPICS + "messagesin_total") == sent


def test_a_page_for_other_dashboards_and_without_partitions(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    port = free_port()
    props = {
        "http.port": port,
        "metrics.bean.names": "true",
        "metrics.partitions": "false",
        "min.insync.replicas": 1,
    }
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/names", props=props)
    launch(broker)
    watched = Watched(broker.start(), port)
    broker.create_topic("counted", partitions=3)
    watched.produce("counted", 10)
    found = watched.samples()
    topic = frozenset({("topic", "counted")})
    assert found[TOPICS + "messagesinpersec", topic] == 10
    assert found[TOPICS + "messagesin_total", topic] == 10
    assert found[TOPICS + "totalproducerequestspersec", topic] > 0
    assert not [each for each in found if "partition" in dict(each[1])]
    for name, value in (("globaltopiccount", 1), ("globalpartitioncount", 3)):
        assert found[f"kafka_controller_kafkacontroller_{name}", frozenset()] == value
    assert found["kafka_server_socket_server_metrics_connection_count", frozenset()] > 0
    if shutil.which("promtool"):
        require_readable(watched.text())
