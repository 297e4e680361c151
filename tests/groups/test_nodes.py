"""The nodes of groups; an offset is that of a partition, not of a node with another name."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.groups import nodes
from tests.fakes.zookeeper import FakeZooKeeper, Session

T0 = TopicPartition("t", 0)


@pytest.fixture
def zk() -> Session:
    session = Session(FakeZooKeeper())
    session.server.put("/consumers/g/ids/g_b", b"{}")
    session.server.put("/consumers/g/ids/g_a", b"")
    session.server.put("/consumers/g/owners/t/0", b"g_a-1-0")
    session.server.put("/consumers/g/owners/t/x", b"\xff")
    session.server.put("/consumers/h/offsets/t/1", b"forty")
    session.server.put("/consumers/h/offsets/t/x", b"1")
    return session


def test_groups_and_members(zk: Session) -> None:
    assert nodes.list_groups(zk) == ["g", "h"]  # type: ignore[arg-type]
    assert nodes.member_ids(zk, "g") == ["g_a", "g_b"]  # type: ignore[arg-type]
    assert nodes.registrations(zk, "g") == {"g_a": b"", "g_b": b"{}"}  # type: ignore[arg-type]
    assert nodes.registrations(zk, "no") == {}  # type: ignore[arg-type]


def test_owners(zk: Session) -> None:
    owners = nodes.owner_nodes(zk, "g")  # type: ignore[arg-type]
    assert owners == {"t": {"0": "g_a-1-0", "x": "\ufffd"}}
    assert nodes.by_partition(owners) == {T0: "g_a-1-0"}
    assert nodes.consumer_of("g_a-1-0") == "g_a-1"
    assert nodes.consumer_of("odd") == "odd"


def test_offsets(zk: Session, caplog: pytest.LogCaptureFixture) -> None:
    assert nodes.fetch_offset(zk, "h", T0) is None  # type: ignore[arg-type]
    for offset in (5, 1 << 40):
        nodes.store_offset(zk, "h", T0, offset)  # type: ignore[arg-type]
        assert nodes.fetch_offset(zk, "h", T0) == offset  # type: ignore[arg-type]
    assert zk.get("/consumers/h/offsets/t/0")[0] == b"1099511627776"
    found = nodes.offsets(zk, ["g", "h"])  # type: ignore[arg-type]
    assert {group: [*each] for group, each in found.items()} == {"g": [], "h": [T0]}
    assert found["h"][T0].offset == 1 << 40
    assert "/consumers/h/offsets/t/1" in caplog.text
