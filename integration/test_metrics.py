"""The metrics and the health of real brokers, over HTTP.

``promtool`` of Debian's package ``prometheus`` checks the text where it is installed.
"""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, ZooKeeper, free_port
from integration.wire import wait_until
from kafka08.producer.kafka_producer import KafkaProducer

pytest.importorskip("prometheus_client")
from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
TOPICS = "kafka_server_brokertopicmetrics_"
REQUESTS = "kafka_network_requestmetrics_"


def get(port: int, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
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
        found: Samples = {}
        for family in text_string_to_metric_families(self.text()):
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                assert key not in found
                found[key] = sample.value
        return found

    def value(self, name: str, **labels: str) -> float:
        return self.samples()[name, frozenset(labels.items())]

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


def test_the_text_passes_promtool(pair: tuple[Watched, Watched]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian's package prometheus)")
    text = pair[0].text().encode()
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True)
    # Status 3: promtool advises other names than those of 0.8.2.2. The text itself is right.
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert b"error while linting" not in done.stderr


def test_a_deleted_topic_leaves_no_series(pair: tuple[Watched, Watched]) -> None:
    first, _ = pair
    first.broker.create_topic("gone", replicas=[1, 2])
    first.produce("gone", 10)
    assert 'topic="gone"' in first.text()
    first.broker.delete_topic("gone")
    wait_until(
        "end of its series", 30, lambda: not any('topic="gone"' in each.text() for each in pair)
    )


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


def test_a_broker_without_zookeeper_is_alive_and_not_ready(tmp_path: Path) -> None:
    zookeeper = ZooKeeper(tmp_path / "zookeeper").start()
    port = free_port()
    props = {"http.port": port, "controlled.shutdown.enable": "false"}
    broker = Broker("ours", tmp_path / "broker", zookeeper.connect, props=props).start()
    watched = Watched(broker, port)
    try:
        wait_until("a controller", 30, lambda: watched.ready()[1].get("broker_state") == 4)
        zookeeper.kill()
        wait_until("the end of the session", 30, lambda: watched.ready()[0] == 503)
        assert watched.ready()[1]["reasons"] == ["ZooKeeper is out of reach"]
        assert get(port, "/health/live")[0] == 200
    finally:
        broker.kill()
        zookeeper.kill()
