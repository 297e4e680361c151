"""The state diagrams of the documentation show the transitions in the tables of the code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka08.controller.states import PARTITION_PREDECESSORS, REPLICA_PREDECESSORS
from kafka08.server.coordinator.states import PREDECESSORS

DOCS = Path(__file__).parents[2] / "docs"


def drawn(page: str) -> list[set[tuple[str, str]]]:
    """The arrows of each diagram, by the states' names."""
    diagrams = []
    source = (DOCS / page).read_text()
    for text in re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", source, re.DOTALL):
        names = {short: name for name, short in re.findall(r'state "(\w+)" as (\w+)', text)}
        arrows = re.findall(r"^ *(\w+) --> (\w+)$", text, re.MULTILINE)
        diagrams.append({(names.get(start, start), names.get(end, end)) for start, end in arrows})
    return diagrams


@pytest.mark.parametrize(
    ("number", "table"), [(0, PARTITION_PREDECESSORS), (1, REPLICA_PREDECESSORS)]
)
def test_diagrams_and_tables_agree(number: int, table: Mapping[Any, Sequence[Any]]) -> None:
    legal = {(start.value, end.value) for end, starts in table.items() for start in starts}
    assert drawn("architecture.md")[number] == legal


def test_the_states_of_groups() -> None:
    legal = {(start.value, end.value) for end, starts in PREDECESSORS.items() for start in starts}
    assert drawn("groups.md") == [legal]
