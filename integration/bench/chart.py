"""Panels of bars as an SVG. Knows nothing of what they show or how it is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from integration.bench.svg import document, text

COLOURS = ("#2b6cb0", "#a0aec0")
BAR, GAP, PANEL_GAP = 26, 14, 36
HEIGHT, LEFT, TOP, BOTTOM = 200, 56, 48, 56


def svg(
    title: str,
    unit: str,
    panels: Mapping[str, Sequence[str]],
    kinds: Sequence[str],
    values: Mapping[tuple[str, str, str], float],
) -> str:
    """``panels``: the groups of bars of each; a group has one bar per kind.

    ``values`` by (panel, group, kind); what is missing is left out.
    """
    group_width = BAR * len(kinds) + GAP
    widths = [group_width * len(groups) + PANEL_GAP for groups in panels.values()]
    width, top = LEFT + sum(widths), max(values.values(), default=1)
    out = []
    for number, kind in enumerate(kinds):
        x = LEFT + 110 * number
        out.append(f'<rect x="{x}" y="26" width="10" height="10" fill="{COLOURS[number]}"/>')
        out.append(text(x + 14, 35, kind))
    x = LEFT
    for panel_width, (panel, groups) in zip(widths, panels.items(), strict=True):
        middle = x + (panel_width - PANEL_GAP) / 2
        out.append(text(middle, TOP + HEIGHT + 40, panel, anchor="middle", size=12))
        for group_number, group in enumerate(groups):
            at = x + group_width * group_number
            centre = at + BAR * len(kinds) / 2
            out.append(text(centre, TOP + HEIGHT + 18, group, anchor="middle"))
            for number, kind in enumerate(kinds):
                value = values.get((panel, group, kind))
                if value is not None:
                    out += _bar(at + BAR * number, value, top, COLOURS[number])
        x += panel_width
    return document(width, HEIGHT + TOP + BOTTOM, f"{title} ({unit})", LEFT, 18, out)


def _bar(x: float, value: float, top: float, colour: str) -> list[str]:
    height = (HEIGHT - 16) * value / top
    y = TOP + HEIGHT - height
    shape = f'<rect x="{x}" y="{y:.1f}" width="{BAR - 2}" height="{height:.1f}" fill="{colour}"/>'
    return [shape, text(x + BAR / 2 - 1, y - 3, f"{value:.3g}", anchor="middle", size=9)]
