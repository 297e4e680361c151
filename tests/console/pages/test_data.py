"""kafka08.console.pages.data, and the data of all pages that have it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.console.pages.data import encoded
from kafka08.protocol.admin_schemas import DescribeLogDirsRequest
from tests.console.scene import ConsoleScene
from tests.fakes.transactions import Begun

PAGES = ("/", "/brokers", "/brokers/1", "/topics", "/topics/t", "/groups", "/group?name=g")
PATHS = (*PAGES, "/transactions")


def scene_with_all() -> ConsoleScene:
    scene = ConsoleScene()
    scene.topic("t", [1, 2])
    scene.topic("u", [2], leader=-1, isr=[])
    scene.produce("t", *[b"m"] * 10)
    scene.commit("g", "t", 4)
    scene.cluster.transactions.begin(Begun("id", 1, 7, 0, {scene.first("t"): 4}))
    scene.look()
    return scene


def data(scene: ConsoleScene, path: str, accept: str = "application/json") -> Any:
    answer = scene.client.get(path, headers={"Accept": accept})
    assert (answer.status_code, answer.mimetype) == (200, "application/json"), path
    assert answer.headers["Vary"] == "Accept"
    return json.loads(answer.text)


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """Every name in a document, with its value."""
    for name, each in value.items() if isinstance(value, dict) else ():
        yield name, each
        yield from members(each)
    for each in value if isinstance(value, list) else ():
        yield from members(each)


def test_values() -> None:
    found = encoded(
        {
            "tp": TopicPartition("t", 1),
            "tuple": (1, None, True),
            "set": frozenset({"a"}),
            "by_number": {1: "one"},
            "rate": math.nan,
            "name": "\udcff",
        }
    )
    assert json.loads(found) == {
        "tp": {"topic": "t", "partition": 1},
        "tuple": [1, None, True],
        "set": ["a"],
        "by_number": {"1": "one"},
        "rate": None,
        "name": "\udcff",
    }


@pytest.mark.parametrize("value", [object(), b"bytes", math.sin])
def test_a_value_without_a_form(value: object) -> None:
    with pytest.raises(TypeError, match="has no form in JSON"):
        encoded({"a": [value]})


@pytest.mark.parametrize("path", PATHS)
def test_every_list_is_also_json(path: str) -> None:
    found = data(scene_with_all(), path)
    assert found["cluster"] == "zk:2181"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found["seen"])
    assert found["errors"] == []
    for name, value in members(found):
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name
        assert not isinstance(value, str) or not re.search(r"\w\(|<", value), value


def test_the_figures_are_those_of_the_pages() -> None:
    scene = scene_with_all()
    overview = data(scene, "/")
    assert overview["verdict"] == "losing data"
    assert overview["causes"][0] == "u-0 without a leader"
    assert (overview["brokers_up"], overview["partitions"], overview["moves"]) == (2, 2, 0)
    assert [each["name"] for each in overview["groups_behind"]] == ["g"]
    assert overview["open_transactions"] == 1
    [first, second] = data(scene, "/brokers")["brokers"]
    assert first["id"] == 1 and first["addresses"] == ["b1:9091"]
    assert first["since"] == "2014-05-13T16:53:20.000Z"
    assert (first["kind"], second["kind"]) == ("kafka08", "0.8.2.2")
    assert (first["is_controller"], first["size_bytes"]) == (True, None)
    [topic, _] = data(scene, "/topics")["topics"]
    assert (topic["name"], topic["messages"], topic["replication_factor"]) == ("t", 10, 2)
    [group] = data(scene, "/groups")["groups"]
    assert (group["status"], group["lag"], group["commits_to"]) == ("STOP", 6, ["zookeeper"])


def test_the_figures_of_one() -> None:
    scene = scene_with_all()
    broker = data(scene, "/brokers/1")
    assert broker["broker"] == data(scene, "/brokers")["brokers"][0]
    assert [each["topic"] for each in broker["partitions"]] == ["t"]
    assert (broker["directories"], data(scene, "/brokers/2")["directories"]) == ([], None)
    topic = data(scene, "/topics/t")
    listed = data(scene, "/topics")["topics"][0]
    assert topic["topic"] == {**listed, "under_replicated": 0}  # as ZooKeeper has it now
    [partition] = topic["partitions"]
    assert (partition["leader"], partition["in_sync"], partition["end"]) == (1, [1, 2], 10)
    assert data(scene, "/topics/u")["partitions"][0]["leader"] is None
    assert topic["groups"] == [{"name": "g", "status": "STOP", "lag": 6, "members": 0}]
    [setting] = [each for each in topic["settings"] if each["name"] == "segment.bytes"]
    assert (setting["value"], setting["default"]) == (None, "1073741824")
    assert data(scene, "/topics/t/settings")["settings"] == topic["settings"]
    group = data(scene, "/group?name=g")
    assert group["group"] == data(scene, "/groups")["groups"][0]
    [progress] = group["partitions"]
    assert (progress["offset"], progress["first_unread"], progress["owner"]) == (4, 4, None)
    [opened] = data(scene, "/transactions")["open"]
    assert (opened["transactional_id"], opened["coordinator"]) == ("id", 1)


def test_filters_and_order_are_those_of_the_page() -> None:
    scene = scene_with_all()
    found = data(scene, "/topics?sort=-name")
    assert [each["name"] for each in found["topics"]] == ["u", "t"]
    assert [each["name"] for each in data(scene, "/topics?name=U")["topics"]] == ["u"]


def test_what_is_not_known_is_null() -> None:
    scene = scene_with_all()
    scene.cluster.down = {9091, 9092}
    scene.look()
    found = data(scene, "/")
    assert (found["under_replicated"], found["without_leader"]) == (None, None)
    assert len(found["errors"]) == 1
    early = ConsoleScene()
    early.observer.look()
    assert data(early, "/groups")["groups"] is None
    assert data(early, "/transactions")["open"] is None


@pytest.mark.parametrize(
    ("accept", "type_"),
    [
        ("application/json", "application/json"),
        ("application/json, text/plain, */*", "application/json"),
        ("*/*", "text/html"),
        ("text/html, application/json", "text/html"),
        ("text/html;q=0.5, application/json", "application/json"),
        ("image/png", "text/html"),
    ],
)
def test_the_form_is_the_one_that_the_client_likes_best(accept: str, type_: str) -> None:
    answer = scene_with_all().client.get("/topics", headers={"Accept": accept})
    assert answer.mimetype == type_


def test_errors_are_json_too() -> None:
    scene = scene_with_all()
    accept = {"Accept": "application/json"}
    answer = scene.client.get("/topics/none", headers=accept)
    assert answer.status_code == 404
    assert answer.json == {"error": "Not Found", "reason": "There is no topic none."}
    answer = scene.client.get("/topics?sort=colour", headers=accept)
    assert (answer.status_code, answer.mimetype) == (400, "application/json")
    answer = ConsoleScene().client.get("/", headers=accept)
    assert (answer.status_code, answer.mimetype) == (503, "application/json")


def test_a_login_is_needed_for_json_too() -> None:
    scene = ConsoleScene({"r": "ann:reader"})
    scene.look()
    for path in PATHS:
        assert scene.client.get(path, headers={"Accept": "application/json"}).status_code == 401


def test_json_asks_nobody_more_than_the_page() -> None:
    scene = scene_with_all()
    asked = len(scene.cluster.requests)
    for path in ("/", "/brokers", "/brokers/1", "/topics", "/groups", "/transactions"):
        data(scene, path)
    assert len(scene.cluster.requests) == asked
    assert len(scene.cluster.sent(DescribeLogDirsRequest)) == 1


def test_bytes_in_and_out() -> None:
    scene = ConsoleScene(broker_http=("1=127.0.0.1:9404",))
    scene.topic("t", [1])
    scene.topic("u", [2])
    scene.look()
    scene.count_bytes({"": (0, 0)}, {"": (20480, 5120), "t": (20480, 5120)})

    def rates(found: Any) -> tuple[float | None, float | None]:
        return found["bytes_in_per_second"], found["bytes_out_per_second"]

    overview = data(scene, "/")
    assert (rates(overview), overview["brokers_with_bytes"]) == ((2048.0, 512.0), 1)
    [first, second] = data(scene, "/brokers")["brokers"]
    assert (rates(first), rates(second)) == ((2048.0, 512.0), (None, None))
    [t, u] = data(scene, "/topics")["topics"]
    assert (rates(t), rates(u)) == ((2048.0, 512.0), (None, None))
    assert rates(data(scene, "/topics/t")["topic"]) == (2048.0, 512.0)
    assert data(scene, "/brokers/1")["bytes_not_known"] is None
    reason = data(scene, "/brokers/2")["bytes_not_known"]
    assert reason.startswith("it serves nothing over HTTP if it is of 0.8.2.2; ")
    none = data(scene_with_all(), "/")
    assert (rates(none), none["brokers_with_bytes"]) == ((None, None), 0)
