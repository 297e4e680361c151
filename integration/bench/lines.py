"""Panels of lines over time as an SVG. Knows nothing of what they show or how it is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from integration.bench.svg import document, text

COLOURS = ("#2b6cb0", "#dd6b20", "#38a169", "#805ad5")
MOST_POINTS = 400
WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 760, 130, 64, 120, 48, 34

Points = Sequence[tuple[float, float]]


class Panel(NamedTuple):
    """Lines by name, each of (seconds, value). ``is_log``: equal steps up are equal factors."""

    title: str
    lines: Mapping[str, Points]
    is_log: bool = False

    @property
    def values(self) -> list[float]:
        return [value for line in self.lines.values() for _, value in line]


def svg(title: str, panels: Sequence[Panel], marks: Sequence[tuple[float, str]]) -> str:
    """The panels below each other on one time axis; ``marks`` are seconds and what began then."""
    height = TOP + len(panels) * (PANEL + GAP) + 20
    end = max(
        (at for panel in panels for line in panel.lines.values() for at, _ in line), default=1
    )
    out = []
    bottom = TOP + len(panels) * (PANEL + GAP) - GAP
    for at, name in marks:
        x = _across(at, end)
        out.append(
            f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" stroke="#a0aec0" '
            'stroke-dasharray="3,3"/>'
        )
        out.append(text(x + 3, TOP - 12, name, size=9))
    for number, panel in enumerate(panels):
        out += _panel(panel, TOP + number * (PANEL + GAP), end)
    for minute in range(0, int(end // 60) + 1, max(1, int(end // 600))):
        out.append(text(_across(minute * 60, end), bottom + 16, f"{minute} min", anchor="middle"))
    return document(WIDTH, height, title, LEFT, 16, out)


def peaks(points: Points, most: int = MOST_POINTS) -> Points:
    """As many points at most: the largest value of each group that follow each other."""
    step = math.ceil(len(points) / most) or 1
    groups = (points[at : at + step] for at in range(0, len(points), step))
    return [max(group, key=lambda point: point[1]) for group in groups]


def _across(at: float, end: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * at / end


def _panel(panel: Panel, y: float, end: float) -> list[str]:
    steps, share = _factors(panel.values) if panel.is_log else _sums(panel.values)

    def up(value: float) -> float:
        return y + PANEL * (1 - share(value))

    out = [text(LEFT, y - 4, panel.title, size=12)]
    for step in steps:
        out.append(
            f'<line x1="{LEFT}" y1="{up(step):.1f}" x2="{WIDTH - RIGHT}" y2="{up(step):.1f}" '
            'stroke="#e2e8f0"/>'
        )
        out.append(text(LEFT - 6, up(step) + 4, f"{step:.4g}", anchor="end", size=9))
    for number, (name, line) in enumerate(panel.lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        shown = [(_across(at, end), up(value)) for at, value in peaks(line)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shown)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        out.append(text(WIDTH - RIGHT + 8, y + 12 + 14 * number, name, colour=colour))
    return out


# The values to be named, and the part of the height at which a value is.
Scale = tuple[list[float], Callable[[float], float]]


def _sums(values: Sequence[float]) -> Scale:
    """From 0; equal steps up are equal sums."""
    high = 1.1 * (max(values, default=1) or 1)
    return [high * part / 4 for part in range(5)], lambda value: value / high


def _factors(values: Sequence[float]) -> Scale:
    """Powers of ten around the values above 0; equal steps up are equal factors."""
    shown = [value for value in values if value > 0] or [0.1, 1.0]
    first, last = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)))
    low, height = 10.0**first, (last - first) or 1
    steps = [10.0**number for number in range(first, last + 1)]
    return steps, lambda value: math.log10(max(value, low) / low) / height
