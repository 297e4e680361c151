from __future__ import annotations

import pytest

from tests.tools.groups.world import GroupWorld


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> GroupWorld:
    return GroupWorld(monkeypatch, capsys)
