"""A run as data: its faults and their times, drawn ahead from the seed.

Each fault has a time and a seed of its own. Without one of them the others stay as they are, so a
run that fails can be made shorter.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import NamedTuple

FAULTS = 60
"""Of a run, unless told otherwise."""
MOST_BROKERS = 5
_PAUSES = (0.05, 0.5, 5.0, 15.0)


class PlannedFault(NamedTuple):
    """``number``: from 1. ``at``: seconds since the load began. ``seed`` decides what it is, and
    all that is chosen at the moment in which it begins."""

    number: int
    at: float
    seed: str


class Plan(NamedTuple):
    """Of one run. ``drawn``: how many faults there are, with those that were left out. They end
    ``seconds`` after the load began, when the next would come. ``without``: the names of clients
    that do not take part."""

    seed: int
    brokers: int
    drawn: int
    faults: tuple[PlannedFault, ...]
    seconds: float
    without: frozenset[str] = frozenset()

    def until(self, count: int) -> Plan:
        """With its first faults alone, for the time until the next one."""
        if count >= len(self.faults):
            return self
        seconds = self.faults[count].at
        return self._replace(drawn=count, faults=self.faults[:count], seconds=seconds)

    def keeping(self, numbers: Collection[int]) -> Plan:
        """With the faults of these numbers alone."""
        return self._replace(faults=tuple(each for each in self.faults if each.number in numbers))


def draw(seed: int, *, faults: int = FAULTS, brokers: int | None = None) -> Plan:
    """The plan of a seed. More faults come after those of a plan with fewer."""
    rng = Random(f"{seed}/plan")
    own = rng.randint(1, MOST_BROKERS)
    planned, now = [], 0.0
    for number in range(1, faults + 2):
        now += rng.choice(_PAUSES) * rng.random()
        planned.append(PlannedFault(number, now, f"{seed}/{number}"))
    return Plan(seed, brokers or own, faults, tuple(planned[:-1]), now)
