"""The aborted transactions of a segment (kafka.log.TransactionIndex).

``<base>.txnindex`` is a file of 34-byte big-endian entries, one for each marker in the segment that
aborts a transaction which wrote something: int16 version 0, int64 producer id, first offset, last
offset (that of the marker) and last stable offset. Last offsets rise. A segment without such
markers does not have the file.

An entry is written before its marker, so that no reader can be given an aborted message because
there was no room for the entry. One without its marker, which a crash left, goes when the log is
loaded.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from struct import Struct
from typing import Final, NamedTuple

from kafka08.log.disk import is_shortage, write_all
from kafka08.log.segments.names import LOG_SUFFIX, TRANSACTION_INDEX_SUFFIX

logger = logging.getLogger("kafka.log.TransactionIndex")

_VERSION: Final = 0
_ENTRY: Final = Struct(">hqqqq")
ENTRY_SIZE: Final = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """A producer's batches of a transaction from ``first_offset`` on are aborted by the marker at
    ``last_offset``. Other transactions that were not complete then, or nothing at all, begin at
    ``last_stable_offset``."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The index file at ``path``, read when it is first used. ``exists``: there is a file."""

    __slots__ = ("_entries", "_saved", "exists", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.exists = os.path.exists(path)
        self._saved = 0  # as many entries are in the file
        self._entries: list[AbortedTransaction] | None = None if self.exists else []

    @classmethod
    def beside(cls, log_path: str) -> TransactionIndex:
        """Of the segment whose log is at ``log_path``."""
        return cls(log_path[: -len(LOG_SUFFIX)] + TRANSACTION_INDEX_SUFFIX)

    @property
    def entries(self) -> list[AbortedTransaction]:
        """Raises OSError, and ValueError for a file that is not such an index."""
        if self._entries is None:
            with open(self.path, "rb") as file:
                self._entries = _decoded(file.read())
            self._saved = len(self._entries)
        return self._entries

    @property
    def may_have_any(self) -> bool:
        """Without reading the file."""
        return self.exists or bool(self._entries)

    def append(self, found: Sequence[AbortedTransaction]) -> None:
        """Add entries. Raises OSError, and the index does not change."""
        known = self.entries
        before = len(known)
        known.extend(found)
        try:
            self.save()
        except OSError:
            del known[before:]
            raise

    def truncate_to(self, offset: int) -> None:
        """Drop every entry whose marker is at ``offset`` or beyond. Raises OSError."""
        self.replace_from(offset, ())

    def replace_from(self, offset: int, found: Sequence[AbortedTransaction]) -> None:
        """Replace the entries whose markers are at ``offset`` or beyond. Without room for them they
        are kept in memory, until ``save``. Raises OSError for other reasons.

        Entries that are right stay in the file untouched: after the next crash those that are below
        the recovery point are not made again.
        """
        known = self.entries
        kept = self._slot(offset)
        same = kept + _equal(known[kept:], found)
        if same < len(known):
            os.truncate(self.path, same * ENTRY_SIZE)
            self._saved = min(same, self._saved)
            del known[same:]
        known.extend(found[same - kept :])
        try:
            self.save()
        except OSError as error:
            if not is_shortage(error):
                raise
            logger.warning("No room for %s: its entries are kept in memory", self.path)

    def save(self) -> None:
        """Write the entries that are not in the file. Raises OSError."""
        known, position = self.entries, self._saved * ENTRY_SIZE
        if self._saved == len(known):
            return
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        self.exists = True
        try:
            write_all(fd, _encoded(known[self._saved :]), position)
        except OSError:
            os.ftruncate(fd, position)
            raise
        finally:
            os.close(fd)
        self._saved = len(known)

    def between(self, first: int, until: int) -> tuple[list[AbortedTransaction], bool]:
        """The transactions with messages from the offset ``first`` to below ``until``, and whether
        there are no more of them in later segments. Raises OSError."""
        found = []
        known = self.entries
        for number in range(self._slot(first), len(known)):
            entry = known[number]
            if entry.first_offset < until:
                found.append(entry)
            if entry.last_stable_offset >= until:
                return found, True
        return found, False

    def is_damaged(self, base_offset: int) -> bool:
        """Whether the file has entries of another version, with markers before the segment, or that
        do not rise; it is emptied then. A torn last entry is cut off. Raises OSError."""
        try:
            known = self.entries
            markers = [base_offset - 1, *(entry.last_offset for entry in known)]
            if all(one < next_ for one, next_ in pairwise(markers)):
                if self.exists:
                    os.truncate(self.path, self._saved * ENTRY_SIZE)
                return False
        except ValueError as error:
            logger.warning("%s is damaged: %s", self.path, error)
        os.truncate(self.path, 0)
        self._entries, self._saved = [], 0
        return True

    def _slot(self, offset: int) -> int:
        """The first entry whose marker is at ``offset`` or beyond."""
        return bisect_left(self.entries, offset, key=_last_offset)


def _equal(one: Sequence[AbortedTransaction], other: Sequence[AbortedTransaction]) -> int:
    """How many entries both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _last_offset(entry: AbortedTransaction) -> int:
    return entry.last_offset


def _encoded(entries: Sequence[AbortedTransaction]) -> bytes:
    return b"".join([_ENTRY.pack(_VERSION, *entry) for entry in entries])


def _decoded(data: bytes) -> list[AbortedTransaction]:
    """Of whole entries. Raises ValueError for another version."""
    found = []
    for version, *entry in _ENTRY.iter_unpack(data[: len(data) // ENTRY_SIZE * ENTRY_SIZE]):
        if version != _VERSION:
            raise ValueError(f"an entry has version {version}")
        found.append(AbortedTransaction(*entry))
    return found
