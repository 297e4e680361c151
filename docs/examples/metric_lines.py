"""Samples from what statsd's clients and collectd send: lines, PUTVAL commands, JSON."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

STATSD = re.compile(r"([^:|]+):([^|]+)\|(c|g|ms|h|s)((?:\|[@#T][^|]*)*)")
STATSD_KINDS = {"c": "count", "g": "gauge", "ms": "time", "h": "time", "s": "set"}
COLLECTD_KINDS = {"gauge": "gauge", "derive": "total", "counter": "total", "absolute": "count"}


class Sample(NamedTuple):
    """``kind`` is count, gauge, time (in ms), set or total (a count since the start).

    ``value`` is a number, of a set a text; ``time`` is in seconds since 1970.
    """

    name: str
    kind: str
    value: float | str
    time: float


def lines(datagram: bytes) -> list[str]:
    """statsd and PUTVAL have a line for each metric; collectd's JSON is one for all."""
    text = datagram.decode("utf-8", "replace").strip()
    return [text] if text.startswith("[") else [line for line in text.splitlines() if line]


def parse(line: str, now: float) -> list[Sample]:
    """The samples of a line; ``now`` is the time of those without one. Raises ValueError."""
    if line.startswith("["):
        return [sample for entry in json.loads(line) for sample in _of_json(entry)]
    if line.startswith("PUTVAL "):
        return list(_of_putval(line, now))
    return [_of_statsd(line, now)]


def _of_statsd(line: str, now: float) -> Sample:
    """``name:value|type``, then a sample rate (``|@0.1``), tags (``|#a:b``), a time (``|T...``)."""
    match = STATSD.fullmatch(line)
    if match is None:
        raise ValueError("neither statsd nor collectd")
    name, value, letter, rest = match.groups()
    extra = {part[0]: part[1:] for part in rest.split("|") if part}
    if letter == "g" and value[0] in "+-":
        raise ValueError("a change of a gauge, without its value")
    at = _number(extra["T"]) if "T" in extra else now
    if letter == "s":
        return Sample(name, "set", value, at)
    rate = _number(extra.get("@", 1)) if letter == "c" else 1
    if not 0 < rate <= 1:
        raise ValueError(f"a sample rate of {rate}")
    return Sample(name, STATSD_KINDS[letter], _number(value) / rate, at)


def _of_putval(line: str, now: float) -> Iterator[Sample]:
    """``PUTVAL host/plugin/type interval=10 time:value:value``; U is an unknown value.

    The line does not say what the values are; all are taken for gauges.
    """
    _, name, *words = shlex.split(line)
    timed = [word for word in words if "=" not in word]
    if not timed:
        raise ValueError("PUTVAL without values")
    for word in timed:
        at, *values = word.split(":")
        for number, value in enumerate(values):
            if value != "U":
                full = name.replace("/", ".") + (f".{number}" if len(values) > 1 else "")
                yield Sample(full, "gauge", _number(value), now if at == "N" else _number(at))


def _of_json(entry: dict[str, Any]) -> Iterator[Sample]:
    """A value list as collectd's plugins write_http and write_kafka send it; null is unknown."""
    try:
        plugin = (entry["plugin"], entry["plugin_instance"])
        kind = (entry["type"], entry["type_instance"])
        name = ".".join([entry["host"], *("-".join(filter(None, part)) for part in (plugin, kind))])
        values = zip(entry["values"], entry["dstypes"], entry["dsnames"], strict=True)
        for value, dstype, source in values:
            if value is not None:
                full = name if source == "value" else f"{name}.{source}"
                yield Sample(full, COLLECTD_KINDS[dstype], _number(value), _number(entry["time"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a value list of collectd: {error}") from None


def _number(text: Any) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a number")
    return value
