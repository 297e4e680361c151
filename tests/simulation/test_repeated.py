"""Processes that hash strings in different ways give the same run."""

from __future__ import annotations

import sys

from tests.simulation.repeated import differences


def test_a_seed_gives_the_same_run_in_another_process() -> None:
    assert differences([sys.executable], [4], 6) == []
