"""Figures about what is between the consumers and the producers of a mirror.

Mirrors the metrics of kafka.tools.MirrorMaker$DataChannel. There is no queue here: a message counts
from when it was taken from a stream until the target has acknowledged it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import exp
from typing import NamedTuple

from kafka08.client.meters import Ticker
from kafka08.metrics import client_names as names
from kafka08.metrics.meters import Histogram
from kafka08.metrics.registry import Series, series

_MINUTE_S = 60.0


class MeanShare(NamedTuple):
    """``share``: 0 to 1."""

    share: float


class TimeShare:
    """The mean of a level from 0 to 1 over time. The last minute counts most."""

    def __init__(self, now: Callable[[], float], level: float = 0.0) -> None:
        self._now = now
        self._begin = self._at = now()
        self._level = level
        self._sum = 0.0

    def set(self, level: float) -> None:
        """The level from now on."""
        self._pass()
        self._level = level

    @property
    def share(self) -> MeanShare:
        self._pass()
        weight = 1 - exp((self._begin - self._at) / _MINUTE_S)
        return MeanShare(min(self._sum / weight, 1.0) if weight else self._level)

    def _pass(self) -> None:
        now = self._now()
        kept = exp((self._at - now) / _MINUTE_S)
        self._sum = self._sum * kept + self._level * (1 - kept)
        self._at = now


class DataChannel:
    """One for all streams and producers of a process. May be called from any thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._ticker = Ticker(now)
        self._sizes = self._ticker.add(Histogram())
        self._put_waits = TimeShare(now)
        self._take_waits = TimeShare(now, 1.0)
        self._size = 0
        self._streams = 0
        self._waiting = 0

    def add_stream(self) -> None:
        with self._lock:
            self._streams += 1

    def wait(self, streams: int) -> None:
        """Change the number of streams that wait for room by this."""
        with self._lock:
            self._waiting += streams
            self._put_waits.set(self._waiting / max(self._streams, 1))

    def put(self) -> None:
        """A stream's message is on its way."""
        with self._lock:
            self._resize(1)
            if self._size == 1:
                self._take_waits.set(0.0)

    def taken(self) -> None:
        """A message has arrived, or has failed."""
        with self._lock:
            self._resize(-1)
            if not self._size:
                self._take_waits.set(1.0)

    def _resize(self, change: int) -> None:
        self._ticker.tick()
        self._size += change
        self._sizes.update(self._size)

    def series(self) -> list[Series]:
        """For ``ClientCollector``."""
        with self._lock:
            self._ticker.tick()
            return [
                series(names.CHANNEL_SIZE, self._sizes),
                series(names.CHANNEL_PUT_WAITS, self._put_waits.share),
                series(names.CHANNEL_TAKE_WAITS, self._take_waits.share),
            ]
