"""Transactions as those who write and read them know them.

Raises AssertionError as soon as they know what cannot all be true: a transaction of which a reader
sees a part, one that was aborted and is seen, one that is seen twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Fate(Enum):
    """``ASKED``: to commit it; there was no answer, so either may be."""

    OPEN = "open"
    ASKED = "asked to commit"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Transfer:
    """A transaction with a message in each of ``partitions``; ``left``: those without it."""

    def __init__(self, number: int, partitions: Iterable[int], *, commits: bool) -> None:
        self.value = b"%d" % number
        self.partitions = frozenset(partitions)
        self.left = set(self.partitions)
        self.commits = commits
        self.is_added = False
        self.fate = Fate.OPEN


class TransferLedger:
    """``seen``: by transaction, the offset in each partition."""

    def __init__(self) -> None:
        self.transfers: dict[bytes, Transfer] = {}
        self.seen: dict[bytes, dict[int, int]] = {}

    def begin(self, partitions: Iterable[int], *, commits: bool) -> Transfer:
        transfer = Transfer(len(self.transfers), partitions, commits=commits)
        self.transfers[transfer.value] = transfer
        return transfer

    def see(self, partition: int, offset: int, value: bytes) -> None:
        """A reader of committed transactions has this message."""
        transfer = self.transfers[value]
        assert transfer.fate is not Fate.ABORTED, f"{value!r} was aborted and is at {offset}"
        assert transfer.fate is not Fate.OPEN, f"{value!r} is open, and at {offset}"
        places = self.seen.setdefault(value, {})
        other = places.setdefault(partition, offset)
        assert other == offset, f"{value!r} is at {other} and at {offset} of {partition}"

    @property
    def committed(self) -> int:
        return sum(each.fate is Fate.COMMITTED for each in self.transfers.values())

    def check(self) -> None:
        """When all has been read: each transaction is there as a whole, or not at all."""
        for value, transfer in self.transfers.items():
            places = self.seen.get(value, {}).keys()
            assert not places or places == transfer.partitions, (
                f"{value!r} is in {sorted(places)}, it was for {sorted(transfer.partitions)}"
            )
            assert places or transfer.fate is not Fate.COMMITTED, f"{value!r} is lost"
