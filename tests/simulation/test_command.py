"""The command for many runs: its seeds, its report, and what it says about a failure."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation import command
from tests.simulation.plan import Plan
from tests.simulation.run import RunOutcome
from tests.simulation.trials import Trial

GOOD = RunOutcome(*(0,) * len(RunOutcome._fields))._replace(acknowledged=7, hash="beef")


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Those that were tried; plans with 60 faults and more than one broker fail."""
    tried: list[Plan] = []

    def attempt(plan: Plan) -> Trial:
        tried.append(plan)
        faults = Counter({"kill": len(plan.faults)})
        fails = plan.brokers > 1 and len(plan.faults) == 60
        return Trial(plan, None if fails else GOOD, "lost 3" if fails else "", faults)

    monkeypatch.setattr(command, "attempt", attempt)
    monkeypatch.setattr("logging.disable", lambda level: None)
    return tried


def test_the_faults_are_spread_over_runs(
    plans: list[Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--faults", "150", "--seed", "7", "--brokers", "1"]) == 0
    assert [(plan.seed, len(plan.faults)) for plan in plans] == [
        (7_000_000, 60),
        (7_000_001, 60),
        (7_000_002, 30),
    ]
    text = capsys.readouterr().out
    assert "3 runs, 21 messages acknowledged, 150 faults" in text
    assert "  kill: 150" in text
    assert "violations: none" in text


def test_a_seed_that_is_not_given_is_named(
    plans: list[Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    command.main(["--faults", "5", "--brokers", "1"])
    assert f"seed {plans[0].seed // 1_000_000}:" in capsys.readouterr().out


def test_machines_share_a_seed_and_no_run(plans: list[Plan]) -> None:
    for machine in ("0", "1", "2"):
        command.main(f"--faults 120 --seed 1 --brokers 1 --machines 3 --machine {machine}".split())
    assert sorted(plan.seed for plan in plans) == [1_000_000 + each for each in range(6)]


def test_no_run_begins_after_the_time(plans: list[Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(0, 10_000, 25))
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    command.main(["--minutes", "3", "--seed", "1", "--brokers", "1"])
    assert len(plans) == 7


def test_the_tries_to_make_a_failure_shorter_can_be_few(plans: list[Plan]) -> None:
    command.main(["--faults", "60", "--seed", "2", "--brokers", "3", "--tries", "3"])
    assert len(plans) == 1 + 3


def test_a_failure_is_made_shorter_and_the_status_says_so(
    plans: list[Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--faults", "70", "--seed", "2", "--brokers", "3"]) == 1
    text = capsys.readouterr().out
    assert "seed 2000000: 3 brokers, 60 faults, VIOLATION: lost 3" in text
    assert "python -m tests.simulation.run 2000000 --brokers 3 --faults 60 --trace" in text
    assert "violations: seeds 2000000" in text
