"""Watches: told once, in order, before any later state."""

from __future__ import annotations

from kafka08.runtime import Queue
from tests.zk.contract.ground import (
    SECONDS,
    Ground,
    Told,
    nothing_else,
    promise,
    refused,
    stat_of,
    teller,
)
from zk.client import CreateOp, SetOp
from zk.errors import NoNodeError


@promise
def a_watch_is_told_once(ground: Ground) -> None:
    client = ground.client()
    client.create("/a")
    told: Queue[Told] = ground.runtime.queue()
    client.get("/a", teller(told))
    client.set("/a", b"1")
    client.set("/a", b"2")
    assert told.get(timeout=SECONDS) == ("CHANGED", "/a")
    client.get("/a", teller(told))
    nothing_else(client, told)
    client.delete("/a")
    assert told.get(timeout=SECONDS) == ("DELETED", "/a")


@promise
def the_same_watch_twice_is_one(ground: Ground) -> None:
    client = ground.client()
    client.create("/a")
    told: Queue[Told] = ground.runtime.queue()
    watch = teller(told)
    for _ in range(3):
        client.get("/a", watch)
    client.exists("/a", watch)
    client.set("/a", b"1")
    assert told.get(timeout=SECONDS) == ("CHANGED", "/a")
    nothing_else(client, told)


@promise
def a_missing_node_is_watched_by_exists_alone(ground: Ground) -> None:
    client = ground.client()
    told: Queue[Told] = ground.runtime.queue()
    refused(NoNodeError, lambda: client.get("/a", teller(told)))
    refused(NoNodeError, lambda: client.children("/a", teller(told)))
    assert client.get_all(["/a"], {"/a": teller(told)}) == [None]
    client.create("/a")
    client.delete("/a")
    nothing_else(client, told)
    assert client.exists("/a", teller(told)) is None
    client.create("/a")
    assert told.get(timeout=SECONDS) == ("CREATED", "/a")


@promise
def a_watch_of_children(ground: Ground) -> None:
    """It is told of creations and deletions below, and of the node's own end; not of data."""
    client = ground.client()
    client.create("/a")
    told: Queue[Told] = ground.runtime.queue()
    client.children("/a", teller(told))
    client.set("/a", b"1")
    nothing_else(client, told)
    client.create("/a/b")
    assert told.get(timeout=SECONDS) == ("CHILD", "/a")
    client.children("/a", teller(told))
    client.set("/a/b", b"1")
    client.create("/a/b/c")
    client.delete("/a/b/c")
    nothing_else(client, told)
    client.delete("/a/b")
    assert told.get(timeout=SECONDS) == ("CHILD", "/a")
    client.children("/a", teller(told))
    client.delete("/a")
    assert told.get(timeout=SECONDS) == ("DELETED", "/a")
    client.create("/a")
    client.children("/a", teller(told))
    client.get("/a", teller(told))
    client.delete("/a")
    assert told.get(timeout=SECONDS) == told.get(timeout=SECONDS) == ("DELETED", "/a")
    nothing_else(client, told)


@promise
def a_watch_comes_before_a_later_state(ground: Ground) -> None:
    """A client that reads a later state has been told of the change before it."""
    client, other = ground.client(), ground.other()
    client.ensure_path("/a", "/b")
    told: Queue[Told] = ground.runtime.queue()
    for number in range(10):
        client.get("/a", teller(told))
        other.sync("/")
        other.set("/a", b"")
        other.set("/b", b"")
        while stat_of(client, "/b").version <= number:
            client.sync("/b")
        assert not told.empty()
        assert told.get() == ("CHANGED", "/a")


@promise
def events_come_in_the_order_of_changes(ground: Ground) -> None:
    client, other = ground.client(), ground.other()
    paths = [f"/{number}" for number in range(20)]
    told: Queue[Told] = ground.runtime.queue()
    for path in paths:
        client.exists(path, teller(told))
    other.multi([CreateOp(path) for path in paths[:10]])
    for path in paths[10:]:
        other.create(path)
    assert [told.get(timeout=SECONDS) for _ in paths] == [("CREATED", path) for path in paths]


@promise
def a_transactions_changes_are_told_together(ground: Ground) -> None:
    """A client that is told of the first one reads the state after the last one."""
    client, other = ground.client(), ground.other()
    client.ensure_path("/a", "/b")
    told: Queue[Told] = ground.runtime.queue()
    client.get("/a", teller(told))
    other.sync("/")
    other.multi([SetOp("/a", b"1"), CreateOp("/c"), SetOp("/b", b"1")])
    assert told.get(timeout=SECONDS) == ("CHANGED", "/a")
    assert client.get("/b")[0] == b"1"
    assert client.exists("/c") is not None
