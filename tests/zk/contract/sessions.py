"""Sessions, and the nodes that end with them."""

from __future__ import annotations

from kafka08.runtime import Queue
from tests.zk.contract.ground import SECONDS, Ground, Told, nothing_else, promise, stat_of, teller
from zk.client import CreateOp, SessionState


@promise
def ephemeral_nodes_end_with_their_session(ground: Ground) -> None:
    client, other = ground.client(), ground.other()
    client.create("/ids")
    other.create("/ids/1", b"x", ephemeral=True)
    other.multi([CreateOp("/ids/2", ephemeral=True), CreateOp("/ids/3")])
    client.sync("/")
    assert sorted(client.children("/ids")) == ["1", "2", "3"]
    assert stat_of(client, "/ids/1").ephemeral_owner == other.session_id != client.session_id
    assert other.close()
    client.sync("/")
    assert client.children("/ids") == ["3"]


@promise
def watches_are_told_of_a_sessions_end(ground: Ground) -> None:
    client, other = ground.client(), ground.other()
    client.create("/ids")
    other.create("/ids/1", ephemeral=True)
    told: Queue[Told] = ground.runtime.queue()
    client.sync("/")
    client.get("/ids/1", teller(told))
    client.children("/ids", teller(told))
    ground.expire(other)
    events = {told.get(timeout=SECONDS) for _ in range(2)}
    assert events == {("DELETED", "/ids/1"), ("CHILD", "/ids")}
    assert client.exists("/ids/1") is None


@promise
def an_expired_session_is_replaced(ground: Ground) -> None:
    client, other = ground.client(), ground.other()
    states: Queue[SessionState] = ground.runtime.queue()
    client.on_state(states.put)
    client.create("/e", ephemeral=True)
    first = client.session_id
    ground.expire(client)
    assert states.get(timeout=SECONDS) is SessionState.SUSPENDED
    assert states.get(timeout=SECONDS) is SessionState.EXPIRED
    assert client.session_id not in (0, first)
    assert client.exists("/e") is None
    client.create("/e", ephemeral=True)
    other.sync("/")
    assert stat_of(other, "/e").ephemeral_owner == client.session_id
    assert states.empty()


@promise
def a_session_survives_its_connection(ground: Ground) -> None:
    client = ground.client()
    states: Queue[SessionState] = ground.runtime.queue()
    client.on_state(states.put)
    client.create("/e", ephemeral=True)
    first = client.session_id
    ground.break_connection(client)
    assert states.get(timeout=SECONDS) is SessionState.SUSPENDED
    assert states.get(timeout=SECONDS) is SessionState.CONNECTED
    assert client.session_id == first
    assert stat_of(client, "/e").ephemeral_owner == first


@promise
def a_lost_connection_ends_watches(ground: Ground) -> None:
    """Each is called with NONE, and no more."""
    client, other = ground.client(), ground.other()
    client.create("/a")
    told: Queue[Told] = ground.runtime.queue()
    client.get("/a", teller(told))
    client.children("/a", teller(told))
    ground.break_connection(client)
    assert told.get(timeout=SECONDS)[0] == told.get(timeout=SECONDS)[0] == "NONE"
    other.sync("/")
    other.set("/a", b"1")
    other.create("/a/b")
    client.sync("/")
    nothing_else(client, told)
