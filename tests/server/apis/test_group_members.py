from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka08.protocol import admin_schemas as a
from tests.server.admin_support import AdminRig
from zk.errors import ZkConnectionError


@pytest.fixture
def rig(tmp_path: Path) -> AdminRig:
    return AdminRig(tmp_path)


def describe(rig: AdminRig, *groups: str) -> list[Any]:
    return list(rig.call(a.DescribeGroupsRequest(list(groups))).groups)


def put(rig: AdminRig, path: str, data: bytes) -> None:
    rig.zk.create(f"/consumers/g/{path}", data, makepath=True)


def test_members_and_owners_as_they_are(rig: AdminRig) -> None:
    put(rig, "ids/g_a", b"registration of a")
    put(rig, "ids/g_b", b"")
    put(rig, "owners/t/0", b"g_a-0")
    put(rig, "owners/t/11", b"g_a-1")
    put(rig, "owners/t/x", b"\xff")
    [group] = describe(rig, "g")
    assert group[:5] == (0, "g", "Stable", "zookeeper", "")
    found = {m.member_id: (bytes(m.metadata), json.loads(bytes(m.assignment))) for m in group[5]}
    assert found == {
        "g_a": (b"registration of a", {"t": {"0": "g_a-0", "11": "g_a-1"}}),
        "g_b": (b" ", {}),
        "\ufffd": (b"", {"t": {"x": "\ufffd"}}),
    }


def test_groups_without_members(rig: AdminRig) -> None:
    put(rig, "offsets/t/0", b"1")
    assert [group[:3] for group in describe(rig, "g", "h")] == [(0, "g", "Empty"), (0, "h", "Dead")]
    put(rig, "owners/t/0", b"left-0")
    assert describe(rig, "g")[0].state == "Empty"


def test_zookeeper_is_asked_once_for_many(rig: AdminRig, monkeypatch: pytest.MonkeyPatch) -> None:
    put(rig, "ids/g_a", b"registration of a")

    def never(path: str) -> None:
        raise AssertionError(f"asked for {path}")

    monkeypatch.setattr(rig.zk, "exists", never)
    states = [each.state for each in describe(rig, "g", "g/ids", *[f"h{n}" for n in range(50)])]
    assert states == ["Stable"] + ["Dead"] * 51


@pytest.mark.parametrize("group", ["", "..", "a/../b", "a\0"])
def test_groups_that_are_no_path(rig: AdminRig, group: str) -> None:
    assert [tuple(found) for found in describe(rig, group)] == [(-1, group, "", "", "", [])]


def test_zookeeper_away(rig: AdminRig, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(path: str) -> None:
        raise ZkConnectionError(path=path)

    monkeypatch.setattr(rig.zk, "exists", away)
    assert [found[:2] for found in describe(rig, "g")] == [(-1, "g")]
    monkeypatch.setattr(rig.zk, "children_if_exists", away)
    assert [found[:2] for found in describe(rig, "g", "h")] == [(-1, "g"), (-1, "h")]
