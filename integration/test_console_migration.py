"""The console's migration page, over a broker that clients of 0.8 and of today use."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.clients import KafkaPython, Record
from integration.console import Console
from integration.harness import Broker, Tools, ZooKeeper, free_port, properties
from integration.programs import topics
from integration.wire import wait_until


class Place:
    def __init__(self, zookeeper: ZooKeeper, directory: Path) -> None:
        connect = f"{zookeeper.connect}/console-migration"
        props = {"http.port": free_port(), "offsets.topic.num.partitions": 1}
        self.broker = Broker("ours", directory / "broker", connect, props=props).start()
        self.console = Console(connect, directory / "console").begin()

    def data(self) -> Any:
        return json.loads(self.console.ask("/migration", Accept="application/json")[1])

    def topic(self, name: str) -> Any:
        return next((each for each in self.data()["topics"] if each["name"] == name), None)


@pytest.fixture(scope="module")
def place(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = Place(zookeeper, tmp_path_factory.mktemp("console-migration"))
    yield found
    found.console.kill()
    found.broker.kill()


def test_who_still_speaks_0_8(place: Place) -> None:
    broker, console = place.broker, place.console
    for topic in ("orders", "views"):
        broker.create_topic(topic)
    KafkaPython().write(broker, "orders", [Record(b"k", b"v")], "none")
    topics.write(broker.address, "views", [topics.Sent("k", "v")])
    assert topics.read(broker.address, "orders") == [("k", "v")]
    wait_until("the topics", 30, lambda: place.topic("views") is not None)
    orders, views = place.topic("orders"), place.topic("views")
    assert (orders["writers"], orders["formats"]) == ({"0.8": 1}, [0])
    assert orders["readers"] == {"0.11 or later": 1}
    assert (views["writers"], views["formats"]) == ({"0.11 or later": 1}, [2])
    found = place.data()
    assert found["sentences"][0] == (
        "1 of 2 topics is still written by 0.8 clients, and none is read by them."
    )
    assert (found["is_complete"], found["broker_errors"]) == (True, {})
    [old] = found["old_clients"]
    assert (old["host"], old["does"]) == ("127.0.0.1", ["writes orders"])
    text = console.text("/migration")
    assert "confluent-kafka-python" in text, text
    assert f"{old['client_id']} at 127.0.0.1 writes orders." in text


def test_a_group_of_0_8_and_what_keeps_it(place: Place, our_tools: Tools, tmp_path: Path) -> None:
    broker, config = place.broker, tmp_path / "consumer.properties"
    broker.create_topic("read")
    config.write_text(properties({"group.id": "old-readers"}))
    where = ["--zookeeper", broker.zookeeper, "--topic", "read", "--consumer.config", str(config)]
    member = our_tools.background("kafka.tools.ConsoleConsumer", *where)

    def group() -> Any:
        found = [each for each in place.data()["groups"] if each["name"] == "old-readers"]
        return found[0] if found and found[0]["clients"] else None

    try:
        wait_until("the group and its reads", 30, group)
        found = group()
    finally:
        member.stop(signal.SIGINT)
    assert (found["members_of_0_8"], found["reads"]) == (1, ["read"])
    assert found["clients"] == {"0.8": 1}
    assert found["keeps"].startswith("1 member of 0.8 on ")
    place.console.wait_until_shown("/migration", "old-readers at 127.0.0.1 reads read.")
