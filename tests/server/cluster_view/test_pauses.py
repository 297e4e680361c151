"""A process that did not run for a while does not know whether it still leads."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.server.cluster_view.pauses import Pauses
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes
from zk.errors import ZkConnectionError


class Watched:
    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.zk: Any = Session(FakeZooKeeper())
        self.zk.ensure_path(znodes.BROKER_IDS)
        self.is_fenced = False
        self.pauses = Pauses(
            self.runtime,  # type: ignore[arg-type]
            self.zk,
            6000,
            lambda: self.is_fenced,
        )

    def pause(self, seconds: float) -> None:
        self.runtime.clock.now += seconds


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_while_it_runs_there_is_no_doubt(watched: Watched) -> None:
    assert not watched.pauses.may_be_deposed  # not started yet
    for _ in range(20):
        watched.pauses.step()
        assert not watched.pauses.may_be_deposed
    assert watched.runtime.clock.now > 6
    watched.pause(2)
    assert not watched.pauses.may_be_deposed


def test_after_a_pause_it_is_in_doubt_until_zookeeper_answers(watched: Watched) -> None:
    watched.pauses.step()
    watched.pause(4)
    assert watched.pauses.may_be_deposed  # before the loop has run
    watched.zk.down = True
    for _ in range(2):
        with pytest.raises(ZkConnectionError):
            watched.pauses.step()
        assert watched.pauses.may_be_deposed
    watched.zk.down = False
    watched.pauses.step()
    assert not watched.pauses.may_be_deposed


def test_a_session_that_has_ended_is_dealt_with_first(watched: Watched) -> None:
    watched.pauses.step()
    watched.pause(4)
    watched.is_fenced = True
    watched.pauses.step()
    assert watched.pauses.may_be_deposed
    watched.is_fenced = False
    watched.pauses.step()
    assert not watched.pauses.may_be_deposed
