"""Plans: a fault that is left out leaves the others as they are."""

from __future__ import annotations

from tests.simulation.plan import draw


def test_a_longer_plan_begins_as_a_shorter_one() -> None:
    assert draw(3, faults=9).faults[:4] == draw(3, faults=4).faults


def test_seeds_differ_in_faults_and_in_brokers() -> None:
    plans = [draw(seed) for seed in range(100)]
    assert len({plan.faults for plan in plans}) == 100
    assert {plan.brokers for plan in plans} == {1, 2, 3, 4, 5}
    assert draw(1, brokers=2).brokers == 2


def test_the_first_faults_last_until_the_next_would_have_come() -> None:
    plan = draw(1, faults=5)
    assert plan.until(2) == draw(1, faults=2)
    assert plan.until(2).seconds == plan.faults[2].at
    assert plan.until(5) == plan


def test_single_faults_can_be_left_out() -> None:
    plan = draw(1, faults=5)
    assert plan.keeping({1, 4}).faults == (plan.faults[0], plan.faults[3])
    assert plan.keeping({1, 4}).seconds == plan.seconds
