"""Offsets committed in transactions that are open: they count once a marker says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from typing import NamedTuple, TypeVar

from kafka08.common import TopicPartition
from kafka08.groups.records import Committed, GroupPartition

T = TypeVar("T")


class Stored(NamedTuple):
    """A commit, and the offset of its record in the log."""

    committed: Committed
    log_offset: int


class EndedTransaction(NamedTuple):
    """As its marker in a partition of the offsets topic says."""

    producer_id: int
    is_committed: bool
    marker_offset: int


class PendingOffsets:
    """By the number of the offsets partition, and the producer whose transaction it is."""

    def __init__(self) -> None:
        self._of: dict[int, dict[int, dict[GroupPartition, Stored]]] = {}
        self._counts: Counter[GroupPartition] = Counter()  # of transactions
        self._groups: Counter[str] = Counter()  # of the same

    def __contains__(self, key: GroupPartition) -> bool:
        """Whether a transaction is to commit an offset for it."""
        return key in self._counts

    def of_group(self, group: str) -> bool:
        """Whether a transaction is to commit offsets of the group."""
        return group in self._groups

    def add(self, number: int, producer_id: int, key: GroupPartition, stored: Stored) -> None:
        """A later record of a transaction replaces an earlier one."""
        found = self._of.setdefault(number, {}).setdefault(producer_id, {})
        known = found.get(key)
        if known is None:
            self._counts[key] += 1
            self._groups[key.group] += 1
        if known is None or known.log_offset < stored.log_offset:
            found[key] = stored

    def take(self, number: int, producer_id: int, end: int) -> dict[GroupPartition, Stored]:
        """The offsets of a transaction that has ended; ``end``: the offset of its marker. Those
        behind it are of the producer's next one."""
        producers = self._of.get(number, {})
        found = producers.get(producer_id, {})
        taken = {key: stored for key, stored in found.items() if stored.log_offset < end}
        for key in taken:
            del found[key]
            self._forget(key)
        if not found:
            producers.pop(producer_id, None)
        return taken

    def forget(self, number: int) -> None:
        """Forget all of a partition."""
        for found in self._of.pop(number, {}).values():
            for key in found:
                self._forget(key)

    def drop(self, partitions: Set[TopicPartition]) -> None:
        """Forget the offsets of partitions that were deleted."""
        for producers in self._of.values():
            for found in producers.values():
                for key in [each for each in found if TopicPartition(*each[1:]) in partitions]:
                    del found[key]
                    self._forget(key)

    def _forget(self, key: GroupPartition) -> None:
        _decrease(self._counts, key)
        _decrease(self._groups, key.group)


def _decrease(counts: dict[T, int], key: T) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
