"""The descriptions of v3: single parameters."""

from __future__ import annotations

from kafka08.rest.openapi.operations_v3 import OPERATIONS_V3
from tests.rest.world import RestWorld


def test_each_description_is_of_a_route() -> None:
    names = {route.name for route in RestWorld().application.routes}
    assert {name for name in names if name.startswith("v3.")} == OPERATIONS_V3.keys()


def test_a_deletion_of_rules_needs_what_a_search_does_not() -> None:
    def needed(name: str) -> list[str]:
        return [each.name for each in OPERATIONS_V3[name].query if each.needed]

    assert needed("v3.acls.list") == []
    expected = ["resource_type", "pattern_type", "operation", "permission"]
    assert needed("v3.acls.delete") == expected
    filters = {each.name: each.schema for each in OPERATIONS_V3["v3.acls.list"].query}
    assert filters["pattern_type"] == {
        "type": "string",
        "enum": ["ANY", "MATCH", "LITERAL", "PREFIXED"],
    }
