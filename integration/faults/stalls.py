"""For how long nobody could write: the longest times between acknowledgements. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from integration.faults.history import Event

# A fault shows in acknowledgements a little before the note of it is written down, or after.
_SLACK_S = 0.5


class Stall(NamedTuple):
    """No acknowledgement for ``seconds`` from ``begin`` on; ``after`` names the last fault."""

    seconds: float = 0.0
    begin: float = 0.0
    after: str = "nothing"

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s (from {self.begin:.0f} s on, after {self.after})"


class Stalls(NamedTuple):
    """``topic``: no producer could write to any partition; ``partition``: to one of them."""

    topic: Stall
    partition: Stall

    def __str__(self) -> str:
        return f"no producer could write for {self.topic}; to one partition for {self.partition}"


def longest(events: Iterable[Event]) -> Stalls:
    """The longest ones from the first acknowledgement to the last."""
    faults: list[tuple[float, str]] = []
    last: dict[int | None, float] = {}  # None: any partition
    found: dict[bool, tuple[float, float]] = {True: (0.0, 0.0), False: (0.0, 0.0)}
    for event in events:
        now = float(event["t"])
        if event["e"] == "fault":
            faults.append((now, str(event["what"])))
        elif event["e"] == "ack":
            for key in (None, event["p"]):
                before = last.get(key, now)
                found[key is None] = max(found[key is None], (now - before, before))
                last[key] = now
    return Stalls(_stall(*found[True], faults), _stall(*found[False], faults))


def _stall(seconds: float, begin: float, faults: list[tuple[float, str]]) -> Stall:
    before = [what for at, what in faults if at <= begin + _SLACK_S]
    return Stall(seconds, begin, before[-1] if before else "nothing")
