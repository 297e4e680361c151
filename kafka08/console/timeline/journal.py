"""The events of a cluster: the last ones of each kind, in memory, and in SQLite if asked for."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence

from kafka08.console.timeline.happenings import KINDS, Happening
from kafka08.console.timeline.history_file import HistoryFile

MOST = 1000
"""Of each kind, so that a group whose judgement changes all the time drives out nothing else."""
SEEN_EVERY_MS = 30_000
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS events (time_ms INTEGER, since_ms INTEGER, kind TEXT, text TEXT, "
    "names TEXT, more INTEGER)",
    "CREATE INDEX IF NOT EXISTS by_kind ON events (kind)",
    "CREATE TABLE IF NOT EXISTS seen (subject TEXT PRIMARY KEY, time_ms INTEGER)",
)
_FORGET = (
    "DELETE FROM events WHERE kind = ? AND rowid NOT IN "
    "(SELECT rowid FROM events WHERE kind = ? ORDER BY rowid DESC LIMIT ?)"
)


class Journal:
    """``path``: an SQLite file, "" for none. It also keeps when something was last seen: what was
    not seen while no console ran is known after a restart."""

    def __init__(self, path: str = "") -> None:
        self._rings: dict[str, deque[Happening]] = {kind: deque(maxlen=MOST) for kind in KINDS}
        self._file = HistoryFile(path, _SCHEMA)
        columns = "time_ms, since_ms, kind, text, names, more"
        for row in self._file.rows(f"SELECT {columns} FROM events ORDER BY rowid"):
            found = _happening(row)
            if found is not None:
                self._rings[found.kind].append(found)
        self._seen: dict[str, int] = {}
        for subject, time_ms in self._file.rows("SELECT subject, time_ms FROM seen"):
            if isinstance(time_ms, int):
                self._seen[str(subject)] = time_ms
        self._stored_ms = dict(self._seen)

    def add(self, events: Iterable[Happening]) -> None:
        new = list(events)
        for each in new:
            self._rings[each.kind].append(each)
        if new:
            self._file.write(
                ("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", [_row(each) for each in new]),
                (_FORGET, [(kind, kind, MOST) for kind in sorted({each.kind for each in new})]),
            )

    def events(self) -> list[Happening]:
        """The newest first."""
        every = [each for ring in self._rings.values() for each in reversed(ring)]
        return sorted(every, key=lambda each: -each.time_ms)

    def seen(self, subject: str) -> int | None:
        """When it was last seen, ms since the epoch; None: never."""
        return self._seen.get(subject)

    def note_seen(self, subject: str, time_ms: int) -> None:
        """The file has it at most 30 s late."""
        self._seen[subject] = time_ms
        if not 0 <= time_ms - self._stored_ms.get(subject, -SEEN_EVERY_MS) < SEEN_EVERY_MS:
            self._store([subject])

    def _store(self, subjects: Sequence[str]) -> None:
        rows = [(subject, self._seen[subject]) for subject in subjects]
        self._file.write(("INSERT OR REPLACE INTO seen VALUES (?, ?)", rows))
        self._stored_ms.update(rows)

    def close(self) -> None:
        self._store(list(self._seen))
        self._file.close()


def _row(event: Happening) -> tuple[str | int, ...]:
    return (*event[:4], json.dumps(event.names), event.more)


def _happening(row: Sequence[object]) -> Happening | None:
    """None if it is not an event: somebody else may have written into the file."""
    time_ms, since_ms, kind, text, names, more = row
    if not (isinstance(time_ms, int) and isinstance(since_ms, int) and isinstance(more, int)):
        return None
    if not isinstance(kind, str) or kind not in KINDS:
        return None
    try:
        found = json.loads(str(names))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return None
    return Happening(time_ms, since_ms, kind, str(text), tuple(found), more)
