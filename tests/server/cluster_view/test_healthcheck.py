"""Actions after the end of a ZooKeeper session, or only of its connection."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.errors import KafkaError
from kafka08.server.cluster_view.healthcheck import KafkaHealthcheck
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk.client import SessionState
from zk.errors import ZkConnectionError

LOST, BACK, EXPIRED = SessionState.SUSPENDED, SessionState.CONNECTED, SessionState.EXPIRED


class Kept:
    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.zk = Session(FakeZooKeeper())
        self.seen: list[Any] = []
        self.errors: list[Exception] = []
        self.keeper = KafkaHealthcheck(
            self.runtime,
            self.zk,  # type: ignore[arg-type]
            6000,
            [lambda: self.act("controller"), lambda: self.act("registration")],
            self.seen.append,
        )

    def act(self, name: str) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.seen.append(name)

    def hears(self, *states: SessionState) -> None:
        for state in states:
            self.zk.tell(state)
            self.keeper.step()


@pytest.fixture
def kept() -> Kept:
    return Kept()


def test_a_short_absence_changes_nothing(kept: Kept) -> None:
    kept.hears(LOST)
    kept.runtime.clock.now += 5.9
    kept.hears(BACK)
    assert kept.seen == [False]


def test_an_absence_as_long_as_a_session_fences_until_the_connection_is_back(kept: Kept) -> None:
    kept.hears(LOST)
    before = kept.runtime.clock.now
    kept.keeper.step()
    assert kept.seen == [True]
    assert kept.runtime.clock.now == before + 6
    kept.hears(BACK)
    assert kept.seen == [True, False]


def test_the_time_runs_from_the_loss(kept: Kept) -> None:
    kept.hears(LOST)
    kept.runtime.clock.now += 4
    kept.keeper.step()
    assert kept.runtime.clock.now == 1_400_000_000.0 + 6


def test_an_expiry_fences_and_renews_in_order(kept: Kept) -> None:
    kept.hears(LOST, EXPIRED)
    assert kept.seen == [True, "controller", "registration"]


def test_renewal_is_tried_until_it_succeeds(kept: Kept) -> None:
    kept.errors = [ZkConnectionError(), ZkConnectionError()]
    kept.hears(EXPIRED)
    assert kept.seen == [True, "controller", "registration"]
    assert kept.runtime.clock.now == 1_400_000_000.0 + 2


@pytest.mark.parametrize("error", [KafkaError("as told"), ValueError("as told")])
def test_any_failure_of_one_act_keeps_none_of_the_others_away(kept: Kept, error: Exception) -> None:
    """Otherwise the broker would stay alive without a registration."""
    kept.errors = [error]
    kept.hears(EXPIRED)
    assert kept.seen == [True, "controller", "registration"]


def test_stopping_ends_the_tries(kept: Kept) -> None:
    kept.errors = [ZkConnectionError()] * 5
    kept.runtime.while_waiting = [kept.keeper.stop]
    kept.hears(EXPIRED)
    assert kept.seen == [True]
    kept.keeper.step()  # the stop woke it, not a state
    assert kept.seen == [True]
