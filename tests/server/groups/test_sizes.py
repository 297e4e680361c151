"""Sizes by key, against a plain dict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.server.groups.sizes import Sizes


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 20))))
def test_sizes_are_those_of_a_dict(steps: list[tuple[bool, int, int]]) -> None:
    sizes: Sizes[int] = Sizes()
    table: dict[int, int] = {}
    for puts, key, size in steps:
        if puts:
            sizes.put(key, size)
            table[key] = size
        else:
            sizes.drop(key)
            table.pop(key, None)
        assert sizes.total == sum(table.values())
        assert [sizes[key] for key in range(5)] == [table.get(key, 0) for key in range(5)]
        if table:
            assert sizes.oldest == next(iter(table))
        else:
            with pytest.raises(KeyError):
                assert sizes.oldest
