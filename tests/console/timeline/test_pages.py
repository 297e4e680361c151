"""kafka08.console.timeline.pages."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kafka08.console.timeline.happenings import BROKER, GROUP, KINDS, TOPIC, happening
from kafka08.console.timeline.pages import PAGE
from tests.console.scene import ConsoleScene


def scene_with_events() -> ConsoleScene:
    scene = ConsoleScene()
    scene.look()
    scene.observer.timeline.journal.add(
        [
            happening((500, 1000), BROKER, "Broker 2 went down", ["broker 2"]),
            happening((1500, 2000), TOPIC, "Topic orders was created", ["orders"]),
            happening((2500, 3000), GROUP, "Group <b>readers</b> is STOP", ["<b>readers</b>"]),
        ]
    )
    return scene


def data(scene: ConsoleScene, path: str) -> Any:
    response = scene.client.get(path, headers={"Accept": "application/json"})
    assert response.status_code == 200
    return response.json


def texts(scene: ConsoleScene, path: str) -> list[str]:
    return [each["kind"] for each in data(scene, path)["events"]]


def test_the_newest_come_first() -> None:
    scene = scene_with_events()
    page = scene.page("/events")
    assert page.index("is STOP") < page.index("orders was created") < page.index("went down")
    assert "1970-01-01 00:00:02 UTC 1970-01-01 00:00:01 UTC topic Topic orders" in page
    assert "<b>" not in scene.get("/events").text
    assert 'href="/events"' in scene.get("/").text


def test_as_json() -> None:
    found = data(scene_with_events(), "/events?kind=topic")
    assert found["events"] == [
        {
            "time": "1970-01-01T00:00:02.000Z",
            "since": "1970-01-01T00:00:01.500Z",
            "kind": "topic",
            "text": "Topic orders was created",
            "names": ["orders"],
            "more_names": 0,
        }
    ]
    assert found["more_events"] == 0


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("", ["group", "topic", "broker"]),
        ("kind=broker", ["broker"]),
        ("kind=broker&kind=group", ["group", "broker"]),
        ("name=ORD", ["topic"]),
        ("name= went down ", ["broker"]),
        ("from=2000", ["group", "topic"]),
        ("to=2000", ["topic", "broker"]),
        ("from=2000&to=2000", ["topic"]),
        ("kind=move", []),
        ("skip=2", ["broker"]),
        ("skip=99", []),
    ],
)
def test_filters(query: str, kinds: list[str]) -> None:
    assert texts(scene_with_events(), f"/events?{query}") == kinds


def test_the_page_says_what_it_shows() -> None:
    scene = scene_with_events()
    text = scene.get("/events?kind=topic&from=1&to=5000&name=x").text
    assert 'value="topic" checked' in text and text.count(" checked") == 1
    assert 'name="from" value="1"' in text and 'name="to" value="5000"' in text
    assert "Only from 1970-01-01 00:00:00 UTC to 1970-01-01 00:00:05 UTC" in scene.page(
        "/events?from=1&to=5000"
    )
    assert "No event is like that." in scene.page("/events?name=nothing")
    assert "Nothing has happened since the console looks." in ConsoleScene().page("/events")
    assert all(f'value="{kind}"' in text for kind in KINDS)


@pytest.mark.parametrize("query", ["kind=none", "from=x", "to=-1", "skip=x"])
def test_a_wrong_query(query: str) -> None:
    assert scene_with_events().get(f"/events?{query}").status_code == 400


def test_pages_of_200() -> None:
    scene = ConsoleScene()
    journal = scene.observer.timeline.journal
    journal.add([happening((n, n), TOPIC, f"e{n}.", ["a&b"]) for n in range(PAGE + 5)])
    path, seen = "/events?name=a%26b&kind=topic", []
    page = scene.get(path).text
    assert "5 more" in page
    seen += re.findall(r">(e\d+)\.<", page)
    [older] = re.findall(r'href="(/events\?[^"]*)">Older', page)
    page = scene.get(older.replace("&amp;", "&")).text
    seen += re.findall(r">(e\d+)\.<", page)
    assert seen == [f"e{n}" for n in range(PAGE + 4, -1, -1)]
    assert ">Older" not in page
    assert data(scene, path)["more_events"] == 5


def test_names_that_are_not_kept_are_counted() -> None:
    scene = ConsoleScene()
    names = ["n" * 1999, "o", "p"]
    scene.observer.timeline.journal.add([happening((1, 2), TOPIC, "Many.", names)])
    assert "Many. Of the names 1 are not kept." in scene.page("/events")


def scene_with_graphs() -> ConsoleScene:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.commit("g", "t", 0)
    for number in range(9):
        scene.produce("t", b"m")
        if number == 5:
            scene.topic("u", [2])
        scene.look()
        scene.runtime.clock.advance(10)
    scene.observer.timeline.changed(scene.runtime.clock.millis() - 30_000, "set offsets", "g")
    return scene


def test_the_overview_has_traffic_with_all_events() -> None:
    scene = scene_with_graphs()
    text = scene.get("/").text
    assert "Messages in a second: 0 to" in text
    assert "Topic u was created" in text and "The offsets of group g were set" in text


def test_a_group_has_its_own_events() -> None:
    scene = scene_with_graphs()
    text = scene.get("/group?name=g").text
    assert "The offsets of group g were set" in text
    assert "Topic u was created" not in text
    assert '<svg viewBox="0 0 640 24" role="group" aria-label="Events"' in text
