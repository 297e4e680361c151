from __future__ import annotations

import pytest

from tests.tools.groups.world import ClusterWithGroups


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> ClusterWithGroups:
    return ClusterWithGroups(monkeypatch, capsys)
