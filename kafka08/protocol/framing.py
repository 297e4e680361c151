"""Cuts a stream of bytes into frames, without a socket: an int32 size word, then that many bytes.

For use with ``recv_into``: the caller reads directly into the decoder's buffer, and frames are
slices of it, not copies. Does not interpret frames.

    while n := sock.recv_into(decoder.get_buffer()):
        for frame in decoder.received(n):
            ...

A size word that makes 0.8.2.2 close the connection (BoundedByteBufferReceive) raises ProtocolError
as soon as it is complete. If whole frames come before it, these are returned first and the next
call raises.
"""

from __future__ import annotations

import struct
from typing import Final

from kafka08.errors import ProtocolError

SMALLEST_BUFFER: Final = 4 * 1024
LARGEST_BUFFER: Final = 256 * 1024
# The largest frame before a login is done.
LARGEST_BEFORE_LOGIN: Final = 512 * 1024
GROWTH: Final = 4
# After this many reads in a row that would fit the next smaller buffer, that one is used.
QUIET_READS: Final = 64

_SIZE: Final = struct.Struct(">i")


class FrameDecoder:
    """Decodes frames of at most ``max_bytes``, without the size word. ``error`` is what the next
    ``get_buffer`` will raise.

    The buffer adapts to the reads: it grows fourfold, from 4 to 256 KiB, when a read fills it, and
    shrinks again after smaller reads. For a larger frame it doubles as bytes arrive.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._capacity = SMALLEST_BUFFER
        self._view = memoryview(bytearray(SMALLEST_BUFFER))
        self._start = 0  # of the first frame that is not whole
        self._end = 0  # of what was received
        self._needed = 0  # bytes of that frame with its size word, once known
        self._quiet = 0
        self.error: ProtocolError | None = None

    def limit(self, max_bytes: int) -> None:
        """Change the largest frame; it counts for frames whose size has not been read."""
        self.max_bytes = max_bytes

    @property
    def pending(self) -> int:
        """The number of bytes of an incomplete frame."""
        return self._end - self._start

    @property
    def needed(self) -> int:
        """The bytes of an incomplete frame when it is whole, with its size word; 0 if unknown."""
        return self._needed

    @property
    def next_size(self) -> int:
        """The size of the next buffer."""
        if self._needed <= self._capacity:
            return self._capacity
        # By doubling a full one: a size word alone must not allocate the memory it announces.
        pending = self._end - self._start
        room = len(self._view) if pending < len(self._view) else 2 * pending
        return min(self._needed, max(LARGEST_BUFFER, room))

    def get_buffer(self) -> memoryview:
        """The buffer to read into, never empty. Frames returned before are no longer valid."""
        if self.error is not None:
            raise self.error
        pending = self._end - self._start
        size = self.next_size
        if len(self._view) != size and (pending == 0 or len(self._view) < size):
            # A new buffer, not a resize: frames that are still referenced pin the old one.
            view = memoryview(bytearray(size))
            view[:pending] = self._view[self._start : self._end]
            self._view = view
        elif self._start and pending:
            self._view[:pending] = self._view[self._start : self._end]
        self._start = 0
        self._end = pending
        return self._view[pending:]

    def received(self, count: int) -> list[memoryview]:
        """The frames that ``count`` more bytes in the buffer complete, as writable slices of it.

        They are valid until the next ``get_buffer``.
        """
        frames = self._cut(count)
        if self.error is not None and not frames:
            raise self.error
        return frames

    def _cut(self, count: int) -> list[memoryview]:
        self._adapt(count)
        view = self._view
        start = self._start
        self._end = end = self._end + count
        self._needed = 0
        frames = []
        while end - start >= 4:
            size = _SIZE.unpack_from(view, start)[0]
            if not 0 < size <= self.max_bytes:
                self.error = ProtocolError(
                    f"a frame of {size} bytes is not between 1 and {self.max_bytes}"
                )
                break
            after = start + 4 + size
            if after > end:
                self._needed = 4 + size
                break
            frames.append(view[start + 4 : after])
            start = after
        self._start = start
        return frames

    def _adapt(self, count: int) -> None:
        if self._end + count == len(self._view):
            self._quiet = 0
            if self._needed <= self._capacity < LARGEST_BUFFER:
                self._capacity *= GROWTH
        elif self._capacity > SMALLEST_BUFFER:
            self._quiet = self._quiet + 1 if self._end + count < self._capacity // GROWTH else 0
            if self._quiet == QUIET_READS:
                self._quiet = 0
                self._capacity //= GROWTH
