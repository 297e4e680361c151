"""The kinds of brokers in a run: most of today, some as a user keeps them beside 0.8.2.2."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

TODAY = "today"
KINDS = {
    TODAY: {},
    "without ApiVersions": {"api.versions.enable": "false"},
    # To the others it is a broker of 0.8.2.2: it registers as one, and stores what one stores.
    "original": {
        "api.versions.enable": "false",
        "log.compressed.sets": "normalised",
        "log.message.format.version": "0.8.2",
    },
}
"""The settings of each kind."""
_MIXED = 0.2


def draw(seed: int, brokers: int) -> tuple[str, ...]:
    """The kind of each broker. While one of them is not of today, clients are of 0.8."""
    rng = Random(f"{seed}/kinds")
    if rng.random() >= _MIXED:
        return (TODAY,) * brokers
    return tuple(rng.choice(list(KINDS)) for _ in range(brokers))


def are_of_today(kinds: Sequence[str]) -> bool:
    return all(each == TODAY for each in kinds)
