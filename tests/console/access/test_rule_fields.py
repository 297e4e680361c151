"""kafka08.console.access.rule_fields."""

from __future__ import annotations

import pytest

from kafka08.console.access.rule_fields import new_rule, options, stored_rule
from kafka08.console.forms import FieldError
from kafka08.security.acls import CLUSTER, Permission, rule_words
from tests.console.access.served import TOPIC, allow

FIELDS = rule_words((TOPIC, allow()))


def test_a_rule_in_kafkas_words() -> None:
    assert new_rule(FIELDS) == (TOPIC, allow())
    spaced = {**FIELDS, "resource_name": " orders ", "principal": " User:ann ", "host": ""}
    assert new_rule(spaced) == (TOPIC, allow())
    assert new_rule({**FIELDS, "host": "0:0::1"})[1].host == "::1"
    cluster = {**FIELDS, "resource_type": "CLUSTER", "operation": "CREATE"}
    for name in ("", "*", "kafka-cluster"):
        assert new_rule({**cluster, "resource_name": name})[0] == CLUSTER


@pytest.mark.parametrize(
    ("fields", "field", "text"),
    [
        ({"resource_type": "STREAM"}, "resource_type", "'STREAM' is not one of TOPIC, GROUP"),
        ({"resource_type": ""}, "resource_type", "'' is not one of"),
        ({"pattern_type": "MATCH"}, "pattern_type", "is not one of LITERAL, PREFIXED"),
        ({"permission": "MAYBE"}, "permission", "is not one of DENY, ALLOW"),
        ({"operation": "look"}, "operation", "is not one of ALL, READ"),
        ({"operation": "CLUSTER_ACTION"}, "operation", "Topic has Read, Write"),
        ({"resource_name": " "}, "resource_name", "'' cannot be stored"),
        ({"resource_name": "a/b"}, "resource_name", "'a/b' cannot be stored"),
        ({"resource_name": "*", "pattern_type": "PREFIXED"}, "resource_name", "literal"),
        ({"resource_type": "CLUSTER", "operation": "ALL"}, "resource_name", "kafka-cluster"),
        (
            {"resource_type": "CLUSTER", "resource_name": "", "pattern_type": "PREFIXED"},
            "pattern_type",
            "literally",
        ),
        ({"principal": "ann"}, "principal", "'ann' is not like User:ann"),
        ({"principal": "user:ann"}, "principal", "'user:ann' is not like"),
        ({"principal": "User:"}, "principal", "'User:' is not like"),
        ({"host": "b1.example"}, "host", "'b1.example' is not an address"),
        ({"host": "10.0.0.0/8"}, "host", "'10.0.0.0/8' is not an address"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, str], field: str, text: str) -> None:
    with pytest.raises(FieldError) as error:
        new_rule({**FIELDS, **fields})
    assert error.value.field == field
    assert text in error.value.text


def test_a_rule_that_is_there_is_named_whatever_it_is() -> None:
    words = {**FIELDS, "principal": "Group:x", "host": "b1.example"}
    resource, acl = stored_rule(words)
    assert rule_words((resource, acl)) == words


def test_options() -> None:
    assert options(Permission) == [("DENY", "Deny"), ("ALLOW", "Allow")]
