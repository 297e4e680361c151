"""Lists to which transactions append, as those who write and read them know them.

Raises AssertionError as soon as they know what cannot all be true: a transaction of which a reader
sees a part, one that was aborted and is seen, an element that is seen twice, or before another of
its writer that was appended earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import takewhile
from typing import NamedTuple

from tests.simulation.ledger import MessagePlace

LISTS = 5
SOURCES = 2
"""Partitions with lists: each list is in one."""
COPIES = SOURCES
"""The partition that has a copy of each element."""


class Fate(Enum):
    """``ASKED``: to commit it; there was no answer, so either may be."""

    OPEN = "open"
    ASKED = "asked to commit"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Element(NamedTuple):
    """``number``: among the elements of all lists. ``key``: of its message."""

    list: int
    number: int
    key: bytes

    @property
    def value(self) -> bytes:
        return b"%d of list %d" % (self.number, self.list)

    @property
    def partition(self) -> int:
        return self.list % SOURCES


class Transaction:
    """Appends ``elements`` in their order; ``left``: those that are not acknowledged."""

    def __init__(self, elements: Sequence[Element], *, commits: bool) -> None:
        self.elements = elements
        self.left = list(elements)
        self.commits = commits
        self.fate = Fate.OPEN

    @property
    def next_batch(self) -> list[Element]:
        """The next elements of one partition."""
        number = self.left[0].partition
        return [*takewhile(lambda each: each.partition == number, self.left)]


class ListLedger:
    """``transactions`` of each writer. ``seen``: the place of each element that a reader of
    committed transactions got."""

    def __init__(self) -> None:
        self.transactions: dict[str, list[Transaction]] = {}
        self.seen: dict[bytes, MessagePlace] = {}
        self._of: dict[bytes, Transaction] = {}
        self._keys: dict[int, list[bytes]] = {}

    def begin(self, writer: str, lists: Iterable[int], *, commits: bool) -> Transaction:
        """The next transaction of a writer, with an element for each of these lists. One that is to
        be aborted has the keys of elements that stay: compaction must not take those away."""
        elements = []
        for number, list_ in enumerate(lists, len(self._of)):
            keys = self._keys.setdefault(list_, [b"%d" % number])
            if commits:
                keys.append(b"%d" % number)
            elements.append(Element(list_, number, keys[-1]))
        transaction = Transaction(elements, commits=commits)
        self.transactions.setdefault(writer, []).append(transaction)
        self._of.update((each.value, transaction) for each in elements)
        return transaction

    def see(self, place: MessagePlace, value: bytes) -> None:
        """A reader of committed transactions has this element."""
        assert place.partition == _partition_of(value), f"{value!r} is at {place}"
        fate = self._of[value].fate
        assert fate is not Fate.ABORTED, f"{value!r} was aborted and is at {place}"
        assert fate is not Fate.OPEN, f"{value!r} is of an open transaction, and at {place}"
        known = self.seen.setdefault(value, place)
        assert known == place, f"{value!r} is at {known} and at {place}"

    @property
    def committed(self) -> int:
        every = (each for of_one in self.transactions.values() for each in of_one)
        return sum(each.fate is Fate.COMMITTED for each in every)

    def check(self, found: dict[bytes, MessagePlace]) -> None:
        """``found``: all elements that a reader got who has read everything once more, when all
        writers have stopped. Each transaction is there as a whole, or not at all."""
        for writer, transactions in self.transactions.items():
            for each in transactions:
                self._check_whole(writer, each, found)
            self._check_order(writer, found)

    def _check_whole(
        self, writer: str, transaction: Transaction, found: dict[bytes, MessagePlace]
    ) -> None:
        missing = [each.value for each in transaction.elements if each.value not in found]
        if missing:
            is_gone = len(missing) == len(transaction.elements)
            fate = transaction.fate
            assert is_gone, f"half a transaction of {writer}, {fate.value}: without {missing}"
            assert fate is not Fate.COMMITTED, f"{missing} of {writer} are lost"

    def _check_order(self, writer: str, found: dict[bytes, MessagePlace]) -> None:
        """One writer's elements of a list are there in the order in which it appended them."""
        last: dict[int, tuple[int, bytes]] = {}
        for transaction in self.transactions[writer]:
            for each in transaction.elements:
                if each.value in found:
                    now = found[each.value].offset, each.value
                    before = last.get(each.list, (-1, b""))
                    assert before < now, f"{writer} appended {before[1]!r} before {each.value!r}"
                    last[each.list] = now

    def check_copies(
        self, found: dict[bytes, MessagePlace], copies: dict[bytes, MessagePlace]
    ) -> None:
        """Each element has one copy, those of a partition in their order; the last ones may not be
        copied."""
        for number in range(SOURCES):
            due = _in_order({v: place for v, place in found.items() if place.partition == number})
            made = [each for each in _in_order(copies) if _partition_of(each) == number]
            assert made == due[: len(made)], f"the copies of partition {number} are {made}: {due}"


def _partition_of(value: bytes) -> int:
    return int(value.rpartition(b" ")[2]) % SOURCES


def _in_order(places: dict[bytes, MessagePlace]) -> list[bytes]:
    return sorted(places, key=lambda value: places[value].offset)
