"""Sizes and lengths of time as people write them: 7 days, 12 h, 1 GiB, no limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from kafka08.settings.settings import LONG_MAX

_NUMBER = re.compile(r"([+-]?[0-9]{1,25}(?:\.[0-9]{1,9})?)\s*([A-Za-z%]*(?:/s)?)")
_LARGEST = "largest number"
"""Shown for the largest long of a setting in which another number means that there is no limit."""


class Quantity(NamedTuple):
    """``shown``: the units in which numbers are shown, the largest first, the last being that of
    the setting. ``read``: the units that are taken, by their names in lower case."""

    unit: str
    shown: tuple[tuple[str, int], ...]
    read: Mapping[str, int | Fraction]
    examples: str


class Endless(NamedTuple):
    """The number of a setting for which there is no limit, and what it is called."""

    number: int
    name: str


_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_SHOWN_TIMES = (("days", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", _SECOND), ("ms", 1))
_TIMES = {
    "ms": 1,
    **dict.fromkeys(("s", "second", "seconds"), _SECOND),
    **dict.fromkeys(("m", "min", "minute", "minutes"), _MINUTE),
    **dict.fromkeys(("h", "hour", "hours"), _HOUR),
    **dict.fromkeys(("d", "day", "days"), _DAY),
}
_SHOWN_SIZES = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("bytes", 1))
_SIZES = {
    **dict.fromkeys(("b", "byte", "bytes"), 1),
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}


def _time_in(unit: str, size: int) -> Quantity:
    return Quantity(
        unit,
        tuple((name, each // size) for name, each in _SHOWN_TIMES if each >= size),
        {name: Fraction(each, size) for name, each in _TIMES.items()},
        f"7 days, or a number of {unit}",
    )


TIME = Quantity("ms", _SHOWN_TIMES, _TIMES, "7 days, 12 h, 30 min, or a number of ms")
SIZE = Quantity("bytes", _SHOWN_SIZES, _SIZES, "512 MB, 1 GiB, or a number of bytes")
RATE = Quantity(
    "bytes/s",
    tuple((f"{unit}/s", size) for unit, size in _SHOWN_SIZES),
    {**_SIZES, **{f"{unit}/s": size for unit, size in _SIZES.items()}},
    "10 MiB/s, or a number of bytes a second",
)
PERCENT = Quantity("%", (("%", 1),), {"%": 1}, "10 %")
CONNECTIONS = Quantity("/s", (("/s", 1),), {"/s": 1}, "20, or 20/s")
COUNT = Quantity("", (("", 1),), {}, "10000")
_QUANTITIES = {
    ".ms": TIME,
    **dict.fromkeys((".seconds", ".secs"), _time_in("s", _SECOND)),
    ".minutes": _time_in("min", _MINUTE),
    ".hours": _time_in("h", _HOUR),
    **dict.fromkeys((".bytes", ".buffer.size"), SIZE),
    **dict.fromkeys(
        (
            ".throttled.rate",
            ".bytes.per.second",
            "quota.producer.default",
            "quota.consumer.default",
        ),
        RATE,
    ),
    ".percentage": PERCENT,
    ".connection.creation.rate": CONNECTIONS,
}
"""By the ends of keys, of topics and of brokers."""
_NO_LIMIT = Endless(LONG_MAX, "no limit")
_ENDLESS = {
    "retention.ms": Endless(-1, "no limit"),
    "retention.bytes": Endless(-1, "no limit"),
    "log.retention.bytes": Endless(-1, "no limit"),
    "flush.ms": Endless(LONG_MAX, "never"),
    "flush.messages": Endless(LONG_MAX, "never"),
    **dict.fromkeys(
        (
            "log.flush.interval.ms",
            "log.flush.scheduler.interval.ms",
            "log.flush.interval.messages",
        ),
        Endless(LONG_MAX, "never"),
    ),
}


def quantity(key: str) -> Quantity:
    """The kind of things that a setting with whole numbers counts."""
    return next((found for end, found in _QUANTITIES.items() if key.endswith(end)), COUNT)


def plain(key: str, number: int) -> str:
    """The number of a setting in the largest unit in which it is whole. ``parsed`` gives the number
    again."""
    endless = _ENDLESS.get(key, _NO_LIMIT)
    if number == endless.number:
        return endless.name
    if number == LONG_MAX:
        return _LARGEST
    return in_units(quantity(key), number)


def in_units(of: Quantity, number: int) -> str:
    """A number of things in the largest unit in which it is whole."""
    shown = of.shown
    unit, size = next((each for each in shown if number and number % each[1] == 0), shown[-1])
    count = number // size
    return f"{count} {'day' if (unit, count) == ('days', 1) else unit}".rstrip()


def parsed(key: str, text: str) -> int:
    """The number of a setting, as a plain number or with a unit. Raises ValueError, with the
    reason."""
    words = " ".join(text.lower().split())
    if words in ("never", "no limit"):
        return _ENDLESS.get(key, _NO_LIMIT).number
    if words == _LARGEST:
        return LONG_MAX
    return counted(quantity(key), text)


def counted(of: Quantity, text: str) -> int:
    """A plain number of things, or one with a unit. Raises ValueError, with the reason."""
    words = " ".join(text.lower().split())
    found = _NUMBER.fullmatch(words)
    size = of.read.get(found[2]) if found and found[2] else 1
    if found is None or size is None:
        raise ValueError(f"{text!r} is not like {of.examples}")
    number = Fraction(found[1]) * size
    if number.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number{f' of {of.unit}' if of.unit else ''}")
    return int(number)
