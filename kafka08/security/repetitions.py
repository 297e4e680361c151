"""Bounds the lines of a log about events that others can cause as often as they like.

An event is written at once. Its repetitions within the following minute are counted, and written as
one line. Events that find no room in the table are counted together. Names that go into such lines
are a peer's own: ``shown`` escapes and cuts them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kafka08.runtime import Clock

WINDOW_SECONDS = 60.0
MAX_EVENTS = 1000
_MAX_NAME = 250  # characters, so that a line has less than 1 KiB

E = TypeVar("E")


class _Window:
    """Counts what happens until the next line may be written (monotonic seconds)."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.count = 0
        self.detail = ""


class Repetitions(Generic[E]):
    """``write`` gets an event, the detail that was noted last, and how often the event happened.
    ``write_left_out`` gets the number of events without room. ``flush`` is to be called every few
    seconds."""

    def __init__(
        self,
        clock: Clock,
        write: Callable[[E, str, int], None],
        write_left_out: Callable[[int], None],
    ) -> None:
        self._clock = clock
        self._write = write
        self._write_left_out = write_left_out
        self._windows: dict[E, _Window] = {}
        self._left_out = 0

    def __len__(self) -> int:
        return len(self._windows)

    def note(self, event: E, detail: str = "") -> None:
        window = self._windows.get(event)
        if window is not None:
            window.count += 1
            window.detail = detail
        elif len(self._windows) < MAX_EVENTS:
            self._open(event, detail, 1)
        else:
            self._left_out += 1

    def flush(self) -> None:
        """Write what was counted in windows that are over."""
        if self._windows:
            now = self._clock.monotonic()
            for event, window in list(self._windows.items()):
                if window.until > now:
                    continue
                if window.count:
                    self._open(event, window.detail, window.count)
                else:
                    del self._windows[event]
        if self._left_out:
            self._write_left_out(self._left_out)
            self._left_out = 0

    def _open(self, event: E, detail: str, count: int) -> None:
        self._windows[event] = _Window(self._clock.monotonic() + WINDOW_SECONDS)
        self._write(event, detail, count)


def shown(name: str) -> str:
    """``name`` on one line, without control characters, cut."""
    text = name[: _MAX_NAME + 1]
    if not text.isprintable():
        text = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
    return text if len(text) <= _MAX_NAME else f"{text[:_MAX_NAME]}..."
