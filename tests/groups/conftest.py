from __future__ import annotations

import pytest

from tests.tools.groups.world import World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    return World(monkeypatch, capsys)
