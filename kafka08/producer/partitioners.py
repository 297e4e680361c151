"""Partitioners: pure functions with the same results as those of the JVM clients.

A partitioner is any callable ``(key, num_partitions) -> partition``. Keys are hashed before
they are serialised, as in the Scala producer; the new Java producer hashes the bytes. These
functions do not know which partitions have a leader.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

from kafka08.common import java_bytes_hash, java_string_hash, scala_abs

Partitioner = Callable[[Any, int], int]

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 32) if value >= 1 << 31 else value


def java_hash(key: object) -> int:
    """``hashCode`` of the Java object that corresponds to this Python key.

    str is String; int is Integer, or Long when it needs 64 bits; bytes hash by content, because
    Java's identity hash of a byte[] has no counterpart. Raises TypeError for anything else.
    """
    if isinstance(key, str):
        return java_string_hash(key)
    if isinstance(key, bytes | bytearray | memoryview):
        return java_bytes_hash(bytes(key))
    if isinstance(key, int) and not isinstance(key, bool):
        if -(1 << 31) <= key < 1 << 31:
            return key
        return _signed(key ^ (key >> 32))
    raise TypeError(f"no Java hash for a {type(key).__name__} key; pass a partitioner")


def default_partitioner(key: object, num_partitions: int) -> int:
    """kafka.producer.DefaultPartitioner."""
    return scala_abs(java_hash(key)) % num_partitions


def byte_array_partitioner(key: bytes, num_partitions: int) -> int:
    """kafka.producer.ByteArrayPartitioner, used by the console producer and mirror maker."""
    return scala_abs(java_bytes_hash(key)) % num_partitions


def murmur2(data: bytes) -> int:
    """The new Java producer's hash of a serialised key, as a signed 32-bit integer."""
    length = len(data)
    value = 0x9747B28C ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _M & _MASK
        word = (word ^ word >> 24) * _M & _MASK
        value = value * _M & _MASK ^ word
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return _signed(value ^ value >> 15)


@lru_cache(maxsize=8192)
def murmur2_partitioner(key: bytes, num_partitions: int) -> int:
    """org.apache.kafka.clients.producer.internals.Partitioner for a keyed record."""
    return (murmur2(key) & 0x7FFFFFFF) % num_partitions


class Unkeyed(Protocol):
    """Chooses partitions for records without a key.

    ``available``: the partitions that have a leader, all of them if none has; never empty.
    """

    def choose(self, available: Sequence[int]) -> int: ...

    def deal(self, available: Sequence[int], count: int) -> Iterator[tuple[int, slice]]:
        """The result of ``count`` calls of ``choose``: the records of each partition."""
        ...

    def refreshed(self) -> None:
        """Metadata is new."""


class RoundRobin:
    """One partition after the other, from a random one on, as in the new Java producer."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._next = (rng or random.Random()).randrange(1 << 31)

    def choose(self, available: Sequence[int]) -> int:
        self._next = number = self._next + 1
        return available[number % len(available)]

    def deal(self, available: Sequence[int], count: int) -> Iterator[tuple[int, slice]]:
        first, self._next = self._next + 1, self._next + count
        for index in range(min(count, len(available))):
            number = (first + index) % len(available)
            yield available[number], slice(index, None, len(available))

    def refreshed(self) -> None:
        """Changes nothing."""


class StickyRandom:
    """The same random partition until metadata is refreshed, as in the Scala producer."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._random = rng or random.Random()
        self._chosen: int | None = None

    def choose(self, available: Sequence[int]) -> int:
        chosen = self._chosen
        if chosen is None or chosen not in available:
            chosen = self._chosen = self._random.choice(available)
        return chosen

    def deal(self, available: Sequence[int], count: int) -> Iterator[tuple[int, slice]]:
        if count:
            yield self.choose(available), slice(None)

    def refreshed(self) -> None:
        self._chosen = None
