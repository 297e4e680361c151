"""How far a compacted log may be cleaned; a module of its own for those who do not clean."""

from __future__ import annotations

from typing import NamedTuple


class Reach(NamedTuple):
    """Below the offset ``until``. ``is_everywhere``: all assigned replicas have the messages below
    it that this one has."""

    until: int
    is_everywhere: bool
