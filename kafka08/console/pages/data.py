"""The data of a page as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping


def encoded(data: Mapping[str, object]) -> str:
    """NamedTuples are objects, other collections arrays. Raises TypeError for a value of another
    kind: the form of each is a choice, never its ``repr``."""
    return json.dumps(_plain(data), indent=2) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    fields = getattr(value, "_fields", None)
    if fields is not None:
        return {name: _plain(getattr(value, name)) for name in fields}
    if isinstance(value, Collection) and not isinstance(value, bytes):
        return [_plain(each) for each in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")
