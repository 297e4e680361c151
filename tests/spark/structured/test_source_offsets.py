"""The offsets in a query's checkpoint: their order, and the time of reading among them."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import ConfigError
from kafka08.spark.structured.source_offsets import TIME, from_json, read_time, to_json
from tests.spark.cluster import T


@pytest.mark.scenario("spark-24")
def test_json_has_one_order() -> None:
    offsets = {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, TopicPartition("a", 0): 3}
    found = to_json(offsets)
    assert list(found) == ["a", "b"]
    assert list(found["b"]) == ["9", "10"]
    assert from_json(found) == offsets
    with pytest.raises(ConfigError, match="checkpoint"):
        from_json({"t": 3})  # type: ignore[dict-item]


def test_without_a_time_they_are_those_of_sparks_own_source() -> None:
    assert to_json({T: 3}) == {"t": {"0": 3}}
    assert read_time({"t": {"0": 3}}) is None


def test_the_time_is_among_them() -> None:
    found = to_json({T: 3}, 1_700_000_000_000)
    assert read_time(found) == 1_700_000_000_000
    assert from_json(found) == {T: 3}


@pytest.mark.parametrize("offsets", [{"t": 3}, {"t": {"x": 1}}, {"t": {"0": None}}, ["t"]])
def test_what_is_no_offsets(offsets: Any) -> None:
    with pytest.raises(ConfigError, match="checkpoint"):
        from_json(offsets)


@pytest.mark.parametrize("time", [3, {}, {"0": "x"}, {"1": 5}])
def test_what_is_no_time(time: Any) -> None:
    with pytest.raises(ConfigError, match="checkpoint"):
        read_time({TIME: time})
