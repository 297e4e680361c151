"""Transactions, as compaction has to know them: which batches are aborted, and which markers nobody
needs any more.

Messages of an aborted transaction go, and supersede none. A marker stays as long as batches of its
transaction do, as readers of committed transactions need it; after that for as long as a tombstone.
Only batches below the last stable offset are compacted, so that each transaction there has ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from kafka08.message.batch import Batch


class Aborted:
    """``found``: (producer id, first offset, offset of the marker) of aborted transactions."""

    def __init__(self, found: Iterable[Sequence[int]] = ()) -> None:
        self._of: dict[int, list[tuple[int, int]]] = {}
        for producer_id, first, last in sorted(found, key=lambda each: each[1]):
            self._of.setdefault(producer_id, []).append((first, last))

    def __contains__(self, header: Batch) -> bool:
        """Whether a batch was written in an aborted transaction."""
        if not header.is_transactional or header.is_control:
            return False
        found = self._of.get(header.producer_id)
        if found is None:
            return False
        slot = bisect_right(found, header.base_offset, key=lambda each: each[0]) - 1
        return slot >= 0 and header.base_offset < found[slot][1]


class Markers:
    """Which markers stay: those behind a batch of their transaction, even if it has no messages
    left, as it would begin a transaction that nothing ends; and those from the offset ``below`` on.
    ``alone``: (producer id, epoch)
    of producers of which the log knows nothing but a marker."""

    def __init__(self, below: int, alone: Iterable[Sequence[int]] = ()) -> None:
        self._below = below
        self._alone = {(producer_id, epoch) for producer_id, epoch in alone}
        self._begun: set[int] = set()

    def kept(self, header: Batch) -> None:
        """A batch of a transaction stays."""
        self._begun.add(header.producer_id)

    def stays(self, header: Batch) -> bool:
        """Whether a marker does. It is passed in the order of the log, as the batches are."""
        if header.producer_id in self._begun:
            self._begun.discard(header.producer_id)
            return True
        is_alone = (header.producer_id, header.producer_epoch) in self._alone
        return is_alone or header.base_offset >= self._below
