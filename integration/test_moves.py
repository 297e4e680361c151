"""Moves of partitions by a real controller, as the console, REST and the tool show them.

The broker to which partitions move is stopped meanwhile, so that a move lasts until it goes on.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.console import Console
from integration.harness import Broker, Tools, ZooKeeper
from integration.rest_proxy import RestProxy
from integration.wire import wait_until

TOOL = "kafka.admin.ReassignPartitionsCommand"
# A broker that does not run keeps its session.
SESSION = {"zookeeper.session.timeout.ms": 60000, "zookeeper.connection.timeout.ms": 60000}
WAIT_S = 120


class Place:
    """Two brokers of this project; the first is the controller, with a console and a proxy."""

    def __init__(self, connect: str, directory: Path) -> None:
        self.connect = connect
        self.brokers = [
            Broker("ours", directory / f"b{number}", connect, broker_id=number, props=SESSION)
            for number in (1, 2)
        ]
        for broker in self.brokers:
            broker.start()
        settings = {"console.read.only": "false", "zookeeper.session.timeout.ms": 30000}
        self.console = Console(connect, directory / "console", **settings).begin()
        self.proxy = RestProxy(directory / "rest", connect).start()
        cluster = self.proxy.ask("GET", "/v3/clusters").body["data"][0]["cluster_id"]
        self.v3 = f"/v3/clusters/{cluster}/topics"

    def kill(self) -> None:
        for process in (self.console, self.proxy, *self.brokers):
            process.kill()

    def create(self, topic: str) -> None:
        """Two partitions on the first broker."""
        self.brokers[0].create_topic(topic, 2)
        self.console.wait_until_shown("/topics", topic)

    def replicas(self, topic: str, partition: int) -> list[int]:
        path = f"{self.v3}/{topic}/partitions/{partition}/replicas"
        return [each["broker_id"] for each in self.proxy.ask("GET", path).body["data"]]

    def moves(self, topic: str) -> list[tuple[int, list[int], list[int]]]:
        """By v3: partition, brokers that are added and brokers that are removed."""
        found = self.proxy.ask("GET", f"{self.v3}/{topic}/partitions/-/reassignment").body["data"]
        return [
            (each["partition_id"], each["adding_replicas"], each["removing_replicas"])
            for each in found
        ]

    def ended(self, topic: str) -> None:
        wait_until("the end of the moves", WAIT_S, lambda: self.moves(topic) == [])
        self.console.wait_until_shown("/reassign", "No partition is being moved.")


@pytest.fixture(scope="module")
def place(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = Place(f"{zookeeper.connect}/moves", tmp_path_factory.mktemp("moves"))
    yield found
    found.kill()


def moved(topic: str, *partitions: int, to: int) -> dict[str, Any]:
    rows = [{"topic": topic, "partition": number, "replicas": [to]} for number in partitions]
    return {"version": 1, "partitions": rows}


def rows(moves: dict[str, Any]) -> list[tuple[str, int, list[int]]]:
    """In an order of their own: the original prints them in that of a hash table."""
    assert moves["version"] == 1
    return sorted((row["topic"], row["partition"], row["replicas"]) for row in moves["partitions"])


def text_in(tag: str, page: str) -> str:
    """Of the first such element."""
    found = re.search(rf"<{tag}\b[^>]*>(.*?)</{tag}>", page, re.S)
    assert found is not None, page
    return html.unescape(found[1])


def verified(place: Place, tools: Tools, file: Path) -> str:
    return tools.run(
        TOOL, "--zookeeper", place.connect, "--verify", "--reassignment-json-file", str(file)
    ).out


@pytest.mark.scenario("ops-47")
def test_a_move_of_the_tool_is_shown_until_its_end(
    place: Place, tools: Tools, tmp_path: Path
) -> None:
    topic = f"tool-{tools.kind}"
    place.create(topic)
    file = tmp_path / "moves.json"
    file.write_text(json.dumps(moved(topic, 0, 1, to=2)))
    at = ("--zookeeper", place.connect, "--reassignment-json-file", str(file))
    place.brokers[1].pause()
    try:
        done = tools.run(TOOL, *at, "--execute")
        assert "Successfully started reassignment" in done.out, done
        under_way = [(0, [2], [1]), (1, [2], [1])]
        wait_until("both moves", WAIT_S, lambda: place.moves(topic) == under_way)
        one = place.proxy.ask("GET", f"{place.v3}/{topic}/partitions/1/reassignment").body
        assert (one["adding_replicas"], one["removing_replicas"]) == ([2], [1])
        place.console.wait_until_shown("/reassign", f"{topic} 1 2, 1 2 0 of 1")
        assert "is still in progress" in verified(place, tools, file)
    finally:
        place.brokers[1].resume()
    place.ended(topic)
    gone = place.proxy.ask("GET", f"{place.v3}/{topic}/partitions/1/reassignment")
    assert gone.status == 404
    assert [place.replicas(topic, number) for number in (0, 1)] == [[2], [2]]
    assert verified(place, tools, file).count("completed successfully") == 2


@pytest.mark.scenario("ops-47")
def test_a_move_of_the_console_and_the_way_back(place: Place, tools: Tools, tmp_path: Path) -> None:
    topic, console = f"console-{tools.kind}", place.console
    place.create(topic)
    form = f"/reassign?topics={topic}&brokers=2"
    proposed = json.loads(text_in("textarea", console.ask(form)[1]))
    wanted = tmp_path / "topics.json"
    wanted.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    at = ("--zookeeper", place.connect, "--topics-to-move-json-file", str(wanted))
    generated = tools.run(TOOL, *at, "--broker-list", "2", "--generate").out
    by_tool = json.loads(generated.split("Proposed partition reassignment configuration")[1])
    assert rows(by_tool) == rows(proposed)
    edited = json.dumps(moved(topic, 1, to=2))
    place.brokers[1].pause()
    try:
        status, page = console.submit(form, "/reassign", moves=edited)
        assert status == 200, page
        rollback = text_in("pre", page)
        wait_until("the move", WAIT_S, lambda: place.moves(topic) == [(1, [2], [1])])
        console.wait_until_shown("/reassign", f"{topic} 1 2, 1 2 0 of 1")
        status, page = console.submit(form, "/reassign", moves=edited)
        assert status == 409
        assert "1 partitions are being moved. Wait until that is done." in page
    finally:
        place.brokers[1].resume()
    place.ended(topic)
    assert [place.replicas(topic, number) for number in (0, 1)] == [[1], [2]]
    # The tool takes the console's text, and the console takes it back.
    file = tmp_path / "edited.json"
    file.write_text(edited)
    assert "completed successfully" in verified(place, tools, file)
    assert console.submit(form, "/reassign", moves=rollback)[0] == 200
    wait_until("the way back", WAIT_S, lambda: place.replicas(topic, 1) == [1])
    place.ended(topic)
    file.write_text(rollback)
    assert verified(place, tools, file).count("completed successfully") == 2
