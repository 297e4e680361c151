"""The members of a group, as ZooKeeper and brokers tell of them."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.errors import ProtocolError
from kafka08.groups import members
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.schemas import RequestHeader
from kafka08.server.apis.group_members import DescribeGroupsApi
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import Session
from tests.tools.groups.world import T0, T1, ClusterWithGroups


def test_what_a_broker_tells_of_members_reads_as_zookeeper_does(world: ClusterWithGroups) -> None:
    world.member("a", T0, streams=2)
    world.member("b")
    world.put("/consumers/g/owners/t/1", b"stranger-0")
    client: Any = Session(world.ensemble)
    seen = members.read_group(client, "g")
    api, header = DescribeGroupsApi(FakeRuntime(), client), RequestHeader(15, 0, 1, "c")
    [described] = api.handle(header, a.DescribeGroupsRequest(["g"])).groups
    assert members.from_described(described, {"t": [0, 1], "u": [0]}) == seen
    assert seen.misplaced() == [T1]
    other = described._replace(members=[a.GroupMember("x", "", "", b"{}", b"\0\0")])
    with pytest.raises(ProtocolError, match="in other words"):
        members.from_described(other, {})
