"""The two checksums of entries: CRC-32 of formats 0 and 1, CRC-32C of format 2.

``crc32(data, value=0)`` is ``zlib.crc32``, ``crc32c(data, value=0)`` the same with the other
polynomial. Most messages are short and each needs its own call, so the cost of a call matters most.
Both come from ``kafka08._native.checksums`` if it was built, which also spares a starting broker
two imports. Otherwise they come from the packages isal, which takes a third of zlib's time at 100
bytes and a fifth at 1 KB, and crc32c; without these (on an executor of Spark, say) from zlib, and
from a slow loop.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module

from kafka08._native import load


def slow_crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """CRC-32C, byte by byte."""
    table = _table()
    crc = value ^ 0xFFFFFFFF
    for byte in bytes(data):
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@cache
def _table() -> list[int]:
    return [_row(byte) for byte in range(256)]


def _row(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


crc32: Callable[..., int] = zlib.crc32
crc32c: Callable[..., int] = slow_crc32c
native = load("checksums")
if native is not None:
    crc32, crc32c = native.crc32, native.crc32c
else:
    try:
        crc32 = import_module("isal.isal_zlib").crc32
    except ImportError:
        pass
    try:
        crc32c = import_module("crc32c").crc32c
    except ImportError:
        pass
