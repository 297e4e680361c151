"""The audit file, read from its end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from kafka08.console.decoders import Decoded, shown

PAGE = 100
MOST_BYTES = 4 << 20
"""Read for one page."""
_CHUNK = 64 << 10
_TEXTS = ("time", "user", "from", "action", "target")


class AuditEntry(NamedTuple):
    """One change. ``address``: of the user. ``before`` and ``after`` as JSON has them. ``cluster``:
    its name, "" of a console that shows one cluster."""

    time: str
    user: str
    address: str
    action: str
    target: str
    before: object
    after: object
    cluster: str = ""

    @property
    def fields(self) -> dict[str, object]:
        """As the line of the file has them."""
        named = {"cluster": self.cluster} if self.cluster else {}
        return named | dict(zip((*_TEXTS, "before", "after"), self[:-1], strict=True))

    @property
    def shown(self) -> list[Decoded | None]:
        changed = (self.before, self.after)
        return [None if e is None else shown(json.dumps(e).encode()) for e in changed]


class Piece(NamedTuple):
    """Entries, the newest first. Older ones, if there are any, begin before the offset ``next``
    of the file, which is 0 at its beginning. ``is_full``: there may be more that fit the page's
    filter. ``bytes_read``: of the file. ``unreadable``: lines that are not entries."""

    entries: list[AuditEntry]
    next: int
    is_full: bool
    bytes_read: int
    unreadable: int


def read_back(path: str, end: int | None, words: list[str], cluster: str = "") -> Piece:
    """Up to PAGE entries that begin before an offset, None for the end of the file, and have all
    the words, which are in lower case, and the name of the cluster, if one is given. Raises
    OSError."""
    found: list[AuditEntry] = []
    unreadable = 0
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        top = reached = size if end is None else min(end, size)
        for offset, line in _lines_back(file, top):
            reached = offset
            entry = _entry(line) if line else None
            unreadable += bool(line) and entry is None
            if entry is not None and _fits(entry, words, cluster):
                found.append(entry)
            if len(found) == PAGE:
                break
    return Piece(found, reached, len(found) == PAGE, top - reached, unreadable)


def _lines_back(file: BinaryIO, end: int) -> Iterator[tuple[int, bytes | None]]:
    """The lines that begin before an offset, the last first, with their own offsets; None for an
    empty one. Ends after MOST_BYTES: if a line is longer than that, with None and an offset in
    it."""
    rest, position, last = b"", end, end
    while position > 0:
        if end - position >= MOST_BYTES:
            if last == end:
                yield position, None
            return
        size = min(_CHUNK, position)
        position -= size
        file.seek(position)
        rest, *lines = (file.read(size) + rest).split(b"\n")
        after = position + len(rest) + sum(len(line) + 1 for line in lines)
        for line in reversed(lines):
            last = after - len(line)
            yield last, line or None
            after = last - 1
    yield 0, rest or None


def _entry(line: bytes) -> AuditEntry | None:
    """None if it is not one: somebody else may have written into the file."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    time, user, address, action, target, cluster = (
        str(found.get(key, "")) for key in (*_TEXTS, "cluster")
    )
    before, after = found.get("before"), found.get("after")
    return AuditEntry(time, user, address, action, target, before, after, cluster)


def _fits(entry: AuditEntry, words: list[str], cluster: str) -> bool:
    if cluster and entry.cluster != cluster:
        return False
    texts = [each.lower() for each in (entry.user, entry.action, entry.target)]
    return all(any(word in text for text in texts) for word in words)
