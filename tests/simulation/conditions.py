"""The conditions of a run, drawn from its seed: which faults come how often, when the cluster is
left in peace, and the settings of brokers.

In half of the runs all kinds of faults come. In the others only some do, or few, so that these come
more often, and what one kind would mend stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from tests.simulation.aims import AIMS, INDEXED, SYNCED, Aim
from tests.simulation.faults import FAULTS, KINDS

LONE = {"min.insync.replicas": "1"}
"""A leader that is alone in its isr acknowledges."""
IN_STEPS = {"message.max.bytes": "1500", "replica.fetch.max.bytes": "1512"}
"""Followers that are behind catch up in steps."""

_SYNCED, _LONE, _INDEXED, _IN_STEPS = 0.25, 0.25, 0.5, 0.25
_AIMED = 0.2
_MIXED, _KEPT = 0.5, (0.1, 0.4)
_HEALING = ("calm", "start")
_TIMES = 5
"""So often each kind is in a mix, as healing is a fraction of a few."""
_RESTS = (0, 10, 20)

ALL = tuple(name for name, fault in FAULTS.items() for _ in range(fault.weight))


class Conditions(NamedTuple):
    """``faults``: the names of the kinds, each as often as it is to come among the others.
    ``settings``: of all brokers. ``rests_every``: after so many faults they end, until all is as it
    was promised; 0: only after the last one. ``loads``: clients that are there in any case;
    ``only``: and no others but those of all runs. ``amid``: the chance of a fault to hit those that
    are ending a transaction. ``compacts``: as ``Aim``."""

    faults: tuple[str, ...] = ALL
    settings: Mapping[str, str] = MappingProxyType({})
    rests_every: int = 0
    loads: tuple[str, ...] = ()
    only: bool = False
    amid: float = 0
    compacts: bool | None = None


def draw(seed: int) -> Conditions:
    """Those of the seed; in some runs with an aim."""
    rng = Random(f"{seed}/few kinds")
    return aimed(seed, rng.choice(AIMS)) if rng.random() < _AIMED else _unaimed(seed)


def _unaimed(seed: int) -> Conditions:
    rng = Random(f"{seed}/conditions")
    settings = dict(synced(seed))
    for chance, drawn in ((_LONE, LONE), (_INDEXED, INDEXED), (_IN_STEPS, IN_STEPS)):
        if rng.random() < chance:
            settings |= drawn
    return Conditions(_mix(rng), settings, rng.choice(_RESTS))


def aimed(seed: int, aim: Aim) -> Conditions:
    """Those of the seed with what the aim asks for."""
    drawn = _unaimed(seed)
    rests = drawn.rests_every if aim.rests_every is None else aim.rests_every
    kinds = _only(aim.faults) if aim.faults else drawn.faults
    settings = {**drawn.settings, **aim.settings}
    return Conditions(kinds, settings, rests, aim.loads, aim.only, aim.amid, aim.compacts)


def synced(seed: int) -> Mapping[str, str]:
    """Settings about syncs."""
    return SYNCED if Random(f"{seed}/synced").random() < _SYNCED else {}


def _mix(rng: Random) -> tuple[str, ...]:
    if rng.random() >= _MIXED:
        return ALL
    chance = rng.choice(_KEPT)
    return _only({name for name in FAULTS if rng.random() < chance and FAULTS[name].weight})


def _only(kept: Collection[str]) -> tuple[str, ...]:
    """These, and as much healing among them as among all kinds, about."""
    chosen = {name: max(KINDS[name].weight, 1) for name in KINDS if name in kept}
    harm = [name for name in chosen if name not in _HEALING for _ in range(chosen[name] * _TIMES)]
    share = len(harm) / sum(name not in _HEALING for name in ALL)
    healing = [[name] * max(round(share * ALL.count(name)), 1) for name in _HEALING]
    return (*harm, *chain(*healing))
