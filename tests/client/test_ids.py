"""Ids of groups and clients, which become names of nodes and metrics."""

from __future__ import annotations

import pytest

from kafka08.client.ids import check_id
from kafka08.errors import ConfigError


@pytest.mark.parametrize("value", [None, "", "group-1", "a.B_c-9"])
def test_legal_ids(value: str | None) -> None:
    check_id("group.id", value)


@pytest.mark.parametrize("value", ["a/b", "a b", "ä", "a\n", "a:b"])
def test_illegal_ids_are_named(value: str) -> None:
    with pytest.raises(ConfigError, match=r"group\.id has value") as caught:
        check_id("group.id", value)
    assert value in str(caught.value)
