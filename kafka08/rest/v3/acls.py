"""Access rules by API v3, which brokers with an authorizer keep; others refuse with status 400.

A rule has no id: its URL is the search that finds it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TypeVar
from urllib.parse import urlencode

from kafka08.client import acls
from kafka08.rest.calls import Call, Fields, RestAnswer, Route, Row
from kafka08.rest.cluster import Cluster
from kafka08.rest.errors import plain
from kafka08.rest.v3.admin import CLUSTER, AdminV3, Links
from kafka08.security.acl_filters import PatternFilter, ResourceFilter, RuleFilter
from kafka08.security.acls import (
    RULE_FIELDS,
    Acl,
    Binding,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
    rule_words,
)
from kafka08.security.users import ADMIN

_ANY = "ANY"
# A deletion has to name these, so that one without a filter does not take every rule.
_NEEDED = ("resource_type", "pattern_type", "operation", "permission")

E = TypeVar("E", bound=IntEnum)


class AclsV3:
    """``topics``: the handlers that know the cluster's id."""

    def __init__(self, cluster: Cluster, topics: AdminV3) -> None:
        self._cluster = cluster
        self._route = topics.route

    def routes(self) -> list[Route]:
        route, rule = self._route, f"{CLUSTER}/acls"
        return [
            route("GET", rule, "acls.list", self._search),
            route("POST", rule, "acls.create", self._create, ADMIN),
            route("DELETE", rule, "acls.delete", self._delete, ADMIN),
            route("POST", f"{rule}:batch", "acls.create.batch", self._create_batch, ADMIN),
        ]

    def _search(self, call: Call, links: Links) -> RestAnswer:
        asked = {name: call.request.args[name] for name in RULE_FIELDS if name in call.request.args}
        resources, rules = _filters(asked)
        with self._cluster.admin() as admin:
            found = acls.describe(admin.call, resources, rules)
        rows = [_shown(links, (resource, acl)) for resource, of in found for acl in of]
        own = f"{links.own}?{urlencode(asked)}" if asked else links.own
        return links.collection("KafkaAclList", rows, own)

    def _create(self, call: Call, links: Links) -> RestAnswer:
        binding = _binding(call.fields(*RULE_FIELDS))
        with self._cluster.admin() as admin:
            acls.create_all(admin.call, [binding])
        return RestAnswer(status=201, headers={"Location": _url(links, binding)})

    def _create_batch(self, call: Call, links: Links) -> RestAnswer:
        """Others than a rule that is refused may have been added."""
        bindings = [_binding(each) for each in call.fields("data").objects("data", *RULE_FIELDS)]
        with self._cluster.admin() as admin:
            acls.create_all(admin.call, bindings)
        return RestAnswer(status=201)

    def _delete(self, call: Call, links: Links) -> RestAnswer:
        asked = call.request.args.to_dict()
        for name in _NEEDED:
            if not asked.get(name):
                raise plain(400, f"{name} has to be given; {_ANY} stands for all.")
        for name, given in call.request.args.lists():
            if name not in RULE_FIELDS:
                raise plain(400, f"{name} is not a part of an access rule.")
            if len(given) > 1:
                raise plain(400, f"{name} is given more than once.")
        filters = _filters(asked)
        with self._cluster.admin() as admin:
            gone = acls.delete(admin.call, [filters])
        return RestAnswer({"data": [_shown(links, binding) for binding in gone]})


def _filters(asked: Mapping[str, str]) -> tuple[ResourceFilter, RuleFilter]:
    """Those of a query. A part that is not in it, or is ANY, takes all. Raises RestError 400."""
    resources = ResourceFilter(
        _filtered(asked, "resource_type", ResourceType),
        asked.get("resource_name") or None,
        _filtered(asked, "pattern_type", PatternFilter) or PatternFilter.ANY,
    )
    rules = RuleFilter(
        asked.get("principal") or None,
        asked.get("host") or None,
        _filtered(asked, "operation", Operation),
        _filtered(asked, "permission", Permission),
    )
    return resources, rules


def _filtered(asked: Mapping[str, str], name: str, kind: type[E]) -> E | None:
    word = asked.get(name, "").upper()
    if word in ("", _ANY):
        return None
    if word not in kind.__members__:
        names = ", ".join(dict.fromkeys([_ANY, *kind.__members__]))
        raise plain(400, f"{name} has value {word} which is not one of {names}")
    return kind[word]


def _binding(fields: Fields) -> Binding:
    """The rule of a body. Raises RestError 422."""
    resource = Resource(
        _member(fields, "resource_type", ResourceType),
        fields.needed_text("resource_name"),
        _member(fields, "pattern_type", PatternType),
    )
    permission = _member(fields, "permission", Permission)
    operation = _member(fields, "operation", Operation)
    principal, host = fields.needed_text("principal"), fields.needed_text("host")
    return resource, Acl(principal, permission, operation, host)


def _member(fields: Fields, name: str, kind: type[E]) -> E:
    word = fields.needed_text(name)
    if word not in kind.__members__:
        fields.wrong(name, f"is not one of {', '.join(kind.__members__)}")
    return kind[word]


def _url(links: Links, binding: Binding) -> str:
    return f"{links.of('acls')}?{urlencode(rule_words(binding))}"


def _shown(links: Links, binding: Binding) -> Row:
    return {
        "kind": "KafkaAcl",
        "metadata": {"self": _url(links, binding)},
        "cluster_id": links.cluster_id,
        **rule_words(binding),
    }
