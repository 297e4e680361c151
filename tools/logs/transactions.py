"""How the transactions in a log ended, read from its markers before anything is rewritten.

A marker follows the messages of its transaction. So a conversion that goes through the segments in
their order may be interrupted: what it has not reached still has its markers behind it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from kafka08.errors import KafkaError
from kafka08.log.cleaning.transactions import Aborted
from kafka08.message.batch import RECORDS_AT, Batch, header_of
from kafka08.message.entry import BATCH, has_right_crc
from kafka08.message.markers import ABORT, COMMIT, marker_of
from tools.logs.conversion import NotWalkableError, mapped, walk

DROP, KEEP = OPEN_AS = ("drop", "keep")
_NEVER = 1 << 63


class UnknownOutcomeError(KafkaError):
    """It is not known whether messages were committed."""


class Transactions(NamedTuple):
    """``aborted``: (producer id, first offset, offset of the marker). ``open``: the first offsets
    of transactions without a marker, by producer."""

    aborted: list[tuple[int, int, int]]
    open: dict[int, int]

    def note(self, batch: Batch, kind: int) -> None:
        """The next batch of a transaction, or a marker of the ``kind`` ABORT or COMMIT."""
        if not batch.is_control:
            self.open.setdefault(batch.producer_id, batch.base_offset)
        elif kind in (ABORT, COMMIT):
            first = self.open.pop(batch.producer_id, None)
            if first is not None and kind == ABORT:
                self.aborted.append((batch.producer_id, first, batch.base_offset))

    def left_out(self, open_as: str | None) -> Aborted:
        """The batches that nobody is to see. ``open_as``: DROP or KEEP those of open transactions.
        Raises UnknownOutcomeError if there are some and it is None."""
        if open_as is None and self.open:
            producer, first = min(self.open.items(), key=lambda item: item[1])
            raise UnknownOutcomeError(
                f"a transaction that began at offset {first} is open (producer {producer}; "
                f"{len(self.open)} in all). Let a broker end it, or say with --open-transactions "
                "what becomes of its messages"
            )
        unended = self.open if open_as == DROP else {}
        return Aborted([*self.aborted, *((*item, _NEVER) for item in unended.items())])


def transactions(log_paths: Iterable[str]) -> Transactions:
    """Those of a log, by its segments from the oldest on. Raises OSError, and UnknownOutcomeError
    if something is damaged that may be a marker."""
    found = Transactions([], {})
    begun = False
    for path in log_paths:
        damaged = f"{os.path.basename(path)} is damaged where transactions end, at"
        with mapped(path) as view:
            try:
                for entry in walk(view):
                    if entry.magic != BATCH:
                        continue
                    batch = header_of(view, entry.position)
                    begun = begun or batch.is_transactional
                    if not begun:
                        continue
                    if not has_right_crc(view, entry.position, entry.stop):
                        raise UnknownOutcomeError(f"{damaged} position {entry.position}")
                    if batch.is_transactional:
                        at = slice(entry.position + RECORDS_AT, entry.stop)
                        found.note(batch, marker_of(view[at])[0])
            except NotWalkableError as error:
                if begun:
                    raise UnknownOutcomeError(f"{damaged} {error}") from error
    return found
