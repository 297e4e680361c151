from __future__ import annotations

from kafka08.common import Broker
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.rest.producing import Record, SharedProducer
from kafka08.runtime import Runtime
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.producer.fake_producer import threaded


def test_the_producer_begins_with_the_live_brokers() -> None:
    cluster = FakeCluster()
    cluster.create("t", 1)
    given: list[dict[str, str]] = []

    def make(settings: dict[str, str], runtime: Runtime) -> KafkaProducer:
        given.append(settings)
        return threaded(cluster)[0]

    live = lambda: [Broker(1, "a", 1), Broker(2, "b", 2)]  # noqa: E731
    producers = SharedProducer({"acks": "all"}, live, FakeRuntime(), make=make)
    for offset in (0, 1):
        found = producers.write("t", [Record(None, b"x")])
        assert found[0]["offset"] == offset
    producers.close(1.0)
    expected = {"acks": "all", "bootstrap.servers": "a:1,b:2", "client.id": "kafka-rest"}
    assert given == [expected]


def test_without_any_broker_every_record_fails() -> None:
    producers = SharedProducer({}, list, FakeRuntime())
    found = producers.write("t", [Record(None, b"x"), Record(None, b"y")])
    assert [each["error_code"] for each in found] == [50002, 50002]
    assert found[0]["error"] == "no broker is registered in ZooKeeper"
    producers.close(1.0)
