"""Conditions: as the seed draws them, and a cluster at rest between faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation import plan
from tests.simulation.aims import AIMS, SYNCED, Aim
from tests.simulation.conditions import ALL, LONE, Conditions, aimed, draw
from tests.simulation.faults import FAULTS, KINDS
from tests.simulation.run import SimulatedRun


def test_a_seed_gives_the_same_conditions() -> None:
    assert draw(5) == draw(5)


def test_seeds_differ_in_faults_settings_and_rests() -> None:
    drawn = [draw(seed) for seed in range(100)]
    assert 30 < sum(each.faults == ALL for each in drawn) < 70
    assert len({each.faults for each in drawn}) > 30
    assert {each.rests_every for each in drawn} == {0, 10, 20}
    for settings in (SYNCED, LONE):
        assert 10 < sum(settings.items() <= each.settings.items() for each in drawn) < 40


def test_some_runs_have_an_aim() -> None:
    seeds = range(300)
    drawn = [draw(seed) for seed in seeds]
    for aim in AIMS:
        assert any(draw(seed) == aimed(seed, aim) for seed in seeds)
    assert 30 < sum(each.only for each in drawn) < 90


def test_a_kind_that_comes_keeps_its_weight() -> None:
    for name, fault in FAULTS.items():
        assert ALL.count(name) == fault.weight
    for seed in range(20):
        faults = draw(seed).faults
        harm = {name: faults.count(name) for name in faults if name not in ("calm", "start")}
        assert len({count / max(KINDS[name].weight, 1) for name, count in harm.items()}) <= 1
        assert 0.2 < (len(faults) - sum(harm.values())) / sum(harm.values()) < 0.5


def test_runs_with_an_aim_have_few_faults_and_what_it_needs() -> None:
    for seed in range(20):
        found = aimed(seed, Aim(("kill", "cut"), SYNCED, ("admin",)))
        unaimed = aimed(seed, Aim())
        assert set(found.faults) == {"kill", "cut", "calm", "start"}
        assert found.settings == {**unaimed.settings, **SYNCED}
        assert (found.loads, found.rests_every) == (("admin",), unaimed.rests_every)
        assert aimed(seed, Aim(("kill",), rests_every=5)).rests_every == 5
        assert aimed(seed, Aim(loads=("lists",), only=True)).only
        assert aimed(seed, Aim(loads=("lists",))) == unaimed._replace(loads=("lists",))
        aim = Aim(("kill",), amid=0.5, compacts=True)
        assert (aimed(seed, aim).amid, aimed(seed, aim).compacts) == (0.5, True)
    assert sum(draw(seed) == aimed(seed, Aim()) for seed in range(100)) > 60


@pytest.mark.parametrize("rests_every", [0, 2])
def test_between_faults_a_cluster_comes_to_rest(tmp_path: Path, rests_every: int) -> None:
    rests = []

    class Counted(SimulatedRun):
        def settle(self) -> None:
            super().settle()
            rests.append(sum(self.faults.values()))

    drawn = Conditions(("kill",), rests_every=rests_every)
    Counted(tmp_path, plan.draw(1, faults=4, brokers=2), drawn=drawn).run()
    assert rests == ([2, 4, 4] if rests_every else [4])
