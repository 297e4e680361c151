"""Sizes in bytes by key, their sum, and the oldest key. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Sizes(Generic[Key]):
    """``total`` is the sum in bytes."""

    def __init__(self) -> None:
        self.total = 0
        self._sizes: dict[Key, int] = {}

    def __getitem__(self, key: Key) -> int:
        """0 for an unknown key."""
        return self._sizes.get(key, 0)

    def put(self, key: Key, size: int) -> None:
        """Replace the key's size; a new key is the newest."""
        self.total += size - self[key]
        self._sizes[key] = size

    def drop(self, key: Key) -> None:
        self.total -= self._sizes.pop(key, 0)

    @property
    def oldest(self) -> Key:
        """KeyError if there is none."""
        for key in self._sizes:
            return key
        raise KeyError("no sizes")
