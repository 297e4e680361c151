"""The performance tools beside the original's: lines of the same shape, numbers that are right."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest

from integration.harness import Broker, Result, Tools
from kafka08.producer.kafka_producer import KafkaProducer

pytestmark = pytest.mark.original

MESSAGES = 3000


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tools, Tools]:
    return (
        Tools("ours", tmp_path_factory.mktemp("ours")),
        Tools("original", tmp_path_factory.mktemp("original")),
    )


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    name = f"perf-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name)
    with KafkaProducer(bootstrap_servers=broker.address) as producer:
        for _ in range(MESSAGES):
            producer.send(name, b"x" * 100)
    return name


def shapes(result: Result) -> set[str]:
    """The lines with every number made alike."""
    assert result.code == 0, result.err
    return {re.sub(r"\d+", "9", re.sub(r"Infinity|NaN", "9.9", line)) for line in result.lines}


def check(both: tuple[Tools, Tools], class_name: str, *args: str) -> list[str]:
    """Run both; the lines of ours."""
    ours, theirs = (tools.run(class_name, *args) for tools in both)
    assert shapes(ours) == shapes(theirs)
    return ours.lines


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--hide-header", "--sync", "--threads", "2"],
        ["--new-producer", "--compression-codec", "2"],
        ["--vary-message-size", "--date-format", "HH:mm 'Uhr' yyyy"],
        ["--initial-message-id", "5", "--request-num-acks", "1"],
    ],
    ids=lambda args: " ".join(args) or "plain",
)
def test_producer(broker: Broker, both: tuple[Tools, Tools], args: list[str]) -> None:
    name = f"sent-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name)
    where = ["--broker-list", broker.address, "--topics", name, "--messages", "500"]
    row = check(both, "kafka.tools.ProducerPerformance", *where, *args)[-1].split(", ")
    assert row[2:5] == [args[-1] if "--compression-codec" in args else "0", "100", "200"]
    assert row[7] == "500"
    with broker.wire() as wire:
        assert wire.offset(name, 0) == 1000
        if "--initial-message-id" in args:
            values = [entry.value for entry in wire.read_all(name, 0)]
            # Each tool sends the same numbers, whatever the order.
            assert sorted(values[:500]) == sorted(values[500:])  # type: ignore[type-var]


@pytest.mark.parametrize(
    "args",
    [
        [],
        pytest.param(
            ["--show-detailed-stats", "--reporting-interval", "1000"], marks=pytest.mark.slow
        ),
        pytest.param(["--hide-header"], marks=pytest.mark.slow),
    ],
)
def test_consumer(broker: Broker, topic: str, both: tuple[Tools, Tools], args: list[str]) -> None:
    where = ["--zookeeper", broker.zookeeper, "--topic", topic, "--threads", "1"]
    where += ["--messages", str(MESSAGES)]
    rows = check(both, "kafka.tools.ConsumerPerformance", *where, *args)
    assert rows[-1].split(", ")[5] == str(MESSAGES)


@pytest.mark.parametrize("args", [[], ["--show-detailed-stats", "--reporting-interval", "500"]])
def test_simple_consumer(
    broker: Broker, topic: str, both: tuple[Tools, Tools], args: list[str]
) -> None:
    where = ["--server", f"kafka://127.0.0.1:{broker.port}", "--topic", topic]
    rows = check(both, "kafka.tools.SimpleConsumerPerformance", *where, *args)
    if not args:
        assert rows[-1].split(", ")[5] == str(MESSAGES)


def test_new_producer(broker: Broker, topic: str, both: tuple[Tools, Tools]) -> None:
    name = f"new-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name)
    args = [name, "2000", "100", "20000", f"bootstrap.servers={broker.address}"]
    check(both, "org.apache.kafka.clients.tools.ProducerPerformance", *args)


@pytest.mark.slow
def test_end_to_end_latency(broker: Broker, both: tuple[Tools, Tools]) -> None:
    name = f"latency-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name)
    args = [broker.address, broker.zookeeper, name, "100", "100", "1"]
    check(both, "kafka.tools.TestEndToEndLatency", *args)


@pytest.mark.parametrize("args", [pytest.param([], marks=pytest.mark.slow), ["--new-producer"]])
def test_metrics_as_csv(
    broker: Broker, both: tuple[Tools, Tools], tmp_path: Path, args: list[str]
) -> None:
    """The original's files that are there have the same columns."""
    found = []
    for tools in both:
        name = f"csv-{uuid.uuid4().hex[:8]}"
        broker.create_topic(name)
        directory = tmp_path / tools.kind
        where = ["--broker-list", broker.address, "--topics", name, "--messages", "150"]
        where += ["--message-send-gap-ms", "10", "--csv-reporter-enabled"]
        done = tools.run(
            "kafka.tools.ProducerPerformance", *where, "--metrics-dir", str(directory), *args
        )
        assert done.code == 0, done.err
        found.append({path.name: path.read_text().splitlines() for path in directory.iterdir()})
    ours, theirs = found
    assert ours["MessagesPerSec.csv"][-1].split(",")[1] == "150"
    assert ours["BytesPerSec.csv"][-1].split(",")[1] == "15000"
    for file in ours.keys() & theirs.keys():
        assert ours[file][0] == theirs[file][0]
        assert ours[file][-1].count(",") == ours[file][0].count(",")
    if args:
        assert "record-send-total.csv" in ours
