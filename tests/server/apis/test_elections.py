"""ElectLeaders: preferred replicas lead again, or why they cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08 import admin
from kafka08.errors import LaterCode
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.schemas import PartitionStateInfo
from tests.server.admin_support import AdminRig


@pytest.fixture
def rig(tmp_path: Path) -> AdminRig:
    return AdminRig(tmp_path, later=True)


def state(rig: AdminRig, leader: int, isr: list[int]) -> None:
    """t-0 has the replicas 2 and 1."""
    rig.cache.update([PartitionStateInfo("t", 0, 1, leader, 0, isr, 0, [2, 1])], rig.brokers)


def elect(rig: AdminRig, *partitions: int, kind: int = 0, version: int = 1) -> Any:
    topics = [a.ElectTopic("t", list(partitions))] if partitions else None
    return rig.call(a.ElectLeadersRequest(topics, 100, kind), version)


@pytest.mark.scenario("modern-49")
def test_the_preferred_replica_leads_again(rig: AdminRig) -> None:
    state(rig, 1, [1, 2])
    rig.runtime.on_sleep = lambda seconds: state(rig, 2, [1, 2])
    assert elect(rig, 0, 5)[1:] == (0, [("t", [(0, 0, None), (5, 3, None)])])
    assert admin.fetch_preferred_elections(rig.zk) == [("t", 0)]


def test_elections_that_cannot_be(rig: AdminRig) -> None:
    rig.controller_works = False
    state(rig, 2, [1, 2])
    assert elect(rig, 0, version=0).topics == [("t", [(0, LaterCode.ELECTION_NOT_NEEDED, None)])]
    assert elect(rig).topics == []
    state(rig, 1, [1])
    lacking = LaterCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert elect(rig).topics == [("t", [(0, lacking, None)])]
    assert elect(rig, 0, kind=1).error == LaterCode.INVALID_REQUEST
    state(rig, 1, [1, 2])
    assert elect(rig).topics == [("t", [(0, 7, None)])]


def test_leaders_that_do_not_come_in_time(rig: AdminRig) -> None:
    state(rig, 1, [1, 2])
    rig.controller_works = False
    began = rig.runtime.clock.monotonic()
    found = elect(rig, 0)
    assert [each.error for each in found.topics[0].partitions] == [7]
    assert rig.runtime.clock.monotonic() - began == pytest.approx(0.1)
