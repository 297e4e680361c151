"""The state diagrams of the documentation show the transitions in the tables of the code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kafka08.controller.states import PARTITION_PREDECESSORS, REPLICA_PREDECESSORS
from tests.diagrams import drawn


@pytest.mark.parametrize(
    ("number", "table"), [(0, PARTITION_PREDECESSORS), (1, REPLICA_PREDECESSORS)]
)
def test_diagrams_and_tables_agree(number: int, table: Mapping[Any, Sequence[Any]]) -> None:
    legal = {(start.value, end.value) for end, starts in table.items() for start in starts}
    assert drawn("architecture.md")[number] == legal
