from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.groups.consumer_protocol import CONSUMER
from kafka08.protocol.admin_schemas import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    GroupMember,
)
from kafka08.protocol.group_schemas import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kafka08.protocol.schemas import ConsumerMetadataRequest, OffsetFetchRequest
from kafka08.rest.v3.groups import _words
from tests.rest.world import RestWorld

BASE = "/v3/clusters/c/consumer-groups"


@pytest.fixture
def world() -> RestWorld:
    world = RestWorld(rest__cluster__id="c")
    world.topic("t", 2)
    world.brokers.append("t", 0, *[b"x"] * 10)
    world.brokers.append("t", 1, b"x")
    world.ensemble.put("/consumers/g/offsets/t/0", b"4")
    world.ensemble.put("/consumers/g/offsets/t/1", b"9")
    world.ensemble.put("/consumers/g/offsets/gone/0", b"1")
    world.ensemble.put("/consumers/g/offsets/t/x", b"nonsense")
    world.ensemble.put("/consumers/g/owners/t/0", b"g_host-1-0")
    world.ensemble.put("/consumers/g/ids/g_host-1", b"{}")
    world.ensemble.put("/consumers/idle")
    return world


def get(world: RestWorld, path: str) -> Any:
    status, found = world.call("GET", f"{BASE}{path}")
    assert status == 200, found
    return found


def test_groups_and_their_members(world: RestWorld) -> None:
    states = {each["consumer_group_id"]: each["state"] for each in get(world, "")["data"]}
    assert states == {"g": "STABLE", "idle": "EMPTY"}
    assert get(world, "/g")["state"] == "STABLE"
    (member,) = get(world, "/g/consumers")["data"]
    assert member["consumer_id"] == "g_host-1"
    assert get(world, "/g/consumers/g_host-1") == member
    assert world.code("GET", f"{BASE}/g/consumers/none") == (404, 404)
    assert world.code("GET", f"{BASE}/none") == (404, 404)


def test_lags(world: RestWorld) -> None:
    lags = [
        (each["partition_id"], each["current_offset"], each["log_end_offset"], each["lag"])
        for each in get(world, "/g/lags")["data"]
    ]
    assert lags == [(0, 4, 10, 6), (1, 9, 1, 0)]  # never negative
    assert [each["consumer_id"] for each in get(world, "/g/lags")["data"]] == ["g_host-1", ""]
    summary = get(world, "/g/lag-summary")
    assert (summary["max_lag"], summary["total_lag"]) == (6, 6)
    assert (summary["max_lag_topic_name"], summary["max_lag_partition_id"]) == ("t", 0)
    assert get(world, "/idle/lags")["data"] == []
    assert world.code("GET", f"{BASE}/idle/lag-summary") == (404, 404)


def coordinated(world: RestWorld) -> RestWorld:
    """Broker 0 coordinates the group ``new`` of one member, which owns t-1."""
    subscribed = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\xff" * 4
    owned = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\1" + b"\0\0\0\1" + b"\xff" * 4
    member = GroupMember("m-1", "app", "/10.0.0.1", memoryview(subscribed), memoryview(owned))
    described = DescribedGroup(0, "new", "Stable", CONSUMER, "range", [member])

    def script(port: int, request: Any) -> Any:
        if isinstance(request, ListGroupsRequest):
            return ListGroupsResponse(0, [ListedGroup("new", CONSUMER)])
        if isinstance(request, DescribeGroupsRequest):
            return DescribeGroupsResponse([described])
        return None

    world.brokers.script = script
    world.brokers.committed["new", TopicPartition("t", 0)] = 10
    world.brokers.committed["new", TopicPartition("t", 1)] = 0
    return world


def test_groups_that_brokers_coordinate(world: RestWorld) -> None:
    coordinated(world)
    states = {each["consumer_group_id"]: each["state"] for each in get(world, "")["data"]}
    assert states == {"g": "STABLE", "idle": "EMPTY", "new": "STABLE"}
    found = get(world, "/new")
    assert (found["partition_assignor"], found["is_simple"]) == ("range", False)
    assert found["coordinator"]["related"].endswith("/clusters/c/brokers/0")
    (member,) = get(world, "/new/consumers")["data"]
    assert (member["consumer_id"], member["client_id"]) == ("m-1", "app")
    (share,) = get(world, "/new/consumers/m-1/assignments")["data"]
    assert (share["topic_name"], share["partition_id"]) == ("t", 1)
    lags = get(world, "/new/lags")["data"]
    assert [(each["partition_id"], each["lag"], each["client_id"]) for each in lags] == [
        (0, 0, "new"),
        (1, 1, "app"),
    ]
    assert get(world, "/new/lags/t/partitions/1") == lags[1]
    assert world.code("GET", f"{BASE}/new/lags/t/partitions/7") == (404, 404)
    assert get(world, "/new/lag-summary")["max_lag_consumer_id"] == "m-1"


def test_brokers_are_not_asked_about_other_groups(world: RestWorld) -> None:
    """The question alone would make them create the topic of offsets."""
    coordinated(world)
    for path in ("/g", "/g/consumers", "/g/lags", "/idle"):
        get(world, path)
    assert world.brokers.sent(ConsumerMetadataRequest) == []
    assert world.brokers.sent(OffsetFetchRequest) == []


def test_the_states_in_the_words_of_v3() -> None:
    assert _words("PreparingRebalance") == "PREPARING_REBALANCE"
