"""The parts that all drawings have in common."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape


def document(width: int, height: int, title: str, x: int, y: int, parts: Iterable[str]) -> str:
    """A white page with its title, which begins at (x, y), and the parts."""
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        text(x, y, title, size=14),
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def text(
    x: float, y: float, shown: str, *, anchor: str = "start", size: int = 11, colour: str = ""
) -> str:
    style = f'text-anchor="{anchor}" font-size="{size}"'
    fill = f' fill="{colour}"' if colour else ""
    return f'<text{fill} x="{x:.1f}" y="{y:.1f}" {style}>{escape(shown)}</text>'
