"""Many runs on seeds of their own: ``make simulate ARGS='--faults N --seed S'``.

Each run has a plan of 60 faults on 1 to 5 brokers. A run that fails is made shorter, and the
command that repeats it is printed; the exit status is 1 then. Without ``--seed`` a new one is drawn
and printed. ``--machine I --machines K`` takes one run in K: machines that share a seed share no
run.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator

from tests.simulation import plan as plans
from tests.simulation.plan import Plan
from tests.simulation.run import repeat_command
from tests.simulation.shrink import TRIALS, Shrinking
from tests.simulation.trials import Trial, attempt

_SEEDS = 1_000_000
"""More than the runs of one seed."""


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    if options.faults is None and options.minutes is None:
        options.faults = 600
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(_SEEDS)
    logging.disable(logging.CRITICAL)
    print(f"seed {options.seed}: runs {options.machine}, and each {options.machines}th", flush=True)
    report = Report()
    for plan in _plans(options):
        trial = attempt(plan)
        report.add(trial)
        print(line_of(trial), flush=True)
        if trial.failure:
            _explain(trial, options.tries)
    print(report)
    return 1 if report.violations else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make simulate ARGS=...", description=__doc__)
    parser.add_argument("--faults", type=int, help="in all (600, or no limit with --minutes)")
    parser.add_argument("--minutes", type=float, help="begin no run after this time")
    parser.add_argument("--seed", type=int, help=f"below {_SEEDS:,} (a new one)")
    parser.add_argument("--brokers", type=int, help="of each run (the seed picks)")
    parser.add_argument("--tries", type=int, default=TRIALS, help="to make a failure shorter")
    parser.add_argument("--machine", type=int, default=0, help="the number of this one, from 0")
    parser.add_argument("--machines", type=int, default=1, help="that share the seed")
    return parser


def _plans(options: argparse.Namespace) -> Iterator[Plan]:
    deadline = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    number, left = options.machine, options.faults
    while (left is None or left > 0) and (deadline is None or time.monotonic() < deadline):
        faults = plans.FAULTS if left is None else min(plans.FAULTS, left)
        left = None if left is None else left - faults
        yield plans.draw(options.seed * _SEEDS + number, faults=faults, brokers=options.brokers)
        number += options.machines


def line_of(trial: Trial) -> str:
    plan, count = trial.plan, sum(trial.faults.values())
    run = f"seed {plan.seed}: {plan.brokers} brokers, {count} faults"
    if trial.outcome is None:
        return f"{run}, VIOLATION: {trial.reason}"
    return f"{run}, {trial.outcome.acknowledged} acknowledged, {trial.outcome.hash}"


def _explain(trial: Trial, tries: int) -> None:
    """Print how the failure is repeated, and what is left of it."""
    print(f"  {repeat_command(trial.plan)}", flush=True)
    smallest = Shrinking(trial, attempt, tries).shrink(trial.clients)
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(smallest.faults.items()))
    print(f"  with {kinds or 'no fault'}: {smallest.reason}")
    print(f"  {repeat_command(smallest.plan)} --trace", flush=True)


class Report:
    """The sums over all runs."""

    def __init__(self) -> None:
        self.runs = self.acknowledged = 0
        self.faults: Counter[str] = Counter()
        self.violations: list[int] = []
        self._began = time.process_time()

    def add(self, trial: Trial) -> None:
        self.runs += 1
        self.faults += trial.faults
        if trial.outcome is None:
            self.violations.append(trial.plan.seed)
        else:
            self.acknowledged += trial.outcome.acknowledged

    def __str__(self) -> str:
        hours = (time.process_time() - self._began) / 3600
        count = sum(self.faults.values())
        kinds = (f"  {name}: {number}" for name, number in sorted(self.faults.items()))
        rate = f"{count / hours:,.0f} an hour of CPU" if hours else "at once"
        violations = f"seeds {', '.join(map(str, self.violations))}" if self.violations else "none"
        return "\n".join([
            f"{self.runs} runs, {self.acknowledged} messages acknowledged, "
            f"{count} faults, {rate}:",
            *kinds,
            f"violations: {violations}",
        ])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
