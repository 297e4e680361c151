"""The order of faults, drawn from a seed alone, so that a seed repeats a run. Pure.

Targets are broker ids, or roles that are resolved when the fault begins. The draws depend
on the seed, the number of brokers and partitions, and whether cables can be cut and disks filled.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

CONTROLLER, LEADER = "controller", "leader"
CUTS = {"cut-zookeeper": "zookeeper", "cut-peers": "peers", "cut-everything": "everything"}
SESSION_S = 3.0
_AIMED = ("kill", "pause", "pause-long", "restart", "full-disk")

_WEIGHTS = {
    "kill": 18,
    "pause": 12,
    "pause-long": 12,
    "restart": 10,
    "reassign": 14,
    "preferred": 6,
    "depose": 3,
    "zookeeper-restart": 4,
    "zookeeper-pause": 3,
    "zookeeper-away": 4,
    "zookeeper-freeze": 3,
    "rolling": 1,
    "kill-all": 1,
}
_CUT_WEIGHTS = {"cut-zookeeper": 8, "cut-peers": 8, "cut-everything": 8}
_DISK_WEIGHTS = {"full-disk": 10}


class Fault(NamedTuple):
    """``overlap``: begins while others last; else when they are over and ``calm_s`` has passed.

    ``target`` is a broker id as text, ``controller`` or ``leader`` (of ``partition``), and
    empty where the fault has none. ``replicas`` are those of a reassignment.
    """

    kind: str
    target: str
    duration_s: float
    overlap: bool
    calm_s: float
    partition: int
    replicas: tuple[int, ...]

    def __str__(self) -> str:
        words = [self.kind]
        if self.target:
            words.append(self.target + (f" of {self.partition}" if self.target == LEADER else ""))
        if self.replicas:
            words.append(f"{self.partition} to {self.replicas}")
        if self.duration_s:
            words.append(f"{self.duration_s} s")
        return " ".join(words)


def draw(seed: int, brokers: int, partitions: int, *, cuts: bool, disks: bool) -> Iterator[Fault]:
    """Faults without end."""
    rng = random.Random(seed)
    weights = {
        **_WEIGHTS,
        **(_CUT_WEIGHTS if cuts else {}),
        **(_DISK_WEIGHTS if disks else {}),
    }
    while True:
        # Every kind of fault takes the same number of draws of the same kinds.
        (kind,) = rng.choices(list(weights), list(weights.values()))
        (role,) = rng.choices(("broker", CONTROLLER, LEADER), (50, 20, 30))
        broker = rng.randint(1, brokers)
        long, part = rng.random() < 0.5, rng.random()
        overlap, calm = rng.random() < 0.4, rng.uniform(0, 2.5)
        partition = rng.randrange(partitions)
        replicas = tuple(rng.sample(range(1, brokers + 1), 3))
        aimed = kind in _AIMED or kind in CUTS
        target = str(broker) if role == "broker" else role
        yield Fault(
            kind,
            target if aimed else "",
            round(_duration(kind, long, part), 2),
            overlap,
            round(calm, 2),
            partition,
            replicas if kind == "reassign" else (),
        )


def _duration(kind: str, long: bool, part: float) -> float:
    """How long it lasts, on both sides of the session timeout where that matters."""
    low, high = {
        "kill": (1.5, 7.0) if long else (0.0, 1.5),
        "pause": (0.1, 2.0),
        "pause-long": (SESSION_S + 0.5, SESSION_S + 4.0),
        "restart": (0.0, 3.0),
        "zookeeper-restart": (0.1, 2.0),
        "zookeeper-pause": (0.2, 2.0),
        "zookeeper-away": (SESSION_S + 1.0, SESSION_S + 6.0),
        "zookeeper-freeze": (SESSION_S + 1.0, SESSION_S + 6.0),
        "full-disk": (2.0, 12.0),
        "kill-all": (0.0, 2.0),
        **dict.fromkeys(CUTS, (SESSION_S, SESSION_S + 5.0) if long else (0.3, SESSION_S)),
    }.get(kind, (0.0, 0.0))
    return low + part * (high - low)
