"""Draws the diagrams of the pages, which are in mermaid's notation, as pictures in SVG.

Pages keep the notation, which code hosting sites draw. Two kinds of diagrams are known:

    stateDiagram-v2                   flowchart TB
    state "NewReplica" as New         ours["kafka08 brokers"]
    [*] --> New                       old --> ours
    New --> On                        ours <-- replication --> theirs[0.8.2.2 brokers]

Graphviz lays them out; pygraphviz brings it. A picture takes the colour of the text around it, so
that it is seen on light and on dark pages, and has a text for readers that see no picture.
"""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import NamedTuple

KINDS = ("stateDiagram-v2", "flowchart TB")
START = "[*]"
STATE = re.compile(r'state "([^"]+)" as (\w+)')
NODE = r'(\w+|\[\*\])(?:\["?([^"\]]+)"?\])?'
ALONE = re.compile(NODE)
ARROW = re.compile(rf'{NODE} (?:-->|(<?)-- "?([^"]+?)"? -->) {NODE}')
SVG = "http://www.w3.org/2000/svg"
INCHES_OF_A_LETTER = 0.105
POINT = "shape=circle, style=filled, fillcolor=black, width=0.18, height=0.18"
DRAW = """
import sys
from pygraphviz import AGraph
sys.stdout.buffer.write(AGraph(string=sys.stdin.read()).draw(format="svg", prog="dot"))
"""
PARTS = ("svg", "g", "path", "polygon", "ellipse", "text")


class Arrow(NamedTuple):
    start: str
    end: str
    label: str
    is_two_way: bool


class Diagram(NamedTuple):
    """``names``: what is shown for an id. ``arrows``: between ids."""

    names: dict[str, str]
    arrows: list[Arrow]


def parse(text: str) -> Diagram:
    """Raises ValueError, with the line, for anything that this module does not draw."""
    kind, *lines = text.strip().splitlines() or [""]
    if kind not in KINDS:
        raise ValueError(f"no kind of diagram that is drawn: {kind}")
    diagram = Diagram({}, [])
    for line in filter(None, map(str.strip, lines)):
        if state := STATE.fullmatch(line):
            diagram.names[state[2]] = state[1]
        elif arrow := ARROW.fullmatch(line):
            start, start_name, back, label, end, end_name = arrow.groups()
            _name(diagram, start, start_name)
            _name(diagram, end, end_name)
            diagram.arrows.append(Arrow(start, end, label or "", bool(back)))
        elif alone := ALONE.fullmatch(line):
            _name(diagram, *alone.groups())
        else:
            raise ValueError(f"not understood: {line}")
    return diagram


def _name(diagram: Diagram, key: str, name: str | None) -> None:
    """An id without a name is shown itself."""
    if name or key not in diagram.names:
        diagram.names[key] = name or ("start" if key == START else key)


def described(diagram: Diagram) -> str:
    """The arrows in words, by their start: 'A to B, C (label); B to and from D.'"""
    ends: dict[str, list[str]] = {}
    for arrow in diagram.arrows:
        end = "itself" if arrow.end == arrow.start else diagram.names[arrow.end]
        way = "and from " if arrow.is_two_way else ""
        label = f" ({arrow.label})" if arrow.label else ""
        ends.setdefault(diagram.names[arrow.start], []).append(f"{way}{end}{label}")
    found = [f"{start} to {', '.join(those)}" for start, those in ends.items()]
    return f"Diagram with arrows from {'; '.join(found)}."


def dot(diagram: Diagram) -> str:
    """The diagram in Graphviz's language. Boxes are as wide as their names have letters: fonts
    differ by machine."""
    lines = [
        "digraph { bgcolor=transparent; nodesep=0.4; ranksep=0.5",
        "node [shape=box, style=rounded, fixedsize=true, height=0.45, fontsize=13]",
        "edge [arrowsize=0.7, fontsize=12]",
    ]
    for key, name in diagram.names.items():
        shown = f'label="{name}", width={0.4 + INCHES_OF_A_LETTER * len(name):.2f}'
        if key == START:
            shown = f'{POINT}, label=""'
        lines.append(f'"{key}" [{shown}]')
    for arrow in diagram.arrows:
        way = ", dir=both, constraint=false" if arrow.is_two_way else ""  # side by side
        label = f"  {arrow.label}  " if arrow.label else ""
        lines.append(f'"{arrow.start}" -> "{arrow.end}" [label="{label}"{way}]')
    return "\n".join([*lines, "}"])


def drawn_by_graphviz(source: str) -> bytes:
    """By a process of its own: Graphviz writes about the fonts of the machine to standard error."""
    done = subprocess.run(
        [sys.executable, "-c", DRAW], input=source.encode(), capture_output=True, check=False
    )
    if done.returncode:
        raise ValueError(f"Graphviz cannot draw it: {done.stderr.decode()}")
    return done.stdout


def picture(text: str, draw: Callable[[str], bytes] = drawn_by_graphviz) -> str:
    """The HTML of a diagram: its picture, without ids, which would occur again on the same page."""
    diagram = parse(text)
    ET.register_namespace("", SVG)
    root = ET.fromstring(draw(dot(diagram)))
    for parent in list(root.iter()):
        for child in [child for child in parent if not _is_seen(child)]:
            parent.remove(child)
    for element in root.iter():
        for name in ("id", "class"):
            element.attrib.pop(name, None)
        for name in ("fill", "stroke"):
            if element.get(name) == "black":
                element.set(name, "currentColor")
        if element.tag == f"{{{SVG}}}text":
            element.attrib.update({"fill": "currentColor", "font-family": "inherit"})
    root.set("role", "img")
    root.set("aria-label", described(diagram))
    root.set("style", "max-width: 100%; height: auto")
    return f'<div class="diagram">{ET.tostring(root, encoding="unicode")}</div>'


def _is_seen(element: ET.Element) -> bool:
    """Not so are comments, titles of ids, and the ground behind a diagram."""
    name = str(element.tag).removeprefix(f"{{{SVG}}}")
    return name in PARTS and element.get("fill") != "transparent"
