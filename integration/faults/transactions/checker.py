"""The verdict on the transactions of a history. Pure: events in, violations out.

The events, beside ``e`` and ``t``; a record is the text of ``Record``, a place [topic, partition]:

- ``begun``: ``id`` of the producer, ``x`` its transaction, ``r`` its records in the order in which
  they are sent, as [topic, partition, the record that this one is made from, or null].
- ``asked``: to commit. ``committed``, ``aborted``: for sure. ``unknown``: the answer was lost.
- ``shown``: to a reader of committed transactions, ``who``, in the place ``at``; ``v`` has
  [offset, record] pairs, null for foreign bytes.
- ``whole``: the same of a reader that read everything, after all transactions had ended.

The rules:

- lost: a record of a committed transaction is in no place, or one that was taken as an input and
  has no output.
- doubled: a record is there twice, or has two outputs.
- halved: of a transaction of unknown outcome some records are there and some are not.
- uncommitted: a reader was shown a record of an aborted transaction, or one before its producer
  asked to commit it.
- reordered: records of a producer stand in a partition in another order than they were sent.
- changed: an offset was shown with one record and holds another one at the end, or none; or two
  readers of everything saw different things.
- foreign: a record that nobody sent to that place.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from integration.faults.history import Event
from integration.faults.transactions.records import Record, parse

KINDS = ("lost", "doubled", "halved", "uncommitted", "reordered", "changed", "foreign")
ENDS = ("committed", "aborted", "unknown")
SHOWN = 20

Place = tuple[str, int]
Log = dict[int, Record | None]


class TransactionVerdict(NamedTuple):
    """``landed``: those of ``unknown`` outcome that were committed. ``converted``: outputs.
    ``lines``: one for each violation, the first ones of a kind."""

    committed: int
    aborted: int
    unknown: int
    landed: int
    records: int
    converted: int
    counts: dict[str, int]
    lines: list[str]

    @property
    def sound(self) -> bool:
        return not self.counts

    @property
    def any(self) -> bool:
        """Whether there were any transactions."""
        return bool(self.committed or self.aborted or self.unknown)

    def __str__(self) -> str:
        counts = ", ".join(f"{kind} {self.counts.get(kind, 0)}" for kind in KINDS)
        return (
            f"transactions: committed {self.committed}, aborted {self.aborted}, unknown "
            f"{self.unknown} of which {self.landed} committed; {self.records} records, "
            f"{self.converted} of them made from others; {counts}"
        )


class _Transaction:
    def __init__(self, places: Mapping[Record, Place]) -> None:
        self.places = places
        self.asked = False
        self.end = "aborted"  # by its timeout, if nobody has asked to commit it


class _Checker:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.lines: list[str] = []
        self.transactions: dict[tuple[str, int], _Transaction] = {}
        self.sources: dict[Record, Record] = {}
        self.source_topics: set[str] = set()
        self.seen: defaultdict[Place, dict[int, tuple[Record | None, str]]] = defaultdict(dict)
        self.wholes: defaultdict[str, defaultdict[Place, Log]] = defaultdict(
            lambda: defaultdict(dict)
        )

    def found(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= SHOWN:
            self.lines.append(f"transactions, {kind}: {text}")

    # Events

    def take(self, event: Event) -> None:
        what = event["e"]
        if what == "begun":
            self._begun(event)
        elif what == "asked":
            each = self.transactions[event["id"], event["x"]]
            each.asked, each.end = True, "unknown"
        elif what in ENDS and "x" in event:
            self.transactions[event["id"], event["x"]].end = what
        elif what in ("shown", "whole"):
            self._shown(event)

    def _begun(self, event: Event) -> None:
        places = {}
        for number, (topic, partition, source) in enumerate(event["r"]):
            record = Record(event["id"], event["x"], number)
            places[record] = (topic, partition)
            if source is not None:
                self.sources[record] = parse(source)
        self.transactions[event["id"], event["x"]] = _Transaction(places)

    def _shown(self, event: Event) -> None:
        place = (event["at"][0], event["at"][1])
        origin = f"{event['who']} at {event['t']} s"
        for offset, text in event["v"]:
            record = None if text is None else parse(text)
            if event["e"] == "whole":
                self.wholes[event["who"]][place][offset] = record
            before = self.seen[place].setdefault(offset, (record, origin))
            if before[0] != record:
                self.found("changed", f"{place} offset {offset}: {before}, then {record}, {origin}")
            transaction = self._of(record)
            if record is None or transaction is None or transaction.places.get(record) != place:
                self.found("foreign", f"{record} at {place} offset {offset}, by {origin}")
            elif not transaction.asked:
                self.found("uncommitted", f"{record} at {place} offset {offset}, by {origin}")

    def _of(self, record: Record | None) -> _Transaction | None:
        return None if record is None else self.transactions.get(record[:2])

    # The end

    def judge(self) -> tuple[int, int, int]:
        """How many records are there, outputs, and transactions of unknown outcome that are
        committed."""
        first, *others = self.wholes or {"nobody": defaultdict[Place, Log](dict)}
        logs = self.wholes[first]
        for other in others:
            for place in {*logs, *self.wholes[other]}:
                if logs[place] != self.wholes[other][place]:
                    self.found("changed", f"{first} and {other} do not see the same in {place}")
        for place, seen in self.seen.items():
            for offset, (record, origin) in seen.items():
                if logs[place].get(offset) != record:
                    text = f"{record} ({origin}), at the end {logs[place].get(offset)}"
                    self.found("changed", f"{place} offset {offset}: {text}")
        copies = Counter(
            record for log in logs.values() for record in log.values() if record is not None
        )
        for record, count in copies.items():
            if count > 1:
                self.found("doubled", f"{record} is there {count} times")
        landed = sum(self._judge_end(*each, copies) for each in self.transactions.items())
        self._judge_order(logs)
        converted = self._judge_outputs(logs, copies)
        return sum(copies.values()), converted, landed

    def _judge_end(
        self, name: tuple[str, int], transaction: _Transaction, copies: Mapping[Record, int]
    ) -> bool:
        """Whether a transaction whose producer does not know it was committed."""
        there = [record for record in transaction.places if record in copies]
        missing = [record for record in transaction.places if record not in copies]
        if transaction.end == "committed":
            for record in missing:
                self.found("lost", f"{record} for {transaction.places[record]}")
        elif transaction.end == "aborted":
            for record in there:
                self.found("uncommitted", f"{record} of an aborted transaction")
        elif there and missing:
            self.found("halved", f"{name}: {len(there)} records, and {len(missing)} are missing")
        return transaction.end == "unknown" and bool(there)

    def _judge_order(self, logs: Mapping[Place, Log]) -> None:
        for place, log in logs.items():
            last: dict[str, Record] = {}
            for offset in sorted(log):
                record = log[offset]
                if record is None:
                    continue
                before = last.get(record.producer, record)
                if record < before:
                    self.found("reordered", f"{record} at {place} offset {offset} after {before}")
                last[record.producer] = record

    def _judge_outputs(self, logs: Mapping[Place, Log], copies: Mapping[Record, int]) -> int:
        outputs = Counter(self.sources[each] for each in copies if each in self.sources)
        for source, count in outputs.items():
            if source not in copies:
                self.found("uncommitted", f"{source} is not there, and has an output")
            if count > 1:
                self.found("doubled", f"{source} has {count} outputs")
        for (topic, _), log in logs.items():
            if topic in self.source_topics:
                for record in log.values():
                    if record is not None and record not in outputs:
                        self.found("lost", f"{record} of {topic} has no output")
        return sum(outputs.values())


def check(events: Iterable[Event], source_topics: Iterable[str] = ()) -> TransactionVerdict:
    """Judge a whole history. Each committed record of ``source_topics`` has an output."""
    checker = _Checker()
    checker.source_topics.update(source_topics)
    for event in events:
        checker.take(event)
    records, converted, landed = checker.judge()
    ends = Counter(each.end for each in checker.transactions.values())
    return TransactionVerdict(
        *(ends[kind] for kind in ENDS),
        landed,
        records,
        converted,
        dict(checker.counts),
        checker.lines,
    )
