"""The uses of those promises: ZkClient, WatchSet and the election."""

from __future__ import annotations

from kafka08.errors import StaleControllerEpochError
from kafka08.runtime import Queue
from tests.fakes.runtime import FakeClock
from tests.zk.contract.ground import SECONDS, Ground, promise, refused, stat_of
from zk import election, znodes
from zk.client import CreateOp, SessionState, SetOp
from zk.election import ControllerElection, Epoch
from zk.errors import NodeExistsError, NoNodeError
from zk.watches import WatchSet


@promise
def a_creation_whose_answer_was_lost_is_ours(ground: Ground) -> None:
    client, other = ground.client(), ground.other()
    for path, ephemeral in (("/a", False), ("/e", True)):
        ground.lose_answer(client, "create_async")
        assert client.create(path, b"x", ephemeral=ephemeral) == path
    other.create("/theirs", b"x", ephemeral=True)
    ground.lose_answer(client, "create_async")
    found = refused(NodeExistsError, lambda: client.create("/theirs", b"x", ephemeral=True))
    assert found.after_loss


@promise
def other_writes_whose_answers_were_lost(ground: Ground) -> None:
    client = ground.client()
    client.create("/a", b"0")
    ground.lose_answer(client, "set_async")
    assert client.conditional_set("/a", b"1", 0) == (True, 1)
    ground.lose_answer(client, "delete_async")
    client.delete("/a")
    refused(NoNodeError, lambda: client.delete("/a"))
    client.create("/a", b"1")
    ground.lose_answer(client, "get_children_async")
    assert client.children("/") == ["a"]


@promise
def paths_are_made_by_several(ground: Ground) -> None:
    client, other = ground.client(), ground.other()
    client.ensure_path("/a/b/c", "/d")
    other.ensure_path("/a/b/c/e", "/d", "/f")
    assert other.create_or_set("/g/h", b"1") == 0
    assert client.create_or_set("/g/h", b"2") == 1
    client.sync("/")
    assert sorted(client.children("/")) == ["a", "d", "f", "g"]
    assert client.get("/g/h")[0] == b"2"


@promise
def a_watch_set_tells_of_every_change(ground: Ground) -> None:
    client, other = ground.client(), ground.other()
    posted: Queue[object] = ground.runtime.queue()
    watches = WatchSet(client, posted.put)
    assert watches.children("/ids", "ids") is None
    other.create("/ids")
    assert posted.get(timeout=SECONDS) == "ids"
    assert watches.children("/ids", "ids") == []
    other.create("/ids/1", ephemeral=True)
    assert posted.get(timeout=SECONDS) == "ids"
    assert watches.data_of_all({"/ids/1": "one", "/ids/2": "two"}) == [(b"", 0), None]
    assert watches.children("/ids", "ids") == ["1"]
    ground.break_connection(client)
    assert {posted.get(timeout=SECONDS) for _ in range(3)} == {"ids", "one", "two"}
    assert watches.children("/ids", "ids") == ["1"]
    ground.expire(other)
    assert posted.get(timeout=SECONDS) == "ids"
    assert watches.children("/ids", "ids") == []
    assert posted.empty()


@promise
def a_watch_set_leaves_an_expiry_to_its_owner(ground: Ground) -> None:
    client = ground.client()
    posted: Queue[object] = ground.runtime.queue()
    client.on_state(posted.put)
    watches = WatchSet(client, posted.put)
    client.create("/a")
    watches.data("/a", "a")
    ground.expire(client)
    assert posted.get(timeout=SECONDS) is SessionState.SUSPENDED
    assert posted.get(timeout=SECONDS) is SessionState.EXPIRED
    watches.data("/a", "a")
    client.set("/a", b"x")
    assert posted.get(timeout=SECONDS) == "a"


@promise
def one_is_elected(ground: Ground) -> None:
    client, other = ground.client(), ground.other()
    assert election.elect(client, 1, FakeClock()) == ControllerElection(1, True)
    assert election.elect(other, 2, FakeClock()) == ControllerElection(1, False)
    ground.expire(client)
    assert election.elect(other, 2, FakeClock()) == ControllerElection(2, True)
    assert stat_of(other, znodes.CONTROLLER).ephemeral_owner == other.session_id


@promise
def a_new_epoch_ends_the_writes_of_the_one_before(ground: Ground) -> None:
    client, other = ground.client(), ground.other()
    mine = election.bump_epoch(client)
    assert mine == Epoch(1, 0)
    assert election.fenced(client, mine, [CreateOp("/a"), SetOp("/a", b"1")])[0] == "/a"
    other.sync("/")
    assert election.bump_epoch(other) == Epoch(2, 1)
    refused(
        StaleControllerEpochError, lambda: election.fenced(client, mine, [SetOp("/a", b"stale")])
    )
    assert client.get("/a")[0] == b"1"
