"""Reads the state diagrams of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def drawn(page: str) -> list[set[tuple[str, str]]]:
    """The arrows of each diagram, by the states' names."""
    diagrams = []
    source = (DOCS / page).read_text()
    for text in re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", source, re.DOTALL):
        names = {short: name for name, short in re.findall(r'state "(\w+)" as (\w+)', text)}
        arrows = re.findall(r"^ *(\w+) --> (\w+)$", text, re.MULTILINE)
        diagrams.append({(names.get(start, start), names.get(end, end)) for start, end in arrows})
    return diagrams
