"""Faults at chosen moments, as files: the same ones run with real processes and in the simulation.

A file of ``scenarios/`` is JSON: ``about`` in a sentence, ``brokers``, ``partitions`` with three
replicas, ``producers`` of each partition, ``seconds`` of load, and ``moments``. A moment has
``at``, in seconds since the load began, the ``kind`` of a fault as in ``plan``, how many
``seconds`` it lasts, and what it hits: a ``target`` (a broker's number, ``controller``,
``leader``), a ``partition``, the new ``replicas`` of a move. Pure, but for the files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from integration.faults.plan import CUTS, Fault

DIRECTORY = Path(__file__).with_name("scenarios")


class Moment(NamedTuple):
    """``at``: seconds since the load began."""

    at: float
    fault: Fault


class Scenario(NamedTuple):
    """``producers``: of each partition. ``seconds``: how long the load goes on with faults."""

    name: str
    about: str
    brokers: int
    partitions: int
    producers: int
    seconds: float
    moments: tuple[Moment, ...]

    @property
    def needs_cuts(self) -> bool:
        """Whether connections must be cut, which not all hosts can do."""
        return any(each.fault.kind in CUTS for each in self.moments)


def load(path: Path) -> Scenario:
    """Raises OSError, and KeyError or ValueError for a file that is not a scenario."""
    found = json.loads(path.read_text("utf-8"))
    moments = tuple(map(_moment, found.pop("moments")))
    if [each.at for each in moments] != sorted(each.at for each in moments):
        raise ValueError(f"the moments of {path.name} are not in order")
    return Scenario(name=path.stem, moments=moments, **found)


def _moment(found: Mapping[str, Any]) -> Moment:
    fault = Fault(
        kind=found["kind"],
        target=str(found.get("target", "")),
        duration_s=found.get("seconds", 0.0),
        overlap=True,
        calm_s=0.0,
        partition=found.get("partition", 0),
        replicas=tuple(found.get("replicas", ())),
    )
    return Moment(found["at"], fault)


def all_scenarios() -> list[Scenario]:
    """Those of the files, by name."""
    return [load(path) for path in sorted(DIRECTORY.glob("*.json"))]
