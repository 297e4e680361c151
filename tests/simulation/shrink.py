"""Makes the plan of a run that fails shorter: fewer faults, fewer clients, the same failure."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.plan import Plan
from tests.simulation.trials import Trial

TRIALS = 100
"""The most runs that one failure is worth."""


class Shrinking:
    """``smallest``: the trial with the fewest faults and clients that has failed as the first."""

    def __init__(
        self, failed: Trial, attempt: Callable[[Plan], Trial], trials: int = TRIALS
    ) -> None:
        self.smallest = failed
        self._attempt = attempt
        self._left = trials

    def shrink(self, clients: tuple[str, ...]) -> Trial:
        """``clients``: those that can be left out."""
        self._find_prefix()
        self._drop_clients(clients)
        while self._drop_faults():
            pass
        return self.smallest

    def _fails(self, plan: Plan) -> bool:
        if not self._left:
            return False
        self._left -= 1
        trial = self._attempt(plan)
        if trial.kind != self.smallest.kind:
            return False
        self.smallest = trial
        return True

    def _find_prefix(self) -> None:
        """The shortest beginning, as far as a search by halves finds it."""
        plan = self.smallest.plan
        begun = sum(self.smallest.faults.values())
        too_short, enough = -1, begun if self._fails(plan.until(begun)) else len(plan.faults)
        while enough - too_short > 1:
            middle = (too_short + enough) // 2
            if self._fails(plan.until(middle)):
                enough = middle
            else:
                too_short = middle

    def _drop_clients(self, clients: tuple[str, ...]) -> None:
        for name in clients:
            plan = self.smallest.plan
            self._fails(plan._replace(without=plan.without | {name}))

    def _drop_faults(self) -> bool:
        """Whether one could be dropped: then another may be, too."""
        before = self.smallest.plan.faults
        for fault in reversed(before):
            plan = self.smallest.plan
            self._fails(plan.keeping({each.number for each in plan.faults} - {fault.number}))
        return self.smallest.plan.faults != before
