"""kafka08.console.access.rights."""

from __future__ import annotations

from kafka08.console.access.rights import rights
from kafka08.security.acls import (
    EVERYONE,
    Acl,
    Operation,
    PatternType,
    Resource,
    ResourceType,
)
from tests.console.access.served import ANN, TOPIC, allow, deny

ORDERS = Resource(ResourceType.TOPIC, "ord", PatternType.PREFIXED)


def told(*bindings: tuple[Resource, Acl]) -> list[str]:
    return [each.sentence for each in rights(ANN, bindings)]


def test_the_operations_of_a_resource_are_one_sentence() -> None:
    write = allow(operation=Operation.WRITE)
    describe = allow(operation=Operation.DESCRIBE)
    assert told((TOPIC, allow()), (TOPIC, write)) == ["May read and write topic orders"]
    assert told((TOPIC, allow()), (TOPIC, write), (TOPIC, describe)) == [
        "May read, write and describe topic orders"
    ]
    assert told((TOPIC, allow()), (TOPIC, allow(operation=Operation.ALL))) == [
        "May do everything with topic orders"
    ]


def test_rules_of_everybody_count_and_those_of_others_do_not() -> None:
    assert told((TOPIC, allow(EVERYONE)), (TOPIC, allow("User:bob", Operation.WRITE))) == [
        "May read topic orders"
    ]
    assert told((TOPIC, allow("User:bob"))) == []


def test_hosts_are_told_apart() -> None:
    assert told((TOPIC, allow(host="10.0.0.1")), (TOPIC, allow("User:ann", Operation.WRITE))) == [
        "May write topic orders",
        "May read topic orders from 10.0.0.1",
    ]


def test_what_is_denied_comes_first_and_is_no_right() -> None:
    assert told((TOPIC, allow()), (TOPIC, deny(EVERYONE))) == [
        "May not read topic orders",
        "May not read topic orders, though a rule allows it: a deny holds",
    ]
    assert told((TOPIC, allow()), (TOPIC, allow(operation=Operation.WRITE)), (ORDERS, deny())) == [
        "May not read topics that begin with ord",
        "May write topic orders, but not read it",
    ]


def test_a_deny_of_one_operation_takes_it_from_all() -> None:
    assert told((TOPIC, allow(operation=Operation.ALL)), (TOPIC, deny())) == [
        "May not read topic orders",
        "May do everything with topic orders, but not read it",
    ]
    everything = Operation.ALL
    assert told((TOPIC, allow(operation=everything)), (TOPIC, deny(operation=everything)))[1:] == [
        "May not do everything with topic orders, though a rule allows it: a deny holds"
    ]


def test_a_deny_of_one_host_takes_nothing_from_all_hosts() -> None:
    assert told((TOPIC, allow()), (TOPIC, deny(host="10.0.0.1"))) == [
        "May not read topic orders from 10.0.0.1",
        "May read topic orders",
    ]
