"""kafka08.console.pages.cluster, and what is so of every page."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.console.app import ROUTES
from tests.console.scene import (
    BROKERS,
    ConsoleScene,
    scene_with_bytes,
    text_of,
)
from tests.fakes.transactions import Begun
from zk import znodes


def test_the_overview_of_a_good_cluster() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.look()
    page = scene.page("/")
    assert "Brokers up 2 of 2" in page
    assert "Controller 1 epoch 3" in page
    assert "Under-replicated 0" in page


@pytest.mark.scenario("ops-45")
def test_a_killed_broker_turns_the_overview_red() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.topic("u", [2])
    scene.look()
    scene.server.remove(znodes.broker_path(2))
    scene.cluster.leaders[TopicPartition("u", 0)] = -1
    scene.observer.look()
    page = scene.get("/").text
    assert 'id="brokers-up" class="bad">1 of 2' in page
    assert 'id="offline" class="bad">1<' in page
    assert "data-refresh=" in page
    assert "broker 2" not in page


@pytest.mark.scenario("ops-54")
def test_without_zookeeper_the_last_state_is_shown_with_its_age() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.look()
    scene.session.down = True
    scene.runtime.clock.advance(90)
    scene.observer.look()
    for path in ("/", "/brokers", "/topics", "/topics/t", "/groups"):
        page = text_of(scene.get(path).text)
        assert "The cluster cannot be looked at" in page
        assert "1 min 30 s ago" in page
    scene.session.down = False
    scene.observer.look()
    assert "cannot be looked at" not in scene.page("/")


@pytest.mark.scenario("ops-54")
def test_no_page_waits_for_zookeeper_for_longer_than_five_seconds() -> None:
    """By the clock of the test: each call to ZooKeeper takes as long as the console allows."""
    scene = ConsoleScene(read_only=False)
    scene.topic("t", [1])
    scene.produce("t", b"m")
    scene.commit("g", "t", 0)
    scene.cluster.transactions.begin(Begun("id", 1, 7, 0, {scene.first("t"): 0}))
    scene.look()
    session, clock = scene.session, scene.runtime.clock
    limit = min(scene.config.request_timeout_ms, scene.config.zookeeper_session_timeout_ms) / 1000
    session.down = True
    session.before = lambda call, path: clock.advance(limit)
    known = {"<int:broker_id>": "1", "<int:number>": "0", "<name>": "t"}
    query = {"name": "g", "offset": "0", "transaction": "7:0:0", "user": "u", "user_is": "named"}
    query |= {"resource_type": "TOPIC", "pattern_type": "LITERAL", "resource_name": "t"}
    query |= {"principal": "User:u", "permission": "ALLOW", "operation": "READ"}
    shown = 0
    for route in ROUTES:
        if route.changes or route.path.startswith("/static/"):
            continue
        path = route.path
        for word, value in known.items():
            path = path.replace(word, value)
        begin = clock.monotonic()
        given = {**query, "to": "earliest"} if path == "/group/reset" else query
        answer = scene.get(path, query_string=given)
        assert clock.monotonic() - begin <= 5, path
        assert answer.status_code in (200, 503), path
        shown += answer.status_code == 200
    assert shown > 10


def test_before_the_first_look() -> None:
    scene = ConsoleScene()
    response = scene.get("/")
    assert response.status_code == 503
    assert "has not been seen yet" in response.text


def test_without_any_broker_leaders_are_unknown() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.cluster.down = {broker.port for broker in BROKERS}
    scene.observer.look()
    assert "No broker answers" in scene.page("/")


def test_bytes_in_and_out_on_the_overview() -> None:
    scene = scene_with_bytes()
    page = scene.page("/")
    assert "Bytes in, from producers 2.0 KiB/s Bytes out, to consumers 512 B/s" in page
    assert "Bytes are those of 1 of 2 brokers" in page
    none = ConsoleScene()
    none.look()
    page = none.page("/")
    assert "Bytes in, from producers not known" in page and "Bytes are those of" not in page


def test_pages_ask_no_broker_for_bytes() -> None:
    scene = scene_with_bytes()
    scene.runtime.open_socket = None
    for path in ("/", "/brokers", "/brokers/1", "/topics", "/topics/t"):
        assert scene.get(path).status_code == 200
    assert scene.observer.traffic.brokers.keys() == {1}
