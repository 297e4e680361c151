from __future__ import annotations

import pytest

from integration.harness import port_range


@pytest.mark.parametrize(
    ("worker", "expected"),
    [("gw0", (20900, 20999)), ("gw1", (21000, 21099)), ("gw12", (22100, 22199))],
)
def test_processes_side_by_side_have_ports_of_their_own(
    worker: str, expected: tuple[int, int]
) -> None:
    assert port_range("20900-20999", worker) == expected
