"""Against what the original listed for the same keys."""

from __future__ import annotations

import pytest

from tools.logs.scala_order import hash_map_order


@pytest.mark.parametrize(
    "numbers",
    [
        [3, 0, 4, 1, 2],
        [3, 10, 7, 0, 4, 11, 8, 12, 1, 5, 9, 2, 13, 6],  # above 12 the table has grown
    ],
    ids=len,
)
def test_as_the_original_lists_them(numbers: list[int]) -> None:
    put = [f"/tmp/logs-g/{number}.log" for number in range(len(numbers))]
    assert hash_map_order(put) == [f"/tmp/logs-g/{number}.log" for number in numbers]


def test_nothing_is_lost() -> None:
    put = [str(number) for number in range(1000)]
    assert sorted(hash_map_order(put)) == sorted(put)
    assert hash_map_order([]) == []
