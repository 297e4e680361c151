"""A rate limit shared by several processes (kafka.utils.Throttler, whose threads share an object).

The processes share eight bytes of a file: the time at which all work granted so far is within the
rate. A process reserves time for its work there and sleeps until its turn. Does not know the unit
that is counted.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from struct import Struct

from kafka08.log.disk import open_unnamed

_TIME = Struct("=d")
# Higher rates mean no limit: the default of log.cleaner.io.max.bytes.per.second is 1.8e308.
_UNLIMITED = 1e15


class SharedTime:
    """An unnamed file that Throttlers share; it closes with the last reference."""

    def __init__(self) -> None:
        self.fd = -1
        self.fd = open_unnamed("throttle")

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


class Throttler:
    """Limits all processes that share the file ``fd`` to ``rate`` units per second together.

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
        """Count ``observed`` units of work done; sleeps while the total is above the rate."""
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
