from __future__ import annotations

import queue
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.zk.test_client import expire
from zk.client import SessionState, Stat, Watch, ZkClient
from zk.errors import NoNodeError
from zk.watches import WatchSet


class Event(NamedTuple):
    type: str
    path: str = ""


class FakeClient:
    """Nodes in a dict; watches in sets, one-shot, as kazoo keeps them."""

    def __init__(self) -> None:
        self.nodes: dict[str, bytes] = {"/": b""}
        self.watchers: dict[str, set[Watch]] = {}
        self.listeners: list[Callable[[SessionState], None]] = []

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        self.listeners.append(callback)

    def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        if path not in self.nodes:
            raise NoNodeError(path=path)
        self._arm("data", path, watch)
        return self.nodes[path], Stat(0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0)

    def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        self._arm("data", path, watch)
        return Stat(0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0) if path in self.nodes else None

    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        if path not in self.nodes:
            raise NoNodeError(path=path)
        self._arm("children", path, watch)
        return [node.rpartition("/")[2] for node in self.nodes if node.rpartition("/")[0] == path]

    def _arm(self, kind: str, path: str, watch: Watch | None) -> None:
        if watch is not None:
            self.watchers.setdefault(f"{kind} {path}", set()).add(watch)

    def fire(self, kind: str, path: str, type: str) -> None:
        for watch in self.watchers.pop(f"{kind} {path}", set()):
            watch(Event(type, path))

    def armed(self) -> int:
        return sum(map(len, self.watchers.values()))

    def lose_connection(self, then: SessionState) -> None:
        lost, self.watchers = self.watchers, {}
        self.tell(SessionState.SUSPENDED)
        for watchers in lost.values():
            for watch in watchers:
                watch(Event("NONE"))
        self.tell(then)

    def tell(self, state: SessionState) -> None:
        for listener in self.listeners:
            listener(state)


@pytest.fixture
def fake() -> FakeClient:
    return FakeClient()


@pytest.fixture
def posted() -> list[Any]:
    return []


@pytest.fixture
def watches(fake: FakeClient, posted: list[Any]) -> WatchSet:
    return WatchSet(fake, posted.append)


def test_a_watch_fires_once_and_is_armed_by_the_next_read(
    fake: FakeClient, posted: list[Any], watches: WatchSet
) -> None:
    fake.nodes["/a"] = b"1"
    assert watches.data("/a", "changed") == (b"1", 7)
    fake.fire("data", "/a", "CHANGED")
    fake.fire("data", "/a", "CHANGED")
    assert posted == ["changed"]
    watches.data("/a", "changed")
    fake.fire("data", "/a", "CHANGED")
    assert posted == ["changed", "changed"]


def test_reading_twice_arms_once(fake: FakeClient, posted: list[Any], watches: WatchSet) -> None:
    fake.nodes["/a"] = b""
    for _ in range(5):
        assert watches.children("/a", "ids") == []
    assert fake.armed() == 1
    fake.fire("children", "/a", "CHILD")
    assert posted == ["ids"]


def test_a_missing_node_is_watched_into_being(
    fake: FakeClient, posted: list[Any], watches: WatchSet
) -> None:
    assert watches.data("/a", "data") is None
    assert watches.children("/a", "children") is None
    fake.fire("data", "/a", "CREATED")
    assert sorted(posted) == ["children", "data"]


def test_a_reconnection_posts_what_was_armed_once_each(
    fake: FakeClient, posted: list[Any], watches: WatchSet
) -> None:
    fake.nodes["/a"] = b""
    watches.data("/a", "x")
    watches.children("/a", "x")
    watches.data("/b", "y")
    fake.lose_connection(then=SessionState.CONNECTED)
    assert posted == ["x", "y"]
    fake.lose_connection(then=SessionState.CONNECTED)
    assert posted == ["x", "y"]


def test_after_an_expiry_the_owner_arms_everything_again(
    fake: FakeClient, posted: list[Any], watches: WatchSet
) -> None:
    fake.nodes["/a"] = b""
    watches.data("/a", "x")
    fake.lose_connection(then=SessionState.EXPIRED)
    assert posted == []
    watches.data("/a", "x")
    fake.fire("data", "/a", "CHANGED")
    assert posted == ["x"]


def test_forgotten_watches_are_silent(
    fake: FakeClient, posted: list[Any], watches: WatchSet
) -> None:
    for path in ("/a", "/b", "/c"):
        fake.nodes[path] = b""
        watches.data(path, path)
    watches.forget("/a")
    fake.fire("data", "/a", "CHANGED")
    fake.fire("data", "/b", "CHANGED")
    watches.clear()
    fake.fire("data", "/c", "CHANGED")
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
    client._zk._connection._socket.shutdown(socket.SHUT_RDWR)
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
