"""Shows how far long work is: a bar on a terminal, elsewhere a line a minute.

Does not know the work. tqdm is imported for a bar only: the executors of Spark may not have it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")

INTERVAL_MS = 60_000
_SCALE = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


class EveryMinute:
    """``is_due()`` is true once for each full minute since the start or since it was last true.

    ``millis``: a clock. Safe on any thread.
    """

    def __init__(self, millis: Callable[[], int]) -> None:
        self._millis = millis
        self._since = millis()
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        with self._lock:
            now = self._millis()
            if now - self._since < INTERVAL_MS:
                return False
            self._since = now
            return True


def share(done: int, total: int, unit: str = "B") -> str:
    """``1.2 GB of 40.0 GB (3 %)``. Bytes are scaled by powers of 1000, other units are not."""
    first = _amount(done, unit) if unit == "B" else done
    percent = f" ({100 * done // total} %)" if total else ""
    return f"{first} of {_amount(total, unit)}{percent}"


def _amount(count: int, unit: str) -> str:
    if unit == "B":
        for size, name in _SCALE:
            if count >= size:
                return f"{count / size:.1f} {name}"
    return f"{count} {unit}"


def monotonic_ms() -> int:
    """A clock that is never set."""
    return time.monotonic_ns() // 1_000_000


class Progress:
    """The progress of one piece of work on stderr, for one thread.

    A bar if stderr is a terminal. Otherwise a line a minute, or none without ``lines``; work of
    less than a minute prints nothing. ``follow`` goes no faster than ``bytes_per_second``.
    """

    def __init__(
        self,
        total: int | None,
        text: str,
        *,
        unit: str = "B",
        lines: bool = True,
        bytes_per_second: int | None = None,
        sleep: Callable[[float], object] = time.sleep,
        millis: Callable[[], int] = monotonic_ms,
    ) -> None:
        self._text = text
        self._unit = unit
        self._rate = bytes_per_second
        self._sleep = sleep
        self._done = 0
        self._total = total
        self._bar = _bar(total, text, unit) if sys.stderr.isatty() else None
        self._minute = EveryMinute(millis) if lines and self._bar is None else None

    def show(self, done: int, total: int | None = None) -> None:
        """So much is done by now, of ``total`` if that is new."""
        before, self._done = self._done, done
        self._total = total if total is not None else self._total
        if self._bar is not None:
            self._bar.total = self._total
            self._bar.update(done - before)
        if self._minute is not None and self._minute.is_due():
            of = _amount(done, self._unit)
            if self._total is not None:
                of = share(done, self._total, self._unit)
            print(f"{self._text}: {of}", file=sys.stderr, flush=True)

    def follow(self, work: Generator[int, None, T]) -> T:
        """Run ``work``, which yields numbers of bytes, to its end; returns its result."""
        while True:
            try:
                count = next(work)
            except StopIteration as end:
                result: T = end.value
                return result
            self.show(self._done + count)
            if self._rate is not None:
                self._sleep(count / self._rate)

    def close(self) -> None:
        """Leave the bar as it is, or remove it if it is below another. May be called twice."""
        if self._bar is not None:
            self._bar.close()


def _bar(total: int | None, text: str, unit: str) -> Any:
    """None if there is no tqdm."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    # "2/4 tasks", not "2.00/4.00tasks"; bytes and messages are many.
    scaled = unit in ("B", "msg")
    name = unit if unit == "B" else f" {unit}"
    return tqdm(total=total, desc=text, unit=name, unit_scale=scaled, file=sys.stderr, leave=None)
