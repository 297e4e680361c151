"""Rebuilt wrappers in memory files, from which ``sendfile`` can send them.

Wrappers that lie one after the other in a log lie so in such a file too: a fetch of known ones is
one slice of it, looked for by bisection and sent as a slice of the log would be. Knows neither
what a wrapper is nor why it was rebuilt.
"""

from __future__ import annotations

import logging
import os
from array import array
from bisect import bisect_left, bisect_right
from collections import deque

from kafka08.log.disk import open_unnamed
from kafka08.log.segments.file_slice import FileSlice, SegmentFile
from kafka08.message.entry import BytesLike

# A new file begins when the last one has this size. The oldest file is dropped when memory is
# needed.
STRIP_BYTES = 4 << 20
# A file and a wrapper each count for this many bytes beside their own, which bounds their number.
STRIP_OVERHEAD = 64 << 10
WRAPPER_OVERHEAD = 32

logger = logging.getLogger("kafka.server.RebuildCache")


class _Strip:
    """Wrappers of one log file by rising position. Number k is stored from ``starts[k]`` to
    ``stops[k]``, and lies from ``bounds[k]`` to ``bounds[k + 1]`` of ``file``. ``gaps`` are the
    numbers that do not begin where their predecessor stops."""

    __slots__ = ("bounds", "file", "gaps", "serial", "starts", "stops")

    def __init__(self, serial: int, position: int, stop: int, data: BytesLike) -> None:
        self.serial = serial
        self.file = SegmentFile(open_unnamed("rebuilt"))
        self.starts = array("q")
        self.stops = array("q")
        self.bounds = array("q", [0])
        self.gaps = array("q")
        self.append(position, stop, data)

    @property
    def cost(self) -> int:
        return STRIP_OVERHEAD + self.bounds[-1] + WRAPPER_OVERHEAD * len(self.starts)

    def takes(self, position: int, data: BytesLike, newest: bool) -> bool:
        """Whether there is room. Only the newest may have a gap: caching behind entries that
        will be evicted first gains nothing."""
        fits = self.cost + len(data) <= STRIP_OVERHEAD + STRIP_BYTES
        return fits and (newest or position == self.stops[-1])

    def append(self, position: int, stop: int, data: BytesLike) -> None:
        size = self.bounds[-1]
        if os.pwrite(self.file.fd, data, size) < len(data):
            raise OSError("no memory left for it")
        if self.stops and self.stops[-1] != position:
            self.gaps.append(len(self.starts))
        self.starts.append(position)
        self.stops.append(stop)
        self.bounds.append(size + len(data))

    def slice(self, first: int, after: int) -> FileSlice:
        """Wrappers ``first`` up to but not including ``after``."""
        start = self.bounds[first]
        return FileSlice(self.file, start, self.bounds[after] - start)


class RebuildCache:
    """Rebuilt wrappers by where their stored bytes lie, in ``max_bytes`` of memory.

    ``serial`` names bytes that never change. Where the kernel has no memory or no descriptor left,
    nothing is kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size = 0
        self._by_serial: dict[int, list[_Strip]] = {}  # by rising position
        self._order: deque[_Strip] = deque()
        self._failed = False  # the last one could not be kept

    def put(self, serial: int, position: int, stored_bytes: int, data: BytesLike) -> None:
        """Remember what to send for the bytes at ``position``, unless that is known."""
        if STRIP_OVERHEAD + WRAPPER_OVERHEAD + len(data) > self.max_bytes:
            return
        strips = self._by_serial.get(serial, [])
        place = _place(strips, position)
        stop = position + stored_bytes
        if place < len(strips) and strips[place].starts[0] < stop:
            return
        strip = strips[place - 1] if place else None
        if strip is not None and position < strip.stops[-1]:
            return
        try:
            if strip is None or not strip.takes(position, data, place == len(strips)):
                self._keep(_Strip(serial, position, stop, data), place)
            else:
                strip.append(position, stop, data)
                self.size += len(data) + WRAPPER_OVERHEAD
            self._failed = False
        except OSError as error:
            if not self._failed:
                logger.warning("Rebuilt message sets are not kept: %s", error)
            self._failed = True
        while self.size > self.max_bytes:
            self._drop_first()

    def known(self, serial: int, position: int, end: int) -> dict[int, FileSlice]:
        """The bytes to send for the wrappers that begin from ``position`` to ``end``."""
        return {
            strip.starts[number]: strip.slice(number, number + 1)
            for strip in self._by_serial.get(serial, ())
            for number in range(bisect_left(strip.starts, position), bisect_left(strip.starts, end))
        }

    def run(
        self, serial: int, position: int, end: int, max_bytes: int, enough: int = 0
    ) -> FileSlice | bytes | None:
        """The bytes to send for the whole wrappers stored from ``position`` to ``end``. If the
        first ones have ``enough`` bytes, they are sent alone. None if the cache lacks one, or if
        no wrapper is whole. At most ``max_bytes``, except that the first is never cut."""
        found = self._find(serial, position)
        if found is None:
            return None
        strip, first = found
        whole = bisect_right(strip.stops, end, first)
        fit = bisect_right(strip.bounds, strip.bounds[first] + max_bytes) - 1
        after = min(whole, max(fit, first + 1))
        gap = bisect_right(strip.gaps, first)
        if after == first or (gap < len(strip.gaps) and strip.gaps[gap] < after):
            return None
        ready = strip.slice(first, after)
        stop = strip.stops[-1]
        if after < len(strip.stops) or stop == end or len(ready) >= enough:
            return ready
        # the end of a file: a little of the next one goes with it
        more = self.run(serial, stop, end, min(max_bytes - len(ready), enough))
        if more is None:
            return None
        assert isinstance(more, FileSlice)  # nothing is less than enough
        return ready if len(ready) + len(more) > max_bytes else ready.read() + more.read()

    def _find(self, serial: int, position: int) -> tuple[_Strip, int] | None:
        strips = self._by_serial.get(serial, [])
        place = _place(strips, position)
        if not place:
            return None
        strip = strips[place - 1]
        number = bisect_left(strip.starts, position)
        if number == len(strip.starts) or strip.starts[number] != position:
            return None
        return strip, number

    def _keep(self, strip: _Strip, place: int) -> None:
        self._by_serial.setdefault(strip.serial, []).insert(place, strip)
        self._order.append(strip)
        self.size += strip.cost

    def _drop_first(self) -> None:
        strip = self._order.popleft()
        strips = self._by_serial[strip.serial]
        strips.remove(strip)
        if not strips:
            del self._by_serial[strip.serial]
        self.size -= strip.cost


def _place(strips: list[_Strip], position: int) -> int:
    """How many of them begin at or before ``position``."""
    return bisect_right(strips, position, key=lambda strip: strip.starts[0])
