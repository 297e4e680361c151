"""Plans of runs that fail are made shorter, by trials that are made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.simulation.plan import Plan, draw
from tests.simulation.shrink import Shrinking
from tests.simulation.trials import Trial

CLIENTS = ("reader", "writer", "third")


def trial(plan: Plan, failure: str) -> Trial:
    return Trial(plan, None, failure, Counter({"kill": len(plan.faults)}))


def shrunk(fails: Callable[[Plan], bool], count: int, trials: int = 100) -> Trial:
    """From a plan of so many faults, where ``fails`` says which plans do."""
    numbers = iter(range(1000))

    def attempt(plan: Plan) -> Trial:
        return trial(plan, f"lost {next(numbers)}" if fails(plan) else "")

    return Shrinking(attempt(draw(1, faults=count)), attempt, trials).shrink(CLIENTS)


def numbers_of(plan: Plan) -> list[int]:
    return [each.number for each in plan.faults]


def test_the_faults_that_matter_are_left() -> None:
    smallest = shrunk(lambda plan: {4, 9, 17} <= set(numbers_of(plan)), 40)
    assert numbers_of(smallest.plan) == [4, 9, 17]
    assert smallest.plan.seconds == draw(1, faults=17).seconds


def test_a_failure_without_any_fault_needs_none() -> None:
    smallest = shrunk(lambda plan: True, 40)
    assert numbers_of(smallest.plan) == []
    assert smallest.plan.without == set(CLIENTS)


def test_the_clients_that_matter_are_left() -> None:
    smallest = shrunk(lambda plan: "writer" not in plan.without, 2)
    assert smallest.plan.without == {"reader", "third"}


def test_another_failure_does_not_count() -> None:
    def attempt(plan: Plan) -> Trial:
        return trial(plan, "lost 1" if len(plan.faults) >= 3 else "stalled")

    smallest = Shrinking(attempt(draw(1, faults=9)), attempt).shrink(())
    assert (len(smallest.plan.faults), smallest.reason) == (3, "lost 1")


def test_the_trials_are_limited() -> None:
    smallest = shrunk(lambda plan: 9 in numbers_of(plan), 40, trials=3)
    assert 1 < len(smallest.plan.faults) < 40


def test_failures_are_compared_without_their_values() -> None:
    plan = draw(1, faults=1)
    first = trial(plan, "AssertionError(\"b'12' is at 3\")\ntrace 1")
    assert first.kind == trial(plan, "AssertionError(\"b'7' is at 40\")\ntrace 2").kind
    assert first.reason == "AssertionError(\"b'12' is at 3\")"
