"""The model beyond the contract: servers that are behind, lost quorums, outcomes that are unknown.

The real ZooKeeper behaves so too, but not at will.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from kazoo.exceptions import ConnectionLoss

from tests.simulation.rig import BEHIND, ModelGround
from tests.simulation.zookeeper_library import Pending
from tests.simulation.zookeeper_links import Timing
from tests.zk import server as real
from zk.client import SessionState, ZkClient
from zk.errors import NodeExistsError, SessionExpiredError, ZkConnectionError, ZkError


@pytest.fixture
def ground() -> ModelGround:
    return ModelGround(3, Timing(), 1)


def states_of(client: ZkClient) -> list[SessionState]:
    states: list[SessionState] = []
    client.on_state(states.append)
    return states


def test_a_server_that_is_behind_answers_with_what_it_has(ground: ModelGround) -> None:
    client, other = ground.client(), ground.client()
    ground.move(client, 0)
    ground.move(other, 1)
    ground.ensemble.servers[1].lag = (1.5, 1.5)
    client.create("/a")
    assert client.exists("/a") is not None
    assert other.exists("/a") is None
    before = ground.schedule.now()
    with pytest.raises(NodeExistsError):
        other.create("/a")
    assert ground.schedule.now() - before > 1.0
    assert other.exists("/a") is not None
    client.create("/b")
    other.sync("/")
    assert other.exists("/b") is not None


@pytest.mark.parametrize("seed", range(6))
def test_a_client_is_not_served_by_a_server_that_knows_less(seed: int) -> None:
    ground = ModelGround(3, Timing(), seed)
    client = ground.client()
    host = ground.host_of(client)
    for number in (1, 2):
        ground.ensemble.servers[number].lag = (1.0, 1.0)
    ground.move(client, 0)
    client.create("/a", b"0")
    ground.ensemble.reset(host)
    ground.schedule.run_until(lambda: not client.connected)
    ground.ensemble.cut(host, 0)
    assert client.get("/a")[0] == b"0"
    assert ground.server_of(client).number != 0


@pytest.mark.parametrize("seed", range(6))
def test_a_new_session_knows_of_the_end_of_the_one_before(seed: int) -> None:
    """Also on a server that is behind: it catches up before it gives a new session."""
    ground = ModelGround(3, Timing(), seed)
    client = ground.client()
    host = ground.host_of(client)
    ground.move(client, 0)
    client.create("/e", ephemeral=True)
    ground.schedule.run_for(1.0)
    ground.ensemble.servers[1].lag = (1.0, 1.0)
    states = states_of(client)
    ground.ensemble.expire(client.session_id)
    ground.schedule.run_until(lambda: not client.connected)
    for number in (0, 2):
        ground.ensemble.cut(host, number)
    ground.schedule.run_until(lambda: SessionState.EXPIRED in states)
    assert client.exists("/e") is None
    assert ground.server_of(client).number == 1


@pytest.mark.parametrize("lost", [(0, 1), (1, 2)])
def test_without_a_quorum_nothing_is_served_and_no_session_ends(
    ground: ModelGround, lost: tuple[int, int]
) -> None:
    client = ground.client()
    client.create("/e", ephemeral=True)
    session, states = client.session_id, states_of(client)
    for number in lost:
        ground.ensemble.stop(number)
    ground.schedule.run_for(60.0)
    assert states[-1] is SessionState.SUSPENDED
    for call in (client.get, client.create, client.sync):
        with pytest.raises(ZkConnectionError):
            call("/e")
    ground.ensemble.cut(ground.host_of(client))
    for number in lost:
        ground.ensemble.start(number)
    ground.schedule.run_until(lambda: ground.ensemble.leader is not None)
    ground.schedule.run_for(3.0)  # of the 4 that the session has again
    assert session in ground.ensemble.sessions
    ground.ensemble.heal(ground.host_of(client))
    assert client.exists("/e") is not None
    assert (client.session_id, states[-1]) == (session, SessionState.CONNECTED)


def test_who_is_cut_off_learns_of_the_end_when_it_is_back(ground: ModelGround) -> None:
    client, other = ground.client(), ground.client()
    client.create("/e", ephemeral=True)
    states = states_of(client)
    ground.ensemble.cut(ground.host_of(client))
    ground.schedule.run_for(20.0)
    other.sync("/")
    assert other.exists("/e") is None
    assert states == [SessionState.SUSPENDED]
    ground.ensemble.heal(ground.host_of(client))
    with pytest.raises(SessionExpiredError):
        client.exists("/e")
    assert client.exists("/e") is None
    assert states == [SessionState.SUSPENDED, SessionState.EXPIRED]


@pytest.mark.parametrize("way", [{"back": False}, {"there": False}])
def test_a_way_that_is_cut_in_one_direction_ends_the_connection(
    ground: ModelGround, way: dict[str, bool]
) -> None:
    client = ground.client()
    states = states_of(client)
    ground.ensemble.cut(ground.host_of(client), **way)
    ground.schedule.run_for(4.0)
    assert states == [SessionState.SUSPENDED]
    ground.schedule.run_for(30.0)
    assert not client.connected


def test_the_session_of_a_killed_process_ends_in_its_time(ground: ModelGround) -> None:
    client, other = ground.client(), ground.client()
    client.create("/e", ephemeral=True)
    told: list[str] = []
    other.sync("/")
    other.get("/e", lambda event: told.append(event.type))
    ground.ensemble.kill(ground.host_of(client))
    ground.schedule.run_for(3.5)
    assert told == []
    ground.schedule.run_for(3.0)
    assert told == ["DELETED"]


def test_who_is_cut_off_both_ways_from_all_servers_is_cut(ground: ModelGround) -> None:
    ensemble, host = ground.ensemble, ground.host_of(ground.client())
    for number in (0, 1, 2):
        assert not ensemble.is_cut(host)
        ensemble.cut(host, number)
    assert ensemble.is_cut(host)
    ensemble.cut(host, 1, back=False)
    assert not ensemble.is_cut(host)
    ensemble.cut(host)
    ensemble.heal(host)
    assert not ensemble.is_cut(host)


def test_somebody_else_makes_and_deletes_nodes(ground: ModelGround) -> None:
    client, ensemble = ground.client(), ground.ensemble
    ensemble.make("/chroot/e", b"1")
    ensemble.make("/chroot/e", b"2")
    client.sync("/")
    assert client.get("/e")[0] == b"1"
    for _ in range(2):
        ensemble.delete("/chroot/e")
    client.sync("/")
    assert client.exists("/e") is None


def test_a_server_that_is_cut_off_goes_on_to_answer(ground: ModelGround) -> None:
    """Its clients believe in sessions that may have ended, and in nodes that have changed."""
    ground = ModelGround(3, Timing(notice=(20.0, 20.0)), 1)
    client, other = ground.client(), ground.client()
    ground.move(client, 1)
    ground.move(other, 2)
    client.create("/e", ephemeral=True)
    ground.ensemble.isolate(1)
    ground.schedule.run_for(10.0)
    other.sync("/")
    assert other.exists("/e") is None
    assert client.connected
    assert client.exists("/e") is not None
    ground.ensemble.stop(1)
    with pytest.raises(SessionExpiredError):
        client.create("/f")
    assert client.exists("/e") is None


def is_answered(sent: Pending) -> bool:
    try:
        sent.get()
    except ConnectionLoss:
        return False
    return True


def outcome_of_a_lost_write(
    seed: int, leader: bool, timing: Timing | None = None
) -> tuple[bool, bool]:
    """Whether it was answered, and whether it was carried out."""
    ground = ModelGround(3, timing or Timing(), seed)
    client, other = ground.client(), ground.client()
    ground.move(client, 1)
    sent = real.kazoo_of(client).create_async("/a", b"", None, ephemeral=False, sequence=False)
    ground.schedule.run_for(Random(seed).uniform(0.0, 0.012) if timing is None else 0.1)
    if leader:
        ground.ensemble.stop(0)
        ground.ensemble.start(0)
    else:
        ground.break_connection(client)
    ground.schedule.run_until(sent.ready)
    ground.schedule.run_until(lambda: client.connected and other.connected)
    other.sync("/")
    return is_answered(sent), other.exists("/a") is not None


@pytest.mark.parametrize("leader", [False, True])
def test_a_write_without_an_answer_may_have_been_carried_out(leader: bool) -> None:
    outcomes = {outcome_of_a_lost_write(seed, leader) for seed in range(60)}
    assert outcomes == {(True, True), (False, True), (False, False)}


def test_a_write_that_a_lost_leader_had_proposed_may_survive() -> None:
    slow = Timing(commit=(0.5, 0.5))
    outcomes = {outcome_of_a_lost_write(seed, True, slow) for seed in range(20)}
    assert outcomes == {(False, True), (False, False)}


@pytest.mark.parametrize("seed", range(10))
def test_what_arrives_late_is_refused_after_the_session_has_moved(seed: int) -> None:
    ground = ModelGround(3, Timing(), seed)
    client, other = ground.client(), ground.client()
    ground.move(client, 0)
    host = ground.host_of(client)
    client.create("/a", b"0")
    ground.ensemble.cut(host, 0)
    late = real.kazoo_of(client).set_async("/a", b"late")
    assert client.set("/a", b"new").version == 1  # by another server
    assert late.ready()
    ground.ensemble.heal(host)
    ground.schedule.run_for(1.0)
    other.sync("/a")
    assert other.get("/a")[0] == b"new"


def test_a_close_without_servers_leaves_the_session(ground: ModelGround) -> None:
    client, other = ground.client(), ground.client()
    client.create("/e", ephemeral=True)
    ground.ensemble.cut(ground.host_of(client))
    client.close()
    other.sync("/")
    assert other.exists("/e") is not None
    ground.schedule.run_for(6.5)
    other.sync("/")
    assert other.exists("/e") is None


def test_no_server_at_all() -> None:
    ground = ModelGround(3, Timing(), 1)
    for number in range(3):
        ground.ensemble.stop(number)
    with pytest.raises(ZkConnectionError, match="Unable to connect"):
        ground.client()


def broken(seed: int) -> ModelGround:
    """An ensemble with three clients that write while everything is broken again and again."""
    ground = ModelGround(3, BEHIND, seed)
    chance, ensemble = Random(seed), ground.ensemble
    clients = [ground.client() for _ in range(3)]
    clients[0].ensure_path("/a", "/b")
    for _ in range(40):
        client, number = chance.choice(clients), chance.randrange(3)
        host = ground.host_of(client)
        faults: list[tuple[Callable[[], object], Callable[[], object]]] = [
            (partial(ensemble.stop, number), partial(ensemble.start, number)),
            (partial(ensemble.isolate, number), partial(ensemble.rejoin, number)),
            (partial(ensemble.cut, host), partial(ensemble.heal, host)),
            (partial(ensemble.reset, host), lambda: None),
        ]
        fault, repair = chance.choice(faults)
        fault()
        for _ in range(3):
            write(chance, client)
        repair()
    ground.schedule.run_for(60.0)
    return ground


def write(chance: Random, client: ZkClient) -> None:
    parent = chance.choice(["/a", "/b"])
    try:
        if chance.random() < 0.5:
            client.create(f"{parent}/n-", ephemeral=chance.random() < 0.5, sequence=True)
        elif names := sorted(client.children(parent)):
            client.delete(f"{parent}/{chance.choice(names)}")
    except ZkError:
        pass


def test_at_rest_all_servers_have_the_same() -> None:
    for seed in range(5):
        ground = broken(seed)
        trees = [server.tree for server in ground.ensemble.servers]
        assert all(tree.nodes == ground.ensemble.tree.nodes for tree in trees)
        assert all(server.is_serving for server in ground.ensemble.servers)
        assert set(ground.ensemble.tree.ephemerals) <= set(ground.ensemble.sessions)
        assert len(ground.ensemble.sessions) == 3


def test_a_seed_gives_the_same_again() -> None:
    first, again, other = broken(7), broken(7), broken(8)
    assert first.notes == again.notes != other.notes
    assert first.ensemble.tree.nodes == again.ensemble.tree.nodes
    assert first.ensemble.tree.zxid == again.ensemble.tree.zxid
