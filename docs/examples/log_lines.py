"""Log lines in one form: from datagrams of syslog (RFC 3164 and 5424), from Python's logging."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
DEFAULT_PRIORITY = "13"  # user.notice, of a datagram that does not give one
RFC_5424 = re.compile(
    r"<(\d{1,3})>1 (\S+) (\S+) (\S+) \S+ \S+ "
    r'(?:-|(?:\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\])+)(?: \ufeff?(.*))?',
    re.DOTALL,
)
RFC_3164 = re.compile(
    r"<(\d{1,3})>(\w{3} [ \d]\d \d\d:\d\d:\d\d) (\S+) ([^\s:\[]+)(?:\[[^\]]*\])?:? ?(.*)", re.DOTALL
)
PRIORITY = re.compile(r"<(\d{1,3})>(.*)", re.DOTALL)


class Line(NamedTuple):
    """``time`` is in seconds since 1970, ``level`` one of LEVELS."""

    time: float
    host: str
    program: str
    level: str
    text: str


def of_syslog(datagram: bytes, sender: str, now: datetime) -> Line:
    """The line in a datagram; one of neither form keeps its text, with ``sender`` and ``now``."""
    text = datagram.decode("utf-8", "replace").rstrip("\n\0")
    later, earlier = RFC_5424.fullmatch(text), RFC_3164.fullmatch(text)
    with contextlib.suppress(ValueError):  # a time that does not exist
        if later is not None:
            priority, stamp, host, program, said = later.groups()
            at = now if stamp == "-" else _iso(stamp)
            name = sender if host == "-" else host
            return Line(at.timestamp(), name, program, _level(priority), said or "")
        if earlier is not None:
            priority, stamp, host, program, said = earlier.groups()
            at = _without_year(stamp, now)
            return Line(at.timestamp(), host, program, _level(priority), said)
    found = PRIORITY.fullmatch(text)
    priority, said = found.groups() if found is not None else (DEFAULT_PRIORITY, text)
    return Line(now.timestamp(), sender, "-", _level(priority), said)


def _level(priority: str) -> str:
    return LEVELS[int(priority) % 8]


def _iso(stamp: str) -> datetime:
    """Python 3.10 wants six digits or none after the point, and does not know Z."""
    padded = re.sub(r"\.(\d{1,6})", lambda found: "." + found[1].ljust(6, "0"), stamp)
    return datetime.fromisoformat(padded.replace("Z", "+00:00"))


def _without_year(stamp: str, now: datetime) -> datetime:
    """Of this year, in ``now``'s zone; of the last one if it would be more than a day ahead."""
    for year in (now.year, now.year - 1):
        at = datetime.strptime(f"{year} {stamp}", "%Y %b %d %H:%M:%S").replace(tzinfo=now.tzinfo)
        if at - now < timedelta(days=1):
            return at
    raise ValueError(f"{stamp} is in the future")


class JsonFormatter(logging.Formatter):
    """Records of Python's logging as the JSON of a Line, with the traceback if there is one."""

    LEVELS = {"CRITICAL": "crit", "ERROR": "err", "WARNING": "warning", "INFO": "info"}

    def __init__(self, host: str) -> None:
        super().__init__()
        self.host = host

    def format(self, record: logging.LogRecord) -> str:
        level = self.LEVELS.get(record.levelname, "debug")
        return encoded(Line(record.created, self.host, record.name, level, super().format(record)))


def encoded(line: Line) -> str:
    return json.dumps(line._asdict())


def decoded(value: bytes) -> Line:
    return Line(**json.loads(value))


def matching(lines: Iterable[Line], words: str, since: float, until: float) -> Iterator[Line]:
    """The lines from ``since`` to before ``until`` that have all words, in any case and order."""
    wanted: list[Any] = words.lower().split()
    for line in lines:
        searched = f"{line.host} {line.program} {line.level} {line.text}".lower()
        if since <= line.time < until and all(word in searched for word in wanted):
            yield line
