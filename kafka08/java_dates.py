"""Dates as java.text.SimpleDateFormat writes and reads them."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable

ISO_8601 = "yyyy-MM-dd HH:mm:ss,SSS"
"""The format of log4j."""
Piece = Callable[[time.struct_time, int], str]
"""The text of a piece of a pattern, at a local time with its milliseconds."""

_PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_NUMBERS: dict[str, Callable[[time.struct_time, int], int]] = {
    "y": lambda when, millis: when.tm_year,
    "M": lambda when, millis: when.tm_mon,
    "d": lambda when, millis: when.tm_mday,
    "D": lambda when, millis: when.tm_yday,
    "H": lambda when, millis: when.tm_hour,
    "k": lambda when, millis: when.tm_hour or 24,
    "K": lambda when, millis: when.tm_hour % 12,
    "h": lambda when, millis: when.tm_hour % 12 or 12,
    "m": lambda when, millis: when.tm_min,
    "s": lambda when, millis: when.tm_sec,
    "S": lambda when, millis: millis,
}
_TEXTS = {"M": ("%b", "%B"), "E": ("%a", "%A"), "a": ("%p", "%p")}
_TEXTS |= {"Z": ("%z", "%z"), "z": ("%Z", "%Z")}
_ISO_DATE = re.compile(r"\s*(\d+)-(\d+)-(\d+) (\d+):(\d+):(\d+),(\d+)", re.ASCII)


def date_format(pattern: str) -> Callable[[float], str]:
    """Gives the text of seconds since the epoch, in local time; milliseconds are cut.

    Raises ValueError for a letter without a meaning here.
    """
    pieces = [_piece(match) for match in _PIECE.finditer(pattern)]

    def text(seconds: float) -> str:
        second, millis = divmod(math.floor(seconds * 1000), 1000)
        when = time.localtime(second)
        return "".join([piece(when, millis) for piece in pieces])

    return text


def _piece(match: re.Match[str]) -> Piece:
    quoted, letter = match[1], match[2]
    if letter is None:
        literal = match[0] if quoted is None else quoted.replace("''", "'") or "'"
        return lambda when, millis: literal
    count = len(match[0])
    if letter == "y" and count == 2:
        return lambda when, millis: f"{when.tm_year % 100:02d}"
    if letter in _NUMBERS and (letter != "M" or count < 3):
        number, form = _NUMBERS[letter], f"%0{count}d"
        return lambda when, millis: form % number(when, millis)
    if letter in _TEXTS:
        short, long = _TEXTS[letter]
        directive = short if count < 4 else long
        return lambda when, millis: time.strftime(directive, when)
    raise ValueError(f"Illegal pattern character '{letter}'")


def iso_millis(text: str) -> int | None:
    """The ISO_8601 date that ``text`` begins with, as milliseconds that rise with time; None
    without one. Lenient: month 13 is next year's first, day 0 the last before."""
    match = _ISO_DATE.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, millis = map(int, match.groups())
    days = _days_before(year + (month - 1) // 12, (month - 1) % 12) + day
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis


def _days_before(year: int, month: int) -> int:
    """Days from a fixed one to the first of the month (0 to 11) of a year of any sign."""
    if month < 2:  # years that begin in March end with the day that leap years add
        year -= 1
        month += 12
    return year * 365 + year // 4 - year // 100 + year // 400 + (153 * (month - 2) + 2) // 5
