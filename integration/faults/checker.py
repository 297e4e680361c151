"""The verdict on a history. Pure: events in, violations out.

The rules, for every partition:

- lost: an acknowledged record is not in the final read.
- changed: an offset once acknowledged or read holds something else at the end, or held
  something else for another reader; a final read with holes counts here too.
- reordered: a producer had one set acknowledged before it sent the next, so no copy of a record
  of the next stands before the acknowledged copies of the one.
- foreign: a record nobody sent, or more copies than tries that may have stored it.
- duplicated: copies beyond the first. Allowed; they come from tries of unknown outcome.

A try may have stored its records unless it was refused for sure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from integration.faults.history import Event, records_of
from integration.faults.values import Value

KINDS = ("lost", "changed", "reordered", "foreign")
SHOWN = 20


class Verdict(NamedTuple):
    """Counts, and a line for each violation (the first ones of a kind)."""

    acknowledged: int
    stored: int
    duplicated: int
    counts: dict[str, int]
    lines: list[str]

    @property
    def sound(self) -> bool:
        return not self.counts


class _Findings:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.lines: list[str] = []

    def add(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= SHOWN:
            self.lines.append(f"{kind}: {text}")


class _Partition:
    """The acknowledged and read values of one partition."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.acks: dict[Value, tuple[int, float]] = {}
        self.stored: dict[Value, float] = {}  # acknowledged, at an offset that is not known
        self.tries: Counter[Value] = Counter()
        self.before: dict[Value, Value] = {}  # the last record of the set before its own
        self.seen: dict[int, tuple[Value | None, str]] = {}
        self.final: dict[int, Value | None] = {}

    def see(self, event: Event, findings: _Findings) -> None:
        origin = f"{event['e']} at {event['t']} s"
        for offset, value in records_of(event):
            known = self.seen.setdefault(offset, (value, origin))
            if known[0] != value:
                findings.add(
                    "changed",
                    f"partition {self.number} offset {offset}: {known[0]} ({known[1]}), "
                    f"then {value} ({origin})",
                )

    def attempt(self, event: Event, change: int) -> None:
        for sequence in range(event["s"], event["s"] + event["n"]):
            value = Value(event["w"], sequence)
            self.tries[value] += change
            self.before[value] = value._replace(sequence=event["s"] - 1)

    def judge(self, findings: _Findings) -> int:
        """Compare with the final read; how many records are copies of others."""
        copies = self._copies(findings)
        for value, (offset, when) in self.acks.items():
            if self.final.get(offset) != value:
                where = copies.get(value, "nowhere")
                findings.add(
                    "lost" if value not in copies else "changed",
                    f"partition {self.number}: {value} acknowledged at {when} s as offset "
                    f"{offset}, there is {self.final.get(offset)}, {value} is {where}",
                )
        for value, when in self.stored.items():
            if value not in copies:
                findings.add("lost", f"partition {self.number}: {value} acknowledged at {when} s")
        for offset, (value, origin) in self.seen.items():
            judged = value is not None and self.acks.get(value, (-1,))[0] == offset
            if self.final.get(offset) != value and not judged:
                findings.add(
                    "changed",
                    f"partition {self.number} offset {offset}: {value} ({origin}), at the end "
                    f"{self.final.get(offset)}",
                )
        self._check_order(copies, findings)
        return sum(len(offsets) - 1 for offsets in copies.values())

    def _copies(self, findings: _Findings) -> dict[Value, list[int]]:
        copies: defaultdict[Value, list[int]] = defaultdict(list)
        for position, offset in enumerate(sorted(self.final)):
            if position != offset:
                findings.add("changed", f"partition {self.number}: no record at {position}")
                break
        for offset in sorted(self.final):
            value = self.final[offset]
            if value is not None:
                copies[value].append(offset)
            if value is None or len(copies[value]) > self.tries[value]:
                findings.add(
                    "foreign",
                    f"partition {self.number} offset {offset}: {value}, "
                    f"{0 if value is None else self.tries[value]} tries",
                )
        return copies

    def _check_order(self, copies: dict[Value, list[int]], findings: _Findings) -> None:
        for value, offsets in copies.items():
            before = self.acks.get(self.before.get(value, value))
            if before is not None and offsets[0] < before[0]:
                findings.add(
                    "reordered",
                    f"partition {self.number}: {value} at {offsets[0]}, the set before its own "
                    f"acknowledged up to {before[0]}",
                )


def check(events: Iterable[Event], *, final: bool = True) -> Verdict:
    """Judge a whole history; without ``final``, only what cannot be mended any more."""
    findings = _Findings()
    partitions: dict[int, _Partition] = {}
    for event in events:
        if "p" not in event:
            continue
        partition = partitions.setdefault(event["p"], _Partition(event["p"]))
        what = event["e"]
        if what == "send":
            partition.attempt(event, 1)
        elif what == "refused":
            partition.attempt(event, -1)
        elif what == "stored":
            partition.stored[Value(event["w"], event["s"])] = event["t"]
        elif what == "final":
            partition.final.update(records_of(event))
        elif what in ("ack", "read"):
            partition.see(event, findings)
            if what == "ack":
                for offset, value in records_of(event):
                    if value is not None:
                        partition.acks[value] = (offset, event["t"])
    duplicated = 0
    if final:
        duplicated = sum(partition.judge(findings) for partition in partitions.values())
    return Verdict(
        sum(len(partition.acks) + len(partition.stored) for partition in partitions.values()),
        sum(len(partition.final) for partition in partitions.values()),
        duplicated,
        dict(findings.counts),
        findings.lines,
    )
