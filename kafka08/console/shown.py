"""How figures are written on pages."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from kafka08.console.history import STEP_MS, Point

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
NONE = "-"


def number(value: float | None) -> str:
    """12,345; one decimal where it matters."""
    if value is None:
        return NONE
    return f"{value:,.1f}" if isinstance(value, float) and abs(value) < 100 else f"{value:,.0f}"


def size(value: int | None) -> str:
    """12.3 MiB."""
    if value is None:
        return NONE
    amount, unit = float(value), 0
    while amount >= 1024 and unit < len(_SIZES) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_SIZES[unit]}" if unit else f"{value} B"


def rate(value: float) -> str:
    """12.3 MiB/s, of bytes per second."""
    return "under 1 B/s" if 0 < value < 1 else f"{size(round(value))}/s"


def duration(seconds: float | None) -> str:
    """3 h 20 min."""
    if seconds is None:
        return NONE
    left = max(int(seconds), 0)
    words = []
    for length, unit in _UNITS:
        if left >= length:
            words.append(f"{left // length} {unit}")
            left %= length
    if len(words) < 2 and (left or not words):
        words.append(f"{left} s")
    return " ".join(words[:2])


_MOMENT = "%Y-%m-%d %H:%M:%S UTC"


def moment(time_ms: int | None) -> str:
    """2026-11-22 17:40:05 UTC."""
    if time_ms is None or time_ms < 0:
        return NONE
    try:
        found = datetime.datetime.fromtimestamp(time_ms / 1000, datetime.timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"
    return found.strftime(_MOMENT)


def time_of(text: str) -> int | None:
    """The ms since the epoch of a text that ``moment`` wrote; None for another text."""
    try:
        found = datetime.datetime.strptime(text, _MOMENT)
    except ValueError:
        return None
    return int(found.replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)


def iso(time_ms: int | None) -> str | None:
    """2026-11-22T17:40:05.120Z, for programs; None for a time that is not known."""
    if time_ms is None or time_ms < 0:
        return None
    try:
        found = datetime.datetime.fromtimestamp(time_ms / 1000, datetime.timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def graph(
    points: Sequence[Point],
    label: str,
    gaps: Sequence[tuple[int, int]] = (),
    width: int = 640,
    height: int = 160,
) -> Markup:
    """A line over time as SVG, between an axis of values from 0 and one of time. It is broken where
    two points have one of the ``gaps`` between them, from and to a time."""
    if len(points) < 2:
        return Markup('<p class="quiet">The graph begins after the second measurement.</p>')
    first, last = points[0].time_ms, points[-1].time_ms
    top = _round_up(max(point.value for point in points))
    span = max(last - first, 1)
    lines = Markup("").join(
        Markup('<polyline points="{}"/>').format(
            " ".join(
                f"{(point.time_ms - first) / span * width:.1f},"
                f"{height - point.value / top * height:.1f}"
                for point in piece
            )
        )
        for piece in _pieces(points, gaps)
    )
    return Markup(
        '<figure class="graph"><figcaption>{label}</figcaption>'
        '<div class="values"><span>{top}</span><span>{half}</span><span>0</span></div>'
        '<svg viewBox="0 0 {w} {h}" role="img" aria-label="{label}: 0 to {top}, from {first} to'
        ' {last}" preserveAspectRatio="none"><path d="M0 0H{w}M0 {middle}H{w}M0 {h}H{w}"/>{lines}'
        '</svg><div class="times"><span>{first}</span><span>{between}</span><span>{last}</span>'
        "</div></figure>"
    ).format(
        w=width,
        h=height,
        middle=height // 2,
        label=label,
        lines=lines,
        top=_mark(top),
        half=_mark(top / 2),
        first=moment(first),
        between=moment((first + last) // 2),
        last=moment(last),
    )


def _round_up(value: float) -> float:
    """1, 2, 4 or 6 with zeros: the end of an axis, whose middle is as round."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 6, 10) if value <= step * power * (1 + 1e-9))


def _mark(value: float) -> str:
    """A number of an axis: 0.05, 2.5, 4,000."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def _pieces(points: Sequence[Point], gaps: Sequence[tuple[int, int]]) -> list[list[Point]]:
    """A point alone comes twice, so that it is drawn as a dot."""
    pieces = [[points[0]]]
    for before, point in pairwise(points):
        if any(_is_between(before.time_ms, point.time_ms, gap) for gap in gaps):
            pieces.append([])
        pieces[-1].append(point)
    return [piece * 2 if len(piece) == 1 else piece for piece in pieces]


def _is_between(before_ms: int, after_ms: int, gap: tuple[int, int]) -> bool:
    """Whether nothing was measured in a gap, so that it separates two points. Its ends may be as
    wrong as points are apart."""
    since, until = gap
    overlaps = since < after_ms and before_ms < until
    return overlaps and after_ms - before_ms + STEP_MS >= until - since


FILTERS = {"number": number, "rate": rate, "size": size, "duration": duration, "moment": moment}
