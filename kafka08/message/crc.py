"""The two checksums of entries: CRC-32 of formats 0 and 1, CRC-32C of format 2.

``crc32(data, value=0)`` is ``zlib.crc32``, from the fastest installed library. Most messages are
short and each needs its own call, so the cost of a call matters most: fastcrc takes a third of
zlib's time at 100 bytes and a fifth at 1 KB. On platforms without a wheel of fastcrc, zlib is used.
``crc32c(data, value=0)`` is that of the package of the same name, or without it (on an executor of
Spark, say) a slow one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

crc32: Callable[..., int] = zlib.crc32
try:
    from fastcrc import crc32 as _fastcrc
except ImportError:
    pass
else:
    fast: Any = _fastcrc
    crc32 = fast.iso_hdlc


def slow_crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """CRC-32C, byte by byte."""
    crc = value ^ 0xFFFFFFFF
    for byte in bytes(data):
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _row(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


_TABLE = [_row(byte) for byte in range(256)]
crc32c: Callable[..., int] = slow_crc32c
try:
    from crc32c import crc32c as fast_crc32c
except ImportError:
    pass
else:
    crc32c = fast_crc32c
