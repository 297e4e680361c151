"""Offsets of groups in ZooKeeper, by the wire codes of their requests."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.server.groups.zk_offsets import ZkOffsets, check_path
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk.errors import ZkConnectionError, ZkError

T0 = TopicPartition("t", 0)
PATH = "/consumers/g/offsets/t/0"


@pytest.fixture
def zk() -> Session:
    return Session(FakeZooKeeper())


@pytest.fixture
def offsets(zk: Session) -> ZkOffsets:
    return ZkOffsets(zk)  # type: ignore[arg-type]


def test_what_is_committed_is_fetched(zk: Session, offsets: ZkOffsets) -> None:
    assert offsets.fetch("g", T0) == (-1, 3)
    for offset in (42, 7):
        assert offsets.commit("g", T0, offset) == 0
        assert offsets.fetch("g", T0) == (offset, 0)
    assert zk.get(PATH)[0] == b"7"


def test_zookeeper_does_not_answer(zk: Session, offsets: ZkOffsets) -> None:
    zk.down = True
    assert offsets.commit("g", T0, 1) == -1
    assert offsets.fetch("g", T0) == (-1, -1)


def test_a_node_that_is_not_a_number(zk: Session, offsets: ZkOffsets) -> None:
    zk.create(PATH, b"seven", makepath=True)
    assert offsets.fetch("g", T0) == (-1, -1)


@pytest.mark.parametrize("group", ["", ".", "..", "a/../b", "a//b", "a\0b", "\ud800"])
def test_groups_that_would_name_another_node(
    zk: Session, offsets: ZkOffsets, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")  # a report with half a character cannot be sent by pytest-xdist
    zk.fails["/consumers"] = ZkConnectionError()
    assert offsets.commit(group, T0, 1) == -1
    assert offsets.fetch(group, T0) == (-1, -1)
    assert zk.server.writes == []
    with pytest.raises(ZkError, match="is not a path"):
        check_path(f"/consumers/{group}/offsets")
