"""A group's nodes before and after a tool consumes."""

from __future__ import annotations

import pytest

from tests.fakes.zookeeper import FakeZooKeeper, Session
from tools.groups import nodes


@pytest.fixture
def zk(monkeypatch: pytest.MonkeyPatch) -> Session:
    session = Session(FakeZooKeeper())
    session.server.put("/consumers/g/offsets/t/0", b"5")
    session.server.put("/consumers/h/ids")
    monkeypatch.setattr(nodes, "zookeeper", lambda connect, security: session)
    return session


def test_a_group_with_offsets(zk: Session) -> None:
    assert [nodes.has_offsets("z", group) for group in ("g", "h", "no")] == [True, False, False]
    assert zk.closed


def test_deleting_leaves_other_groups(zk: Session) -> None:
    assert nodes.delete_group("z", "g", timeout_s=1.5)
    assert zk.server.below("/consumers") == ["h"]
    assert zk.patience_s == 1.5
    assert nodes.delete_group("z", "no")


def test_without_an_answer_both_are_false(zk: Session) -> None:
    zk.down = True
    assert not nodes.has_offsets("z", "g")
    assert not nodes.delete_group("z", "g")
    assert "/consumers/g/offsets/t/0" in zk.server.nodes
    assert zk.closed
