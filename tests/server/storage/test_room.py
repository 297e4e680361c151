from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.runtime import Scheduler
from tests.server.support import Rig


@pytest.mark.parametrize(
    ("cleaner", "names"),
    [
        ("false", ["log tasks", "rebuilding"]),
        ("true", ["log tasks", "the log cleaner", "rebuilding"]),
    ],
)
def test_the_cleaner_runs_where_it_is_enabled(
    make_rig: Callable[..., Rig], cleaner: str, names: list[str]
) -> None:
    rig = make_rig(log_cleaner_enable=cleaner)
    runtime: Any = rig.runtime
    assert [part.name for part in rig.rooms[0].tasks(Scheduler(runtime))] == names
