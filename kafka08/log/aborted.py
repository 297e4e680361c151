"""The aborted transactions of a log, in the index files of its segments."""

from __future__ import annotations

from collections.abc import Sequence

from kafka08.log.segments.file_slice import FileSlice
from kafka08.log.segments.segment_files import SegmentFiles
from kafka08.log.segments.transaction_index import AbortedTransaction


class AbortedTransactions:
    """``has_producers``: without any, the log has no such files, and none is looked for."""

    def __init__(self, files: SegmentFiles, *, has_producers: bool) -> None:
        self._files = files
        # Few logs have aborted transactions.
        self._has_any = has_producers and any(s.aborted.may_have_any for s in files.list)

    def note(self, found: Sequence[AbortedTransaction]) -> bool:
        """Add transactions that the next set in the active segment aborts; whether that made a
        file. Raises OSError."""
        self._has_any = True
        index = self._files.active.aborted
        had_file = index.exists
        index.append(found)
        return not had_file

    def take_back(self, end: int) -> None:
        """The set that was to come at the log's ``end`` could not be written. Raises OSError."""
        self._files.active.aborted.truncate_to(end)

    def in_slice(self, stored: FileSlice, first: int, end: int) -> list[AbortedTransaction]:
        """Those with messages in a slice of a log that ends at ``end``, from the offset ``first``
        on, and perhaps some that begin soon behind it. Raises OSError."""
        if not self._has_any:
            return []
        files = self._files
        number = files.index_of(stored.base_offset)
        until = files.list[number].index.offset_behind(stored.end)
        if until is None:
            until = (*files.bases[number + 1 : number + 2], end)[0]
        return self.between(first, until)

    def between(self, first: int, until: int) -> list[AbortedTransaction]:
        """Those with messages from the offset ``first`` to below ``until``, in the order of their
        markers. Raises OSError."""
        found: list[AbortedTransaction] = []
        for number in range(max(self._files.index_of(first), 0), len(self._files.list)):
            some, is_complete = self._files.list[number].aborted.between(first, until)
            found += some
            if is_complete:
                break
        return found

    def save(self) -> None:
        """Write what a full disk had no room for. Raises OSError."""
        if self._has_any:
            for segment in self._files.list:
                segment.aborted.save()
