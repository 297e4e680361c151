"""Tools and connectors with brokers that have only a listener for logins over TLS, and rules."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.closed import OFFSETS, WAIT_S, Place
from integration.harness import HOME, Process, Tools, ZooKeeper, properties
from integration.sasl import USERS
from integration.test_connect import STRINGS
from integration.test_data_movers import MIRROR
from integration.wire import wait_until

PRODUCER_TEST = "kafka.tools.ProducerPerformance"
CONSUMER_TEST = "kafka.tools.ConsumerPerformance"
Launch = Callable[[Process], None]


@pytest.fixture(scope="module")
def place(
    zookeeper: ZooKeeper, our_tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("closed")
    made = Place(directory, f"{zookeeper.connect}/closed", our_tools, ("one", "two"))
    try:
        made.start()
        made.create("alice-perf", "alice-mirror", "alice-lines", "secret")
        yield made
        for broker in made.brokers:
            assert not any(password in broker.log for password in USERS.values())
    finally:
        made.kill()


@pytest.mark.parametrize("new", [(), ("--new-producer",)], ids=["scala", "new"])
def test_perf_tools_and_offsets(place: Place, tmp_path: Path, new: tuple[str, ...]) -> None:
    broker = place.brokers[0]
    before = int(place.end(broker, "alice-perf", tmp_path).out.rpartition(":")[2])
    config = place.file(tmp_path / "producer.properties")
    where = ["--broker-list", broker.address, "--messages", "500", "--producer.config", config]
    sent = place.run(PRODUCER_TEST, *where, "--topics", "alice-perf", *new)
    assert sent.code == 0, sent.err
    assert sent.lines[-1].split(", ")[7] == "500"
    assert place.has(broker, "alice-perf", before + 500, tmp_path)

    config = place.file(tmp_path / "consumer.properties", group_id=f"alice-{len(new)}")
    where = ["--zookeeper", broker.zookeeper, "--threads", "1", "--consumer.config", config]
    words = ["--topic", "alice-perf", "--messages", str(before + 500)]
    read = place.run(CONSUMER_TEST, *where, *words)
    assert read.code == 0, read.err
    assert read.lines[-1].split(", ")[5] == str(before + 500)


def test_offsets_of_a_topic_that_is_not_for_alice(place: Place, tmp_path: Path) -> None:
    refused = place.end(place.brokers[0], "secret", tmp_path)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "Error: topic secret: TopicAuthorizationFailed\n"


def test_offsets_without_a_login(place: Place, tmp_path: Path) -> None:
    broker = place.brokers[0]
    words = ("--broker-list", broker.address, "--topic", "alice-perf", "--time", "-1")
    refused = place.run(OFFSETS, *words)
    assert (refused.code, refused.out) == (1, "")
    assert "fetching topic metadata" in refused.err


def test_mirror_maker(place: Place, tmp_path: Path, launch: Launch) -> None:
    """Producers that try again may leave a record twice."""
    source, target = place.brokers
    place.send("alice-mirror", *(b"%d" % number for number in range(200)))
    reading = {
        "group.id": "alice-mirrors",
        "zookeeper.connect": source.zookeeper,
        "auto.offset.reset": "smallest",
        "offsets.storage": "kafka",
        "auto.commit.interval.ms": 200,
    }
    words = ["--consumer.config", place.file(tmp_path / "consumer.properties", **reading)]
    writing = {"metadata.broker.list": target.address}
    words += ["--producer.config", place.file(tmp_path / "producer.properties", **writing)]
    mirror = place.tools.background(MIRROR, *words, "--whitelist", "alice-mirror")
    launch(mirror)
    copied = functools.partial(place.length, target, "alice-mirror", tmp_path)
    wait_until("a copy", WAIT_S, lambda: copied() >= 200)
    mirror.stop()
    before = copied()
    # It goes on where it ended.
    place.send("alice-mirror", b"last")
    again = place.tools.background(MIRROR, *words, "--whitelist", "alice-mirror")
    launch(again)
    wait_until("one more", WAIT_S, lambda: copied() > before)
    again.stop()
    assert copied() - before < 200
    assert copied() - before < 200  # it did not begin again


def test_connectors(place: Place, tmp_path: Path, launch: Launch) -> None:
    """A file into a topic into a file; and a task that may not write says so, and ends."""
    broker = place.brokers[0]
    worker = {
        "bootstrap.servers": broker.address,
        "key.converter": STRINGS,
        "value.converter": STRINGS,
        "offset.storage.file.filename": tmp_path / "connect.offsets",
        "offset.flush.interval.ms": 200,
    }
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\ntwo\nthree\n")

    def connector(name: str, kind: str, **values: object) -> str:
        path = tmp_path / f"{name}.properties"
        path.write_text(properties({"name": name, "connector.class": kind, **values}))
        return str(path)

    command = [
        str(HOME / "bin" / "connect-standalone.sh"),
        place.file(tmp_path / "worker.properties", **worker),
        connector("alice-in", "FileStreamSource", file=source, topic="alice-lines"),
        connector("lines", "FileStreamSink", file=sink, topics="alice-lines"),
        connector("denied", "FileStreamSource", file=source, topic="secret"),
    ]
    process = Process("connect", command, tmp_path / "worker")
    process.spawn()
    launch(process)
    wait_until(
        "three lines", WAIT_S, lambda: sink.exists() and sink.read_text() == source.read_text()
    )
    process.wait_for("No metadata for topic secret: code 29", WAIT_S)
    process.stop()
    assert not any(password in process.log for password in USERS.values())
    assert place.has(broker, "alice-lines", 3, tmp_path)
