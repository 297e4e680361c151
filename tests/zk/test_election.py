from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.errors import StaleControllerEpochError
from tests.fakes.runtime import FakeClock
from tests.zk import server
from tests.zk.test_client import expire, lose_answers
from zk import election, znodes
from zk.client import CreateOp, SetOp, ZkClient
from zk.election import ControllerElection, Epoch
from zk.errors import NodeExistsError
from zk.watches import WatchSet


@pytest.fixture
def other(client: ZkClient) -> Iterator[ZkClient]:
    connected = server.connect(client.connect)
    yield connected
    connected.close()


def test_the_first_takes_it_and_the_next_learns_who(client: ZkClient, other: ZkClient) -> None:
    assert election.read_controller(client) == ControllerElection(-1, False)
    assert election.elect(client, 1, FakeClock()) == ControllerElection(1, True)
    assert client.get("/controller")[0] == (
        b'{"version":1,"brokerid":1,"timestamp":"1400000000000"}'
    )
    assert election.elect(other, 2, FakeClock()) == ControllerElection(1, False)
    assert election.elect(client, 1, FakeClock()) == ControllerElection(1, True)


def test_a_lost_answer_still_wins(client: ZkClient, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_answers(client, monkeypatch, "create_async")
    assert election.elect(client, 1, FakeClock()) == ControllerElection(1, True)


def test_the_node_of_our_former_session_is_not_ours(client: ZkClient, other: ZkClient) -> None:
    election.elect(other, 1, FakeClock())
    assert election.elect(client, 1, FakeClock()) == ControllerElection(1, False)
    assert not election.resign(client)
    assert client.exists("/controller") is not None


def test_a_bare_broker_id_is_a_controller(client: ZkClient) -> None:
    client.create("/controller", b"5", ephemeral=True)
    assert election.read_controller(client) == ControllerElection(5, True)
    assert election.watch_controller(WatchSet(client, print), "event") == 5


def test_epochs_grow_by_one(client: ZkClient) -> None:
    assert election.read_epoch(client) is None
    assert election.bump_epoch(client) == Epoch(1, 0)
    assert election.bump_epoch(client) == Epoch(2, 1)
    assert election.read_epoch(client) == Epoch(2, 1)
    assert client.get("/controller_epoch")[0] == b"2"


@pytest.mark.parametrize("stored", [None, b"4"])
def test_a_bump_that_meets_another_aborts(
    client: ZkClient, monkeypatch: pytest.MonkeyPatch, stored: bytes | None
) -> None:
    if stored:
        client.create("/controller_epoch", stored)
    before = election.read_epoch(client)
    election.bump_epoch(client)
    monkeypatch.setattr(election, "read_epoch", lambda zk: before)
    with pytest.raises(StaleControllerEpochError):
        election.bump_epoch(client)


def test_fenced_writes(client: ZkClient) -> None:
    mine = election.bump_epoch(client)
    assert election.fenced(client, mine, [CreateOp("/a"), SetOp("/a", b"1")])[0] == "/a"
    with pytest.raises(NodeExistsError):
        election.fenced(client, mine, [CreateOp("/a")])
    election.bump_epoch(client)
    with pytest.raises(StaleControllerEpochError):
        election.fenced(client, mine, [CreateOp("/b")])
    assert client.exists("/b") is None


def test_resigning_deletes_only_our_node(client: ZkClient, other: ZkClient) -> None:
    assert not election.resign(client)
    election.elect(client, 1, FakeClock())
    epoch = election.bump_epoch(client)
    assert not election.resign(other)
    assert election.resign(client, epoch)
    assert not election.resign(client, epoch)
    election.elect(client, 1, FakeClock())
    election.bump_epoch(client)
    assert not election.resign(client, epoch)
    assert election.read_controller(client) == ControllerElection(1, True)
    assert election.resign(client)


def test_an_expired_session_loses_the_election(client: ZkClient, other: ZkClient) -> None:
    election.elect(client, 1, FakeClock())
    expire(client)
    assert election.elect(other, 2, FakeClock()) == ControllerElection(2, True)
    assert other.get(znodes.CONTROLLER)[1].ephemeral_owner == other.session_id
