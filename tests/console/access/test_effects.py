"""kafka08.console.access.effects."""

from __future__ import annotations

from kafka08.console.access.effects import OPEN, of_adding, of_deleting
from kafka08.security.acls import (
    CLUSTER,
    EVERYONE,
    Operation,
    PatternType,
    Resource,
    ResourceType,
)
from tests.console.access.served import TOPIC, allow, deny

OTHER = TOPIC, allow("User:bob", Operation.WRITE)
RULE = TOPIC, allow()
PREFIX = Resource(ResourceType.TOPIC, "ord", PatternType.PREFIXED)


def test_an_allow_where_there_are_rules() -> None:
    assert of_adding(RULE, [OTHER], False) == [
        "User:ann may read topic orders",
        "It allows Describe too",
    ]
    settings = TOPIC, allow(operation=Operation.ALTER_CONFIGS)
    assert of_adding(settings, [OTHER], False)[1:] == ["It allows DescribeConfigs too"]
    assert of_adding((TOPIC, allow(operation=Operation.ALL)), [OTHER], False)[1:] == []


def test_the_first_rule_of_a_resource_by_what_brokers_have() -> None:
    [_, _, told] = of_adding(RULE, [], False)
    assert told == "It is the first rule for topic orders: until now super users alone may use that"
    [_, _, told] = of_adding(RULE, [], True)
    assert told == (
        "It is the first rule for topic orders: everybody may use that until now, and from then on "
        "what no rule allows is refused"
    )
    [_, _, told] = of_adding(RULE, [], None)
    assert "where brokers have allow.everyone.if.no.acl.found=true, everybody may use" in told


def test_a_resource_that_a_wider_rule_covers_has_rules() -> None:
    assert not any("first" in each for each in of_adding(RULE, [(PREFIX, deny())], True))
    group = Resource(ResourceType.GROUP, "orders")
    assert any("first" in each for each in of_adding(RULE, [(group, allow())], True))


def test_other_rules_that_decide_already() -> None:
    denied = of_adding(RULE, [(PREFIX, deny(EVERYONE, Operation.ALL))], False)
    assert denied[1] == (
        "It has no effect while another rule denies it: "
        "Nobody may do everything with topics that begin with ord"
    )
    allowed = of_adding(RULE, [(PREFIX, allow())], False)
    assert allowed[1] == (
        "Another rule allows it already: User:ann may read topics that begin with ord"
    )
    assert of_adding(RULE, [RULE], False)[1:] == ["This rule is there already: nothing changes"]


def test_a_deny() -> None:
    told = of_adding((TOPIC, deny()), [RULE], False)
    assert told == [
        "User:ann may not read topic orders",
        "This denies it also where another rule allows it. Super users are not held by it",
    ]


def test_rules_of_the_cluster_that_stop_brokers() -> None:
    action, describe = Operation.CLUSTER_ACTION, Operation.DESCRIBE
    present = CLUSTER, allow("User:broker", action)
    for operation in (action, Operation.ALL):
        denied = of_adding((CLUSTER, deny(EVERYONE, operation)), [present], False)
        assert denied[-1].startswith("Brokers need ClusterAction")
    assert of_adding((CLUSTER, deny(operation=describe)), [present], False)[-1][:4] == "This"
    assert of_adding((CLUSTER, allow(operation=describe)), [], True)[-1].startswith("Brokers need")
    assert of_adding((CLUSTER, allow(operation=describe)), [], False)[-1].startswith("It is the")
    other = CLUSTER, allow(operation=describe)
    assert of_deleting(present, [present, other], False)[-1].startswith("Brokers need")


def test_deleting_an_allow() -> None:
    assert of_deleting(RULE, [RULE, OTHER], False) == [
        "This rule goes: User:ann may read topic orders",
        "User:ann loses what no other rule allows",
    ]
    wider = PREFIX, allow()
    assert of_deleting(RULE, [RULE, wider], False)[1:] == [
        "It stays allowed by another rule: User:ann may read topics that begin with ord"
    ]


def test_deleting_the_last_rule_by_what_brokers_have() -> None:
    def last(opened: bool | None) -> str:
        return of_deleting(RULE, [RULE], opened)[-1]

    begin = "It is the last rule for topic orders: then"
    assert last(False) == f"{begin} super users alone may use that"
    assert last(True) == f"{begin} everybody may use that, as {OPEN} is true"
    assert last(None).endswith(f"or everybody where brokers have {OPEN}=true")


def test_deleting_a_deny() -> None:
    old = TOPIC, deny()
    assert of_deleting(old, [old, RULE], False)[1:] == [
        "Then this rule has an effect again: User:ann may read topic orders"
    ]
    wider = PREFIX, deny()
    assert of_deleting(old, [old, RULE, wider], False)[1:] == [
        "The other rules then decide about that"
    ]
