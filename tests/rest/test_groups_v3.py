from __future__ import annotations

from typing import Any

import pytest

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
