"""kafka08.lag.zookeeper_groups."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.lag.zookeeper_groups import ZooKeeperGroups
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk.errors import ZkConnectionError

TP = TopicPartition("t", 0)


def test_commits_and_members() -> None:
    server = FakeZooKeeper()
    server.put("/consumers/g/offsets/t/0", b"40")
    server.put("/consumers/g/ids/g_host-1", b"{}")
    groups = ZooKeeperGroups(Session(server))  # type: ignore[arg-type]
    groups.read()
    server.put("/consumers/g/offsets/t/0", b"50")
    groups.read()
    groups.read()
    assert [commit.offset for commit in groups.commits["g"][TP]] == [40, 50]
    assert groups.members == {"g": 1}


def test_nodes_that_cannot_be_read_are_passed_over() -> None:
    server = FakeZooKeeper()
    server.put("/consumers/g/offsets/t/0", b"forty")
    server.put("/consumers/g/offsets/t/x", b"1")
    server.put("/consumers/g/offsets/t/1", b"-1")
    groups = ZooKeeperGroups(Session(server))  # type: ignore[arg-type]
    groups.read()
    assert groups.commits == {"g": {}}


@pytest.mark.scenario("ops-26")
def test_many_groups_take_as_many_calls_as_one() -> None:
    server = FakeZooKeeper()
    for number in range(5000):
        group, partition = divmod(number, 10)
        server.put(f"/consumers/g{group}/offsets/t/{partition}", b"1")
    session = Session(server)
    calls: list[str] = []
    session.before = lambda call, path: calls.append(call)
    groups = ZooKeeperGroups(session)  # type: ignore[arg-type]
    groups.read()
    assert len(groups.commits) == 500
    assert sum(map(len, groups.commits.values())) == 5000
    assert sorted(calls) == ["children", *["children_of_all"] * 3, "get_all"]


def test_an_outage_leaves_what_was_read() -> None:
    server = FakeZooKeeper()
    server.put("/consumers/g/offsets/t/0", b"40")
    session = Session(server)
    groups = ZooKeeperGroups(session)  # type: ignore[arg-type]
    groups.read()
    session.down = True
    with pytest.raises(ZkConnectionError):
        groups.read()
    assert groups.commits["g"][TP][-1].offset == 40
