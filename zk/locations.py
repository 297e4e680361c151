"""Where a broker is, in its registration. 0.8.2.2 ignores it, later releases have racks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Location(NamedTuple):
    """``unit``: what fails as one with the broker. None: the broker does not say."""

    rack: str | None = None
    unit: str | None = None


NOWHERE = Location()


def members(location: Location) -> dict[str, object]:
    """The members of the registration that tell of it."""
    return {name: value for name, value in location._asdict().items() if value is not None}


def read(node: Mapping[str, object]) -> Location:
    """Values that make no sense are left out."""
    rack, unit = (node.get(name) for name in Location._fields)
    return Location(
        rack if isinstance(rack, str) else None, unit if isinstance(unit, str) else None
    )
