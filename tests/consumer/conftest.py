from __future__ import annotations

import pytest

from tests.consumer.group_world import GroupWorld


@pytest.fixture
def world() -> GroupWorld:
    world = GroupWorld()
    world.topic("t", 2)
    return world
