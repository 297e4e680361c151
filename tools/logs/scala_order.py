"""In which order a mutable hash map of Scala 2.11 gives its keys back: what a tool lists from one.

Mirrors scala.collection.mutable.HashTable: a table of chains, newest first, twice as large when
three quarters full, read from its end.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.common import java_string_hash

_FIRST_SIZE = 16
_ROTATION = 4  # the bits of the first size, kept when the table grows
_MIX = 0x9E3775CD
_INT = 0xFFFFFFFF


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """``keys`` (each once) as a map that they were put into in this order lists them."""
    table: list[list[str]] = [[] for _ in range(_FIRST_SIZE)]
    for count, key in enumerate(keys, start=1):
        table[_place(key, len(table))].insert(0, key)
        if count > len(table) * 3 // 4:
            table = _grown(table)
    return [key for chain in reversed(table) for key in chain]


def _grown(table: list[list[str]]) -> list[list[str]]:
    larger: list[list[str]] = [[] for _ in range(2 * len(table))]
    for chain in reversed(table):
        for key in chain:
            larger[_place(key, len(larger))].insert(0, key)
    return larger


def _place(key: str, size: int) -> int:
    mixed = java_string_hash(key) * _MIX & _INT
    mixed = int.from_bytes(mixed.to_bytes(4, "little"), "big") * _MIX & _INT
    rotated = (mixed >> _ROTATION | mixed << (32 - _ROTATION)) & _INT
    return rotated >> (32 - (size - 1).bit_length())
