from __future__ import annotations

import queue
from typing import Any

import pytest

from tests.fakes.zookeeper import FakeZooKeeper, Session
from tests.zk import server
from tests.zk.test_client import expire
from zk.client import SessionState, ZkClient
from zk.watches import WatchSet


@pytest.fixture
def session() -> Session:
    return Session(FakeZooKeeper())


@pytest.fixture
def posted() -> list[Any]:
    return []


@pytest.fixture
def watches(session: Session, posted: list[Any]) -> WatchSet:
    return WatchSet(session, posted.append)


def test_a_watch_fires_once_and_is_armed_by_the_next_read(
    session: Session, posted: list[Any], watches: WatchSet
) -> None:
    session.server.put("/a", b"1")
    assert watches.data("/a", "changed") == (b"1", 0)
    session.server.put("/a", b"2")
    session.server.put("/a", b"3")
    assert posted == ["changed"]
    assert watches.data("/a", "changed") == (b"3", 2)
    session.server.put("/a", b"4")
    assert posted == ["changed", "changed"]


def test_many_nodes_are_read_at_once(
    session: Session, posted: list[Any], watches: WatchSet
) -> None:
    session.server.put("/a", b"1")
    assert watches.data_of_all({"/a": "first", "/b": "second"}) == [(b"1", 0), None]
    assert watches.data("/a", "first") == (b"1", 0)
    assert session.server.watched == 2
    session.server.put("/a", b"2")
    session.server.put("/b")
    assert posted == ["first", "second"]


def test_reading_twice_arms_once(session: Session, posted: list[Any], watches: WatchSet) -> None:
    session.server.put("/a")
    for _ in range(5):
        assert watches.children("/a", "ids") == []
    assert session.server.watched == 1
    session.server.put("/a/1")
    assert posted == ["ids"]


def test_a_missing_node_is_watched_into_being(
    session: Session, posted: list[Any], watches: WatchSet
) -> None:
    assert watches.data("/a", "data") is None
    assert watches.children("/a", "children") is None
    session.server.put("/a")
    assert sorted(posted) == ["children", "data"]


def test_a_reconnection_posts_what_was_armed_once_each(
    session: Session, posted: list[Any], watches: WatchSet
) -> None:
    session.server.put("/a")
    watches.data("/a", "x")
    watches.children("/a", "x")
    watches.data("/b", "y")
    session.lose_connection(then=SessionState.CONNECTED)
    assert posted == ["x", "y"]
    session.lose_connection(then=SessionState.CONNECTED)
    assert posted == ["x", "y"]


def test_after_an_expiry_the_owner_arms_everything_again(
    session: Session, posted: list[Any], watches: WatchSet
) -> None:
    session.server.put("/a")
    watches.data("/a", "x")
    session.lose_connection(then=SessionState.EXPIRED)
    assert posted == []
    watches.data("/a", "x")
    session.server.put("/a", b"new")
    assert posted == ["x"]


def test_forgotten_watches_are_silent(
    session: Session, posted: list[Any], watches: WatchSet
) -> None:
    for path in ("/a", "/b", "/c"):
        session.server.put(path)
        watches.data(path, path)
    watches.forget("/a")
    session.server.put("/a", b"new")
    session.server.put("/b", b"new")
    watches.clear()
    session.server.put("/c", b"new")
    assert posted == ["/b"]


def test_on_a_real_server(client: ZkClient) -> None:
    posted: queue.Queue[str] = queue.Queue()
    watches = WatchSet(client, posted.put)
    assert watches.children("/ids", "ids") is None
    client.create("/ids")
    assert posted.get(timeout=10) == "ids"
    for _ in range(3):
        assert watches.children("/ids", "ids") == []
    client.create("/ids/1")
    assert posted.get(timeout=10) == "ids"
    assert watches.data("/ids/1", "one") == (b"", 0)
    client.set("/ids/1", b"x")
    assert posted.get(timeout=10) == "one"
    watches.data("/ids/1", "one")
    server.break_connection(client)
    assert posted.get(timeout=10) == "one"
    assert watches.data("/ids/1", "one") == (b"x", 1)
    client.delete("/ids/1")
    assert posted.get(timeout=10) == "one"
    assert posted.empty()


def test_expiry_on_a_real_server(client: ZkClient) -> None:
    posted: queue.Queue[Any] = queue.Queue()
    client.on_state(posted.put)
    watches = WatchSet(client, posted.put)
    client.create("/a")
    watches.data("/a", "a")
    expire(client)
    assert posted.get(timeout=10) is SessionState.SUSPENDED
    assert posted.get(timeout=10) is SessionState.EXPIRED
    watches.data("/a", "a")
    client.set("/a", b"x")
    assert posted.get(timeout=10) == "a"
