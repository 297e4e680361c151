"""The announcements of changed isrs, to controllers that read them and controllers that do not."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.server.replication import isr_changes
from kafka08.server.replication.isr_changes import IsrChanges
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes
from zk.errors import ZkConnectionError

A, B, C = (TopicPartition("t", partition) for partition in range(3))


class Announcer:
    def __init__(self) -> None:
        self.server = FakeZooKeeper()
        self.zk = Session(self.server)
        self.changes = IsrChanges(self.zk)  # type: ignore[arg-type]

    def announce(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self.changes.add(partition)
        self.changes.announce()

    def paths(self) -> list[str]:
        names = self.server.children(znodes.ISR_CHANGES)
        return [f"{znodes.ISR_CHANGES}/{name}" for name in names]

    def read(self) -> list[list[TopicPartition]]:
        return [znodes.decode_partitions(path, self.zk.get(path)[0]) for path in self.paths()]


@pytest.fixture
def announcer() -> Announcer:
    return Announcer()


def test_nothing_changed_nothing_written(announcer: Announcer) -> None:
    announcer.announce()
    assert announcer.server.nodes == {}


def test_one_node_until_it_is_read_then_another(announcer: Announcer) -> None:
    announcer.announce(B)
    announcer.announce(A)
    assert announcer.read() == [[A, B]]
    (path,) = announcer.paths()
    assert path == "/isr_change_notification/isr_change_0000000000"
    announcer.zk.delete(path)
    announcer.announce(C)
    assert announcer.read() == [[C]]


def test_a_repeated_change_is_written_again(announcer: Announcer) -> None:
    """A controller that deletes the node with the version it has read misses no change."""
    announcer.announce(A)
    announcer.announce(A)
    (path,) = announcer.paths()
    assert announcer.zk.get(path)[1].version == 1


def test_the_node_ends_with_the_session(announcer: Announcer) -> None:
    announcer.announce(A)
    announcer.zk.lose_session()
    assert announcer.paths() == []
    announcer.zk.renew_session()
    announcer.announce(B)
    assert announcer.read() == [[B]]


def test_trouble_with_zookeeper_leaves_it_due(announcer: Announcer) -> None:
    announcer.zk.down = True
    announcer.announce(A)
    announcer.zk.down = False
    announcer.announce()
    assert announcer.read() == [[A]]
    announcer.zk.fails[announcer.paths()[0]] = ZkConnectionError()
    announcer.announce(B)
    announcer.announce(C)
    assert announcer.read() == [[A, B, C]]


def test_a_node_that_nobody_reads_stays_small(
    announcer: Announcer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isr_changes, "MOST", 2)
    assert not announcer.changes.add(A)
    assert announcer.changes.add(B)
    announcer.announce()
    announcer.announce(C)
    assert announcer.read() == [[C]]
