"""Figures over time for graphs: a ring for each series, in memory, and in SQLite if asked for."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import NamedTuple

from kafka08.console.timeline.history_file import HistoryFile

STEP_MS = 30_000
POINTS = 2880
"""A day at one point in 30 s."""
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS points (series TEXT, time_ms INTEGER, value REAL)",
    "CREATE INDEX IF NOT EXISTS by_time ON points (time_ms)",
)


class Point(NamedTuple):
    time_ms: int
    value: float


class _Ring:
    def __init__(self) -> None:
        self.times = array("q")
        self.values = array("d")

    def add(self, time_ms: int, value: float) -> None:
        self.times.append(time_ms)
        self.values.append(value)
        if len(self.times) > POINTS:
            del self.times[0], self.values[0]


class History:
    """``path``: an SQLite file, "" for none. A file that cannot be used is logged, and the
    graphs then begin with the console. Series without a new point for a day are forgotten."""

    def __init__(self, path: str = "", now_ms: int = 0) -> None:
        self._rings: dict[str, _Ring] = {}
        self._noted_ms = 0
        self._file = HistoryFile(path, _SCHEMA)
        rows = self._file.rows(
            "SELECT series, time_ms, value FROM points WHERE time_ms >= ? ORDER BY time_ms",
            now_ms - STEP_MS * POINTS,
        )
        for series, time_ms, value in rows:
            if isinstance(time_ms, int) and isinstance(value, float):
                self._rings.setdefault(str(series), _Ring()).add(time_ms, value)
                self._noted_ms = time_ms

    def note(self, time_ms: int, figures: Mapping[str, float]) -> None:
        """Take over the figures of a moment, unless the last ones are younger than 30 s."""
        if 0 <= time_ms - self._noted_ms < STEP_MS:
            return
        self._noted_ms = time_ms
        for series, value in figures.items():
            self._rings.setdefault(series, _Ring()).add(time_ms, value)
        oldest = time_ms - STEP_MS * POINTS
        for series in [name for name, ring in self._rings.items() if ring.times[-1] < oldest]:
            del self._rings[series]
        self._file.write(
            (
                "INSERT INTO points VALUES (?, ?, ?)",
                [(series, time_ms, value) for series, value in figures.items()],
            ),
            ("DELETE FROM points WHERE time_ms < ?", [(oldest,)]),
        )

    def points(self, series: str) -> list[Point]:
        """Oldest first."""
        ring = self._rings.get(series)
        if ring is None:
            return []
        return [Point(*each) for each in zip(ring.times, ring.values, strict=True)]

    def close(self) -> None:
        self._file.close()
