"""The descriptions of v1 and v2: single bodies."""

from __future__ import annotations

from typing import Any

from kafka08.rest.openapi.operations import OPERATIONS
from tests.rest.world import RestWorld


def test_each_description_is_of_a_route() -> None:
    names = {route.name for route in RestWorld().application.routes}
    assert names >= OPERATIONS.keys()
    assert all(name in OPERATIONS or name.startswith("v3.") for name in names)


def test_a_record_for_a_partition_does_not_name_one() -> None:
    def fields(name: str) -> set[str]:
        body: Any = OPERATIONS[name].body
        return set(body["properties"]["records"]["items"]["properties"])

    assert fields("topic.produce") == {"key", "value", "partition"}
    assert fields("partition.produce") == {"key", "value"}
