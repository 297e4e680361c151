"""Filters of access rules take resources and rules."""

from __future__ import annotations

import pytest

from kafka08.security.acl_filters import ALL_ACLS, PatternFilter, ResourceFilter, RuleFilter
from kafka08.security.acls import Acl, Operation, PatternType, Permission, Resource, ResourceType

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
T, STAR = Resource(TOPIC, "t1"), Resource(TOPIC, "*")
PREFIX, LIKE = Resource(TOPIC, "t", PatternType.PREFIXED), Resource(TOPIC, "t")
G = Resource(GROUP, "t1")
ALL = (T, STAR, PREFIX, LIKE, G)


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        (ResourceFilter(None, None, PatternFilter.ANY), ALL),
        (ResourceFilter(None, None, PatternFilter.MATCH), ALL),
        (ResourceFilter(None, None, PatternFilter.LITERAL), (T, STAR, LIKE, G)),
        (ResourceFilter(TOPIC, None, PatternFilter.PREFIXED), (PREFIX,)),
        (ResourceFilter(TOPIC, "t", PatternFilter.ANY), (PREFIX, LIKE)),
        (ResourceFilter(TOPIC, "t1", PatternFilter.MATCH), (T, STAR, PREFIX)),
        (ResourceFilter(None, "t1", PatternFilter.LITERAL), (T, G)),
        (ResourceFilter(TOPIC, "t1", PatternFilter.LITERAL), (T,)),
    ],
)
def test_resources(wanted: ResourceFilter, taken: tuple[Resource, ...]) -> None:
    assert tuple(filter(wanted.takes, ALL)) == taken
    if wanted.resource is not None:
        assert (wanted.resource,) == taken


def test_only_a_name_of_one_type_and_pattern_is_one_resource() -> None:
    assert ResourceFilter(TOPIC, "t", PatternFilter.PREFIXED).resource == PREFIX
    assert ResourceFilter(TOPIC, "t", PatternFilter.MATCH).resource is None
    assert ResourceFilter(TOPIC, None, PatternFilter.LITERAL).resource is None
    assert ResourceFilter(None, "t", PatternFilter.LITERAL).resource is None


def test_rules() -> None:
    acl = Acl("User:a", Permission.ALLOW, Operation.READ, "h")
    same = RuleFilter("User:a", "h", Operation.READ, Permission.ALLOW)
    assert ALL_ACLS.takes(acl) and same.takes(acl)
    others = (
        same._replace(principal="User:b"),
        same._replace(host="*"),
        same._replace(operation=Operation.ALL),
        same._replace(permission=Permission.DENY),
    )
    assert not any(each.takes(acl) for each in others)
