"""Conditions that reach what chance alone seldom does: some runs draw one of them, and those with a
planted fault ask for one.

Imports nothing of the product, so that the fault can be planted after this.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

SYNCED = {"log.flush.interval.messages": "1"}
"""Settings with which brokers sync what they append before they answer."""
TRANSACTIONS = ("lists", "lists2", "relay", "relay2", "list-reader")
"""The clients of transactions."""
INDEXED = {"log.index.interval.bytes": "100"}
"""Small segments have entries in their indexes."""


class Aim(NamedTuple):
    """``faults``: the kinds that come, beside those that heal; () as the seed draws them. With
    ``settings`` for all brokers, these ``loads``, and a rest after so many. ``only``: no others but
    those of all runs, so that the run is short. ``rests_every`` None: as the seed draws it.
    ``amid``: the chance of a fault to hit those that are ending a transaction. ``compacts``:
    whether the topic of lists is compacted; None: as the seed draws it."""

    faults: tuple[str, ...] = ()
    settings: Mapping[str, str] = MappingProxyType({})
    loads: tuple[str, ...] = ()
    rests_every: int | None = None
    only: bool = False
    amid: float = 0
    compacts: bool | None = None


_TRANSACTING = Aim(loads=TRANSACTIONS, only=True)
AT_ENDS = _TRANSACTING._replace(faults=("kill", "crash", "reset"), amid=0.8)
"""A coordinator dies between the decision and the markers, or between two of them."""
LATE_MARKERS = _TRANSACTING._replace(faults=("late markers", "start"))
"""Markers of a former coordinator arrive when the next transaction is under way."""
LATE_BATCHES = _TRANSACTING._replace(faults=("late batches",), compacts=False)
"""A batch arrives when its transaction has ended."""
SPLIT_TRANSACTIONS = _TRANSACTING._replace(faults=("split",), rests_every=10, compacts=False)
"""Leaders take batches and markers that no follower has, and cut them later."""
AWAY = _TRANSACTING._replace(faults=("isolate",), rests_every=0, amid=0.5, compacts=True)
"""A replica that has a transaction open is away while its marker is compacted."""
COMPACTED_TAILS = _TRANSACTING._replace(faults=("split", "crash"), amid=0.6, compacts=True)
"""Ends of a compacted log are compared: those that a leader took alone, behind a marker that no
follower has, and those of a member of the isr that is back at once."""
SLOW_LOADS = _TRANSACTING._replace(faults=("slow reads", "kill", "elect"), rests_every=20, amid=0.5)
"""Transactions end while a coordinator of groups loads their offsets."""
CUTS = Aim(
    ("split", "power cut behind a cut"),
    {"log.flush.interval.ms": "15000", "log.flush.scheduler.interval.ms": "1000"},
    ("leader-acks",),
    only=True,
)
"""A log is cut, grows again, and its machine loses power before the cut is on disk."""
AIMS = (
    AT_ENDS,
    LATE_MARKERS,
    LATE_BATCHES,
    SPLIT_TRANSACTIONS,
    AWAY,
    COMPACTED_TAILS,
    SLOW_LOADS,
    CUTS,
)
"""Those that runs draw."""
