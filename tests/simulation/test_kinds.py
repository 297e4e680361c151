"""Most clusters are of today, some have brokers of several kinds."""

from __future__ import annotations

from tests.simulation.kinds import KINDS, are_of_today, draw


def test_a_seed_gives_the_same_kinds() -> None:
    assert draw(5, 3) == draw(5, 3)
    assert len(draw(5, 3)) == 3


def test_some_clusters_are_mixed() -> None:
    drawn = [draw(seed, 3) for seed in range(200)]
    assert 20 < sum(not are_of_today(each) for each in drawn) < 60
    assert {kind for each in drawn for kind in each} == set(KINDS)
