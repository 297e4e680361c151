"""The overview as text for a terminal: at most 80 columns, and no control characters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from kafka08.console.cluster_state import BrokerView, ClusterState
from kafka08.console.condition import Condition
from kafka08.console.observer import Observer
from kafka08.console.shown import duration, moment, number, rate
from kafka08.lag.collector import Lags

_WIDTH = 80
_GROUPS = 10
_UNKNOWN = "unknown"


def status(cluster: str, found: Condition, state: ClusterState, observer: Observer) -> str:
    """``cluster``: its name. ``found``: how it is, which comes first."""
    lines = [f"{found.sentence}."]
    for cause in found.causes:
        lines += wrapped(f"{cause}.", "  ")
    lines += ["", *wrapped(f"{cluster}, seen {moment(state.time_ms)}")]
    lines += _state(state, observer)
    if observer.lag_error:
        lines += ["", *wrapped(f"Lag cannot be collected: {observer.lag_error}.")]
    if observer.lags is not None:
        lines += _groups(observer.lags)
    return "".join(f"{line}\n" for line in map(printable, lines))


def _state(state: ClusterState, observer: Observer) -> Iterator[str]:
    brokers = list(state.brokers.values())
    yield ""
    yield f"Brokers: {len(state.live)} of {len(brokers)} up"
    yield from table([_broker(each, state.controller) for each in brokers], "><<<")
    views = [view for _, view in state.partitions()]
    under = offline = _UNKNOWN
    if state.told:
        under = number(sum(view.is_under_replicated for view in views))
        offline = number(sum(view.is_offline for view in views))
    messages = number(sum(observer.rates.values())) if observer.rates else _UNKNOWN
    total = observer.traffic.total
    bytes_in, bytes_out = map(rate, total) if total else (_UNKNOWN, _UNKNOWN)
    yield ""
    yield f"Partitions: {number(len(views))} in {number(len(state.topics))} topics"
    figures = [
        (under, "under-replicated"),
        (offline, "without a leader"),
        (number(len(state.moves)), "being moved"),
        (messages, "messages in a second"),
        (bytes_in, "from producers"),
        (bytes_out, "to consumers"),
    ]
    yield from table(figures, "><")


def _broker(broker: BrokerView, controller: int | None) -> tuple[str, ...]:
    notes = ["controller"] if broker.is_live and broker.id == controller else []
    notes += ["data directory failed"] if broker.failed else []
    notes += ["disk full"] if broker.full else []
    state = "up" if broker.is_live else "down"
    return str(broker.id), state, ", ".join(notes), ", ".join(broker.addresses)


def _groups(lags: Lags) -> Iterator[str]:
    """Those with the largest lag."""
    behind = [(name, lag) for name, lag in lags.groups.items() if lag.total]
    behind.sort(key=lambda each: (-each[1].total, each[0]))
    yield ""
    yield f"Groups: {number(len(lags.groups))}, with lag {number(len(behind))}"
    rows = [
        (number(lag.total), lag.status, duration(lag.seconds), name)
        for name, lag in behind[:_GROUPS]
    ]
    yield from table(rows, "><><")
    if len(behind) > _GROUPS:
        yield f"  and {number(len(behind) - _GROUPS)} more"


def table(rows: Sequence[Sequence[str]], sides: str) -> Iterator[str]:
    """``sides``: where the cells of each column stand, ``<`` or ``>``. Of long rows the end is cut
    off."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        line = "  ".join(f"{cell:{side}{width}}" for cell, side, width in cells if width)
        yield f"  {line}".rstrip() if len(line) < _WIDTH - 1 else f"  {line[: _WIDTH - 5]}..."


def wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)


def printable(line: str) -> str:
    """Names of groups may have characters that a terminal obeys."""
    return "".join(each if each.isprintable() else "?" for each in line)
