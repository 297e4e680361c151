"""Groups in ZooKeeper, for the tests of tools that read and write them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.groups.world import ClusterWithGroups
from tests.tools.zk_support import fake_zookeeper


@pytest.fixture
def zk(monkeypatch: pytest.MonkeyPatch) -> Any:
    zk = fake_zookeeper(monkeypatch)
    for path, offset in (("g/offsets/t/0", "42"), ("g/offsets/t/1", "7"), ("h/offsets/u/0", "0")):
        zk.create(f"/consumers/{path}", offset.encode(), makepath=True)
    zk.create("/consumers/idle/ids", b"", makepath=True)
    return zk


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> ClusterWithGroups:
    return ClusterWithGroups(monkeypatch, capsys)
