"""The conditions that runs with a planted fault ask for.

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
    those of all runs, so that the run is short. ``rests_every`` None: as the seed draws it."""

    faults: tuple[str, ...] = ()
    settings: Mapping[str, str] = MappingProxyType({})
    loads: tuple[str, ...] = ()
    rests_every: int | None = None
    only: bool = False
