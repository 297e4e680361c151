"""Reads the state diagrams of the documentation."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
SITE = runpy.run_path(str(DOCS / "site" / "diagrams.py"))


def drawn(page: str) -> list[set[tuple[str, str]]]:
    """The arrows of each diagram, by the states' names, without the one from the start."""
    source = (DOCS / page).read_text(encoding="utf-8")
    texts = re.findall(r"^```mermaid\n(stateDiagram-v2\n.*?)^```", source, re.DOTALL | re.MULTILINE)
    found = []
    for diagram in map(SITE["parse"], texts):
        arrows = [arrow for arrow in diagram.arrows if arrow.start != SITE["START"]]
        found.append({(diagram.names[arrow.start], diagram.names[arrow.end]) for arrow in arrows})
    return found
