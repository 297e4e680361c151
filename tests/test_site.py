"""The documentation site: every page of docs/ once in its navigation, and the pages' diagrams."""

from __future__ import annotations

import configparser
import re
import runpy
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SITE = runpy.run_path(str(ROOT / "docs" / "site" / "navigation.py"))
DRAW = runpy.run_path(str(ROOT / "docs" / "site" / "diagrams.py"))
STATES = """stateDiagram-v2
    state "NewReplica" as New
    [*] --> New
    New --> On
    On --> On
"""
CHART = """flowchart TB
    ours["kafka08 brokers"]
    old[clients, unmodified] --> ours
    ours <-- "replication" --> theirs
    old -- at first --> theirs[0.8.2.2]
"""
# As Graphviz writes it.
SVG = b"""<?xml version="1.0"?>
<svg width="9pt" xmlns="http://www.w3.org/2000/svg">
<g id="graph0" class="graph"><title>G</title><polygon fill="transparent" points="0,0"/>
<!-- a --><g id="node1" class="node"><title>a</title><path fill="none" stroke="black" d="M1"/>
<text font-family="Times,serif">a</text></g></g></svg>
"""


def test_every_page_is_in_the_navigation_once() -> None:
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    names = {str(path.relative_to(ROOT).with_suffix("")) for path in found}
    listed = Counter(SITE["pages"]())
    assert {name: number for name, number in listed.items() if number != 1} == {}
    assert set(listed) == names, "docs/site/navigation.py"


def test_readers_come_before_the_reference() -> None:
    sections = list(SITE["SECTIONS"])
    readers = ["Python developers", "Operators", "Data engineers", "Reference"]
    assert [name for name in sections if name in readers] == readers
    first = [SITE["SECTIONS"][name][0] for name in readers[:3]]
    assert first == ["docs/guide-python", "docs/guide-operator", "docs/guide-data"]


def test_a_directory_lists_the_pages_below_it(tmp_path: Path) -> None:
    directory = tmp_path / "docs" / "adr"
    directory.mkdir(parents=True)
    for name in ("README", "0002-b", "0001-a"):
        (directory / f"{name}.md").touch()
    assert SITE["below"]("docs/adr/", tmp_path) == ["docs/adr/0001-a", "docs/adr/0002-b"]
    text = SITE["toctrees"]("docs/adr/README", tmp_path)
    assert text == "\n\n```{toctree}\n:hidden:\n\n/docs/adr/0001-a\n/docs/adr/0002-b\n```\n"


@pytest.mark.parametrize("page", ["docs/operator", "docs/adr/0001-schemas", "CHANGELOG"])
def test_other_pages_stay_as_they_are(page: str) -> None:
    assert SITE["toctrees"](page) == ""


def test_the_start_page_lists_each_section() -> None:
    text = SITE["toctrees"]("README")
    assert all(f":caption: {section}\n" in text for section in SITE["SECTIONS"])
    assert "\n/docs/adr/README\n" in text


def test_the_quick_start_does_not_install_the_packages_of_the_site() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    users = [name for name, text in setup["options.extras_require"].items() if "sphinx" in text]
    assert users == ["docs"]
    assert "sphinx" not in setup["options"]["install_requires"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    targets = [line.partition(":")[0] for line in makefile if "$(SETUP_DOCS)" in line]
    assert targets == ["$(SETUP_DOCS)", "integration", "docs"]


# --- diagrams


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (STATES, "start to NewReplica; NewReplica to On; On to itself"),
        (
            CHART,
            "clients, unmodified to kafka08 brokers, 0.8.2.2 (at first);"
            " kafka08 brokers to and from 0.8.2.2 (replication)",
        ),
    ],
)
def test_a_diagram_is_told_in_words(text: str, words: str) -> None:
    assert DRAW["described"](DRAW["parse"](text)) == f"Diagram with arrows from {words}."


def test_what_graphviz_is_told() -> None:
    lines = DRAW["dot"](DRAW["parse"](CHART)).splitlines()
    assert '"ours" [label="kafka08 brokers", width=1.98]' in lines
    assert '"old" -> "ours" [label=""]' in lines
    assert '"old" -> "theirs" [label="  at first  "]' in lines
    assert '"ours" -> "theirs" [label="  replication  ", dir=both, constraint=false]' in lines
    assert lines[-1] == "}"
    start = next(line for line in DRAW["dot"](DRAW["parse"](STATES)).splitlines() if "[*]" in line)
    assert "shape=circle" in start and 'label=""' in start


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no kind of diagram that is drawn: "),
        ("sequenceDiagram\nA->>B: hi", "no kind of diagram that is drawn: sequenceDiagram"),
        ("flowchart TB\n  a --> b --> c", "not understood: a --> b --> c"),
        ("flowchart TB\n  a -.-> b", "not understood: a -.-> b"),
        ("stateDiagram-v2\n  note left of A", "not understood: note left of A"),
    ],
)
def test_what_is_not_drawn_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        DRAW["parse"](text)


def test_a_picture_has_the_colours_of_the_text_and_no_ids() -> None:
    asked: list[str] = []
    found = DRAW["picture"](STATES, lambda source: asked.append(source) or SVG)
    assert asked == [DRAW["dot"](DRAW["parse"](STATES))]
    (svg,) = ET.fromstring(found)
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == DRAW["described"](DRAW["parse"](STATES))
    tags = [str(each.tag).rpartition("}")[2] for each in svg.iter()]
    assert tags == ["svg", "g", "g", "path", "text"]
    assert not [each for each in svg.iter() if each.get("id") or each.get("class")]
    _, _, _, path, text = svg.iter()
    assert (path.get("fill"), path.get("stroke")) == ("none", "currentColor")
    assert (text.get("fill"), text.get("font-family")) == ("currentColor", "inherit")


def test_every_diagram_of_the_pages_can_be_read() -> None:
    pages = [ROOT / f"{name}.md" for name in SITE["pages"]()]
    sources = [page.read_text(encoding="utf-8") for page in pages]
    blocks = re.compile(r"^```mermaid\n(.*?)^```", re.MULTILINE | re.DOTALL)
    found = [DRAW["parse"](text) for source in sources for text in blocks.findall(source)]
    assert len(found) >= 7
    assert all(diagram.arrows for diagram in found)
