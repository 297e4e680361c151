"""Reads the frames of a socket that does not block; the counterpart of ``sending``.

A connection's requests are read into one buffer, whose memory the next read uses again. Room for
large ones comes from ``RequestMemory``. Does not interpret frames.
"""

from __future__ import annotations

from typing import Final

from kafka08.network.memory import Holder, RequestMemory
from kafka08.network.transport import PlainSocket, TlsSocket
from kafka08.protocol.framing import LARGEST_BUFFER, FrameDecoder

# Only buffers up to this size are read into ahead of a turn: what is longer would not stay in the
# processor's cache until then.
_AHEAD_BYTES: Final = 16 * 1024


class Receiver:
    """``frames`` were read and are to be handled before the next read. ``is_drained``: that would
    most likely return no data."""

    __slots__ = ("_decoder", "_has_memory", "_memory", "_sock", "frames", "is_drained")

    def __init__(
        self, sock: PlainSocket | TlsSocket, max_bytes: int, memory: RequestMemory
    ) -> None:
        self._sock = sock
        self._memory = memory
        self._decoder = FrameDecoder(max_bytes)
        self._has_memory = False  # for a large request
        self.frames: list[memoryview] = []
        self.is_drained = True

    def limit(self, max_bytes: int) -> None:
        """Change the largest frame; it counts for frames whose size has not been read."""
        self._decoder.limit(max_bytes)

    @property
    def is_short(self) -> bool:
        """The next read is short, and does not wait for memory."""
        return self._decoder.next_size <= _AHEAD_BYTES

    @property
    def has_failed(self) -> bool:
        """The next read will raise what is wrong with the last frame."""
        return self._decoder.error is not None

    def read(self, holder: Holder) -> bool:
        """Read once, as far as there is room; False at the end. May wait until the holder gets
        memory for a large request. Raises BlockingIOError if nothing has come, OSError and
        ProtocolError."""
        decoder = self._decoder
        size = decoder.next_size
        if size > LARGEST_BUFFER:
            self._has_memory = True
            self._memory.hold(holder, size, decoder.needed)
        buffer = decoder.get_buffer()
        self.is_drained = True
        count = self._sock.recv_into(buffer)
        if not count:
            return False
        self.is_drained = count < len(buffer)
        self.frames = decoder.received(count)
        return True

    def give_memory_back(self, holder: Holder) -> None:
        """Once all frames were handled: release what a large request had."""
        if self._has_memory and self._decoder.next_size <= LARGEST_BUFFER:
            self._decoder.get_buffer()  # a small one, in place of the large one
            self.release(holder)

    def release(self, holder: Holder) -> None:
        """Release what a large request has, whole or not."""
        self._has_memory = False
        self._memory.release(holder)
