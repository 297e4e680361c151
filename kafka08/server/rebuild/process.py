"""Makes rebuilt entries (``files``), in a child process at the lowest priority.

The broker opens the files of each stretch and passes the descriptors: if a segment is cut, deleted
or replaced meanwhile, the files lose their names, and what this process still writes is lost with
them. A stretch counts from when its last index entry, which marks its end, is written; that is
after its bytes have been synced. Does not know names, logs or when there is something to do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kafka08.errors import KafkaError
from kafka08.log.child_process import print_event, received_job
from kafka08.log.disk import write_all
from kafka08.log.segments.index import ENTRY, ENTRY_SIZE, MAX_RELATIVE_OFFSET
from kafka08.message.compression import SMALLER
from kafka08.message.entry import Walked, is_later
from kafka08.message.scan import iter_entries, walk
from kafka08.message.wrappers import absolute_slice

PIECE_BYTES = 1 << 20
# If none of this many entries of a segment changes, none will: 0.8.2.2 or the cleaner wrote it.
JUDGED_BYTES = 4 << 20
MAX_FILE_BYTES = (1 << 31) - 1
_NICENESS = 19


class Stretch(NamedTuple):
    """Entries to rebuild: of the segment with this base the bytes from ``start`` to ``stop``.

    They are written to the end of the rebuilt ones, which have ``size`` bytes and ``entries``
    entries in their index.
    """

    stored_fd: int
    rebuilt_fd: int
    index_fd: int
    base_offset: int
    start: int
    stop: int
    size: int
    entries: int
    index_interval_bytes: int


class RebuildOutcome(NamedTuple):
    """``stored_until``: where the first stored entry is that was not rebuilt; less than wanted if
    that one is damaged or of a later format, or if there is no more room. ``differs``: rebuilt
    entries are needed at all."""

    stored_until: int
    differs: bool


def rebuild(stretch: Stretch) -> RebuildOutcome:
    """Rebuild the entries of a stretch. Nothing is left if none of the first ones changes.

    Ends before the first entry of format 1 or 2: those are converted when they are fetched.
    Raises OSError, and KafkaError if a wrapper cannot be rebuilt.
    """
    position, size = stretch.start, stretch.size
    index = _Index(stretch)
    differs = size > 0
    want = PIECE_BYTES
    os.ftruncate(stretch.rebuilt_fd, size)
    os.ftruncate(stretch.index_fd, stretch.entries * ENTRY_SIZE)
    while position < stretch.stop:
        data = os.pread(stretch.stored_fd, min(want, stretch.stop - position), position)
        walked = walk(data, 0, len(data), wrappers=True)
        if not walked.count:
            if len(data) < min(want, stretch.stop - position) or position + len(data) >= (
                stretch.stop
            ):
                break
            want *= 2
            continue
        want = PIECE_BYTES
        if walked.magic:
            walked = _walked_to_later(data, walked.stop)
            if not walked.count:
                break
        stored = data[: walked.stop]
        made = absolute_slice(stored, max_bytes=MAX_FILE_BYTES, level=SMALLER)
        differs = differs or made is not stored
        if size + len(made) > MAX_FILE_BYTES or not index.fits(walked.last):
            break
        write_all(stretch.rebuilt_fd, made, size)
        index.add(made, size)
        position += walked.stop
        size += len(made)
        if not differs and size >= JUDGED_BYTES:
            break
    if not differs:
        os.ftruncate(stretch.rebuilt_fd, 0)
        return RebuildOutcome(stretch.start, False)
    if position > stretch.start:
        os.fdatasync(stretch.rebuilt_fd)
        write_all(stretch.index_fd, index.ended(size), stretch.entries * ENTRY_SIZE)
        os.fdatasync(stretch.index_fd)
    return RebuildOutcome(position, differs)


def _walked_to_later(data: bytes, stop: int) -> Walked:
    """The walk over the whole entries before ``stop`` that precede the first of format 1 or 2."""
    entries = iter_entries(data[:stop])
    later = next((each.position for each in entries if is_later(data, each.position)), stop)
    return walk(data, 0, later, wrappers=True)


class _Index:
    """Index entries for what is appended to the rebuilt ones."""

    def __init__(self, stretch: Stretch) -> None:
        self._base = stretch.base_offset
        self._interval = stretch.index_interval_bytes
        self._entries = bytearray()
        self._indexed = stretch.size
        self._last = -1

    def fits(self, last: int) -> bool:
        return last + 1 - self._base <= MAX_RELATIVE_OFFSET

    def add(self, data: bytes, place: int) -> None:
        """Index the entries ``data``, which lie at ``place`` of the file."""
        position = 0
        while True:
            due = max(self._indexed + self._interval + 1 - place, position)
            walked = walk(data, position, len(data), until=due, wrappers=True)
            self._last = walked.last if walked.count else self._last
            position = walked.stop
            if position >= len(data):
                return
            self._append(place + position)
            self._indexed = place + position

    def ended(self, size: int) -> bytearray:
        """All entries; the last one is the end of the file."""
        self._append(size)
        return self._entries

    def _append(self, position: int) -> None:
        """Index one above the previous entry's offset: valid for plain entries and wrappers."""
        self._entries += ENTRY.pack(self._last + 1 - self._base, position)


# The child process


def encode_job(stretches: Sequence[Stretch]) -> bytes:
    """One line of JSON; ``main`` reads it."""
    return json.dumps(stretches).encode() + b"\n"


def events(stretches: Sequence[Stretch], emit: Callable[[dict[str, object]], None]) -> None:
    """Rebuild stretches in turn and emit an event for each: {"done": RebuildOutcome} or
    {"error": text}, with "errno" if a file could not be read or written."""
    for stretch in stretches:
        try:
            outcome = rebuild(stretch)
        except (KafkaError, OSError) as error:
            errno = error.errno if isinstance(error, OSError) else None
            emit({"error": str(error) or type(error).__name__, "errno": errno})
        else:
            emit({"done": outcome})


def parse_event(line: bytes) -> RebuildOutcome | OSError | KafkaError:
    """The outcome of a stretch, or the error, from a line that ``main`` printed."""
    event = json.loads(line)
    if "done" in event:
        return RebuildOutcome(*event["done"])
    if event["errno"] is not None:
        return OSError(event["errno"], event["error"])
    return KafkaError(event["error"])


def main() -> None:
    """Rebuild the stretches read from standard input, and print events as lines of JSON."""
    stretches = [Stretch(*each) for each in json.loads(received_job(_NICENESS))]
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    events(stretches, print_event)


if __name__ == "__main__":
    main()
