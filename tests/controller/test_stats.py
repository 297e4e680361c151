from __future__ import annotations

import pytest

from kafka08.controller.context import ControllerContext
from kafka08.controller.stats import ControllerStats


@pytest.mark.scenario("ops-8")
def test_terms_share_the_counts() -> None:
    stats = ControllerStats()
    first, second = ControllerContext(stats), ControllerContext(stats)
    first.stats.unclean.mark()
    second.stats.elections.record(0.1)
    assert (stats.unclean.count, stats.elections.meter.count) == (1, 1)
