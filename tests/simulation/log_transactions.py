"""The transactions of a log by its batches, found without the code that is tested."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafka08.message.batch import RECORDS_AT, header_of
from kafka08.message.entry import BATCH, magic_of
from kafka08.message.markers import ABORT, marker_of


class Aborted(NamedTuple):
    """``first`` and ``last``: the offsets of the first message and of the marker."""

    producer: int
    first: int
    last: int


class LogTransactions:
    """Of these ``entries``, in their order. ``open``: where transactions without a marker begin, by
    producer. ``dropped``: the offsets of the last messages of aborted batches."""

    def __init__(self, entries: Iterable[bytes]) -> None:
        self.open: dict[int, int] = {}
        self.aborted: list[Aborted] = []
        self.dropped: set[int] = set()
        self._batches: dict[int, list[int]] = {}
        for entry in entries:
            if magic_of(entry) == BATCH:
                self._take(entry)

    def _take(self, entry: bytes) -> None:
        header = header_of(entry)
        producer = header.producer_id
        if not header.is_transactional:
            return
        if not header.is_control:
            self.open.setdefault(producer, header.base_offset)
            self._batches.setdefault(producer, []).append(header.last_offset)
            return
        batches, first = self._batches.pop(producer, []), self.open.pop(producer, None)
        if first is not None and marker_of(entry[RECORDS_AT:])[0] == ABORT:
            self.aborted.append(Aborted(producer, first, header.last_offset))
            self.dropped.update(batches)
