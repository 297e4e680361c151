"""One run of a plan, whose failure is an outcome as well."""

from __future__ import annotations

import re
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from tests.simulation.conditions import Conditions
from tests.simulation.plan import Plan
from tests.simulation.run import IN_MEMORY, RunOutcome, SimulatedRun
from tests.simulation.scheduler import Trace

_CPU_SECONDS = 300.0


class NeverEnds(BaseException):
    """A step of a task takes so long that it may never end. No handler for errors catches it."""


class Trial(NamedTuple):
    """``outcome``: of a run that kept all promises; ``failure``: what happened otherwise, else
    empty. ``faults``: how often each came. ``clients``: those that could have been left out."""

    plan: Plan
    outcome: RunOutcome | None
    failure: str
    faults: Counter[str]
    clients: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """The failure in a line."""
        return re.split(r"\n|\\n", self.failure, maxsplit=1)[0]

    @property
    def kind(self) -> str:
        """The reason without its numbers and values: that of other runs with the same fault."""
        return re.sub(r"b'.*?'|-?\d+(\.\d+)?", "N", self.reason)


def attempt(plan: Plan, trace: Trace | None = None, drawn: Conditions | None = None) -> Trial:
    """Run it in a directory of its own; under these conditions, or those of its seed."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
        run = SimulatedRun(Path(directory), plan, trace, drawn)
        try:
            with _limited():
                outcome = run.run()
        except (AssertionError, NeverEnds) as error:
            return Trial(plan, None, str(error) or repr(error), run.faults, run.optional)
    return Trial(plan, outcome, "", run.faults, run.optional)


@contextmanager
def _limited() -> Iterator[None]:
    """Raises NeverEnds in whatever takes so much of the processor."""
    before = signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _give_up(number: int, frame: FrameType | None) -> None:
    raise NeverEnds(f"the run takes more than {_CPU_SECONDS} s of CPU")
