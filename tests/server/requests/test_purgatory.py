"""Requests wait for moves, miss none, and give up in time."""

import pytest

from kafka08.common import TopicPartition
from kafka08.network.peer import Peer, current_peer
from kafka08.server.requests.purgatory import MAX_WAIT_MS, Purgatory
from tests.fakes.runtime import FakeRuntime

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_move_before_the_wait_is_not_missed() -> None:
    purgatory = Purgatory(FakeRuntime())
    with purgatory.watch([A, B], 100) as watch:
        purgatory.notify(B)
        assert watch.wait() == {B}


def test_each_move_is_told_once() -> None:
    runtime = FakeRuntime()
    purgatory = Purgatory(runtime)
    with purgatory.watch([A, B], 100) as watch:
        runtime.while_waiting = [lambda: purgatory.notify(A), lambda: purgatory.notify(B)]
        assert watch.wait() == {A}
        assert watch.wait() == {B}
        assert watch.wait() == set()


def test_time_runs_out_once_for_all_waits() -> None:
    runtime = FakeRuntime()
    purgatory = Purgatory(runtime)
    began = runtime.clock.now
    with purgatory.watch([A], 250) as watch:
        runtime.while_waiting = [lambda: purgatory.notify(A)]
        assert watch.wait() == {A}
        assert watch.wait() == set()
        assert watch.wait() == set()
    assert runtime.clock.now == began + 0.25


def test_a_request_without_time_never_waits() -> None:
    runtime = FakeRuntime()
    with Purgatory(runtime).watch([A], 0) as watch:
        assert watch.wait() == set()


def test_nothing_is_left_behind() -> None:
    purgatory = Purgatory(FakeRuntime())
    with purgatory.watch([A, B], 100), purgatory.watch([A], 100):
        assert len(purgatory) == 2
    assert len(purgatory) == 0
    assert not purgatory._watches.by_key


def test_closing_releases_who_waits() -> None:
    runtime = FakeRuntime()
    purgatory = Purgatory(runtime)
    with purgatory.watch([A], 60_000) as watch:
        runtime.while_waiting = [purgatory.close]
        assert watch.wait() == set()


def test_nobody_waits_for_days() -> None:
    runtime = FakeRuntime()
    began = runtime.clock.now
    with Purgatory(runtime).watch([A], 2**31 - 1) as watch:
        assert watch.wait() == set()
    assert runtime.clock.now == began + MAX_WAIT_MS / 1000


@pytest.mark.parametrize("for_peers", [True, False])
def test_a_sender_who_leaves(for_peers: bool) -> None:
    """Only where its absence matters: for fetches, not for acks."""
    runtime = FakeRuntime()
    purgatory = Purgatory(runtime, for_peers=for_peers)
    peer = Peer()
    token = current_peer.set(peer)
    try:
        began = runtime.clock.now
        with purgatory.watch([A], 1000) as watch:
            runtime.while_waiting = [peer.end]
            assert watch.wait() == set()
        assert runtime.clock.now == began + (0 if for_peers else 1)
        assert peer.wake is None
    finally:
        current_peer.reset(token)
