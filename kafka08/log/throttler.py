"""A rate shared by several processes (kafka.utils.Throttler, whose threads share an object).

The processes share eight bytes of a file: the time at which everything granted so far will have
been paid for. Who does some work reserves its time there and sleeps until its turn. Knows
nothing of what is counted.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable
from struct import Struct

_TIME = Struct("=d")
# Above this nobody could tell: the default of log.cleaner.io.max.bytes.per.second is 1.8e308.
_UNLIMITED = 1e15


class SharedTime:
    """A nameless file for Throttlers to share; it closes with the last reference."""

    def __init__(self) -> None:
        self.fd = -1
        with tempfile.TemporaryFile() as file:
            self.fd = os.dup(file.fileno())

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


class Throttler:
    """Holds those who share the file ``fd`` to ``rate`` units per second together.

    ``monotonic`` must be a clock that the processes share, which Linux's monotonic clock is.
    """

    def __init__(
        self,
        rate: float,
        fd: int,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.rate = rate
        self._fd = fd
        self._monotonic = monotonic
        self._sleep = sleep

    def maybe_throttle(self, observed: int) -> None:
        """Count ``observed`` units just done; sleeps while more was done than the rate allows."""
        if self.rate >= _UNLIMITED:
            return
        fcntl.lockf(self._fd, fcntl.LOCK_EX)
        try:
            stored = os.pread(self._fd, _TIME.size, 0)
            now = self._monotonic()
            paid_until = max(_TIME.unpack(stored)[0] if stored else now, now)
            paid_until += observed / self.rate
            os.pwrite(self._fd, _TIME.pack(paid_until), 0)
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN)
        self._sleep(paid_until - now)
