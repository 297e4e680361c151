from __future__ import annotations

from typing import Any

from kafka08.runtime import Scheduler
from tests.server.support import Rig


def test_its_timers(rig: Rig) -> None:
    runtime: Any = rig.runtime
    fetchers: Any = rig.fetchers
    fetchers.shutdown_idle_fetchers = lambda: None
    rig.replication.schedule(Scheduler(runtime))
    assert [task.name for task in rig.runtime.tasks] == [
        "highwatermark-checkpoint",
        "isr-expiration",
        "idle-fetchers",
        "refused-partitions",
    ]


def test_copying_stops_after_the_isr(rig: Rig) -> None:
    fetchers: Any = rig.fetchers
    fetchers.stop = lambda: None
    parts = list(rig.replication.tasks())
    assert [part.name for part in parts] == ["fetchers", "isr maintenance"]
    assert parts[0].start is None
