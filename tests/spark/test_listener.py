"""The listener commits a query's progress as offsets of a group."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from kafka08.common import TopicPartition
from kafka08.errors import ConfigError
from kafka08.spark.listener import GroupOffsetsListener, offsets_behind_latest

PROPERTIES = {"zookeeper.connect": "nowhere:1"}


def progress(*ends: str | None, name: str = "q") -> Any:
    sources = [SimpleNamespace(endOffset=end) for end in ends]
    return SimpleNamespace(progress=SimpleNamespace(name=name, sources=sources))


def test_ends_of_all_sources_are_stored() -> None:
    seen: list[Any] = []
    listener = GroupOffsetsListener(PROPERTIES, "g", commit=seen.append)
    listener.onQueryProgress(
        progress('{"t": {"0": 5}}', '{"u": {"1": 7}}', '{"id": 3}', "null", "9")
    )
    listener.onQueryProgress(progress(None))
    assert seen == [{TopicPartition("t", 0): 5, TopicPartition("u", 1): 7}]


def test_other_queries_are_left_out() -> None:
    seen: list[Any] = []
    listener = GroupOffsetsListener(PROPERTIES, "g", names=["mine"], commit=seen.append)
    listener.onQueryProgress(progress('{"t": {"0": 5}}', name="other"))
    listener.onQueryProgress(progress('{"t": {"0": 6}}', name="mine"))
    assert seen == [{TopicPartition("t", 0): 6}]


def test_a_failure_does_not_reach_the_query() -> None:
    def fail(offsets: Any) -> None:
        raise OSError("down")

    GroupOffsetsListener(PROPERTIES, "g", commit=fail).onQueryProgress(progress('{"t": {"0": 5}}'))


def test_a_group_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"group\.id"):
        GroupOffsetsListener(PROPERTIES)


def test_offsets_behind_latest() -> None:
    source = SimpleNamespace(
        endOffset='{"t": {"0": 5, "1": 7, "2": 9}}',
        latestOffset='{"t": {"0": 15, "1": 7, "2": 8, "3": 100}}',
    )
    assert offsets_behind_latest(source) == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "10",
        "avgOffsetsBehindLatest": str(10 / 3),
    }
    for end, latest in (("5", "6"), (None, None), ('{"t": {"0": 5}}', None)):
        assert offsets_behind_latest(SimpleNamespace(endOffset=end, latestOffset=latest)) == {}
