"""The page of access rules, and the forms that add and delete one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode

from werkzeug.exceptions import Conflict, NotFound
from werkzeug.wrappers import Response

from kafka08.client import acls as wire
from kafka08.client.requests import Call
from kafka08.console.access import effects
from kafka08.console.access.asking import Gap, asked, changing, needed
from kafka08.console.access.rights import PrincipalRight, rights
from kafka08.console.access.rule_fields import member, new_rule, options, stored_rule
from kafka08.console.access.sentences import covers, sentence
from kafka08.console.brokers.asked_settings import asked_settings
from kafka08.console.forms import Problem
from kafka08.console.pages.cluster import state_of
from kafka08.console.pages.tables import MOST_ROWS, Column, fields, table
from kafka08.console.site import Visit
from kafka08.errors import KafkaError
from kafka08.security.acl_filters import ALL_ACLS, PatternFilter, ResourceFilter, RuleFilter
from kafka08.security.acls import (
    EVERYONE,
    RULE_FIELDS,
    Binding,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
    rule_words,
)

_WHAT = "access rules"
_EVERYTHING = ResourceFilter(None, None, PatternFilter.ANY)
_COLUMNS = (
    Column("resource_type", "Resource", lambda row: row.words["resource_type"]),
    Column("pattern_type", "Pattern", lambda row: row.words["pattern_type"]),
    Column("resource_name", "Name", lambda row: row.words["resource_name"]),
    Column("principal", "Principal", lambda row: row.words["principal"]),
    Column("permission", "Allow or deny", lambda row: row.words["permission"]),
    Column("operation", "Operation", lambda row: row.words["operation"]),
    Column("host", "From host", lambda row: row.words["host"], hint="* is every address"),
)


class RuleRow(NamedTuple):
    binding: Binding

    @property
    def words(self) -> dict[str, str]:
        return rule_words(self.binding)

    @property
    def sentence(self) -> str:
        return sentence(self.binding)

    @property
    def query(self) -> str:
        """Names the rule in a link."""
        return urlencode(self.words)


class RuleSearch(NamedTuple):
    """The subject of a page. ``is_exact``: ``principal`` is a whole one, for which the rules
    of everybody hold too. ``covering``: those that hold for a resource of the name."""

    type: ResourceType | None
    name: str
    covering: bool
    principal: str
    operation: Operation | None

    @property
    def is_exact(self) -> bool:
        return all(self.principal.partition(":"))

    def is_about(self, resource: Resource) -> bool:
        if self.type not in (None, resource.type):
            return False
        if self.name and self.covering:
            return covers(resource, Resource(resource.type, self.name))
        return self.name in resource.name

    def takes(self, binding: Binding) -> bool:
        resource, acl = binding
        if self.is_exact:
            is_of = acl.principal in (self.principal, EVERYONE)
        else:
            is_of = self.principal.lower() in acl.principal.lower()
        return is_of and self.operation in (None, acl.operation) and self.is_about(resource)


def acls(visit: Visit) -> Response:
    """``?resource_type=``, ``?resource_name=``, with ``?covering=1`` the rules that hold for
    exactly that name, ``?principal=``, a part of one or a whole one, ``?operation=``."""
    search = _search(visit)
    found = asked(visit, _WHAT, _all)
    rules = [] if isinstance(found, Gap) else found
    gap = found if isinstance(found, Gap) else None
    rows = table(visit, map(RuleRow, filter(search.takes, rules)), _COLUMNS, most=MOST_ROWS)
    held = None
    if search.is_exact and gap is None:
        held = rights(search.principal, [each for each in rules if search.is_about(each[0])])
    data = {
        "is_served": gap is None,
        "reason": gap and gap.kind,
        "acls": [fields(row, _COLUMNS) for row in rows.rows],
        "more": rows.more,
        "total": len(rules),
        "rights": None if held is None else [_right_data(each) for each in held],
    }
    return visit.answer(
        "acls.html",
        data,
        gap=gap,
        operations=[("", "all"), *options(Operation)],
        originals=_originals(visit),
        rights=held,
        rows=rows.rows,
        search=search,
        sort=visit.request.args.get("sort", ""),
        table=rows,
        types=[("", "all"), *options(ResourceType)],
    )


def _search(visit: Visit) -> RuleSearch:
    """Raises FieldError."""
    given = visit.request.args
    kind, operation = given.get("resource_type", ""), given.get("operation", "")
    return RuleSearch(
        member(given, "resource_type", ResourceType) if kind else None,
        given.get("resource_name", "").strip(),
        bool(given.get("covering")),
        given.get("principal", "").strip(),
        member(given, "operation", Operation) if operation else None,
    )


def _all(call: Call) -> list[Binding]:
    found = wire.describe(call, _EVERYTHING, ALL_ACLS)
    return sorted((resource, acl) for resource, of in found for acl in of)


def _originals(visit: Visit) -> list[int]:
    """The brokers that are up and check no rules."""
    return [each.id for each in state_of(visit).live if not each.serves_later_apis]


def _right_data(right: PrincipalRight) -> dict[str, object]:
    resource = right.resource
    return {
        "permission": right.permission.name,
        "resource_type": resource.type.name,
        "resource_name": resource.name,
        "pattern_type": resource.pattern.name,
        "host": right.host,
        "operations": [each.name for each in right.operations],
        "except": [each.name for each in right.excepted],
        "sentence": right.sentence,
    }


def _opened(visit: Visit) -> bool | None:
    """Whether brokers let everybody use what has no rules; None if they do not say it."""
    broker_id = state_of(visit).asked
    if broker_id is None:
        return None
    call = partial(visit.site.browser.call_broker, broker_id)
    told = asked_settings(call, broker_id, effects.OPEN).get(effects.OPEN)
    return None if told is None else told == "true"


def add_form(visit: Visit) -> Response:
    """With all fields: what the rule will do, and the button that adds it."""
    given = visit.request.values
    values = {name: given.get(name, "") for name in RULE_FIELDS}
    values["host"] = values["host"] or "*"
    told: Iterable[str] = ()
    binding = None
    problem = visit.problem
    if "check" in given or problem:
        try:
            binding = new_rule(values)
            told = effects.of_adding(binding, needed(visit, _WHAT, _all), _opened(visit))
        except (ValueError, KafkaError) as error:
            problem = problem or Problem.of(error)
    return visit.render(
        "add_acl.html",
        status=problem.status if problem else 200,
        effects=told,
        operations=options(Operation),
        patterns=options(PatternType),
        permissions=sorted(options(Permission)),
        problem=problem,
        rule=binding and rule_words(binding),
        types=options(ResourceType),
        values=values,
    )


def add(visit: Visit) -> Response:
    binding = new_rule(visit.request.form)
    resource, acl = binding
    with changing(visit, _WHAT) as call:
        if binding in _all(call):
            return visit.done("/acls", f"The rule was there already: {sentence(binding)}.")
        wire.create(call, resource, [acl])
    visit.record("add access rule", str(resource), None, rule_words(binding))
    return visit.done("/acls", f"A rule was added: {sentence(binding)}.")


def delete_form(visit: Visit) -> Response:
    try:
        binding = stored_rule(visit.request.values)
    except ValueError:
        raise NotFound("No access rule is named.") from None
    rules = needed(visit, _WHAT, _all)
    if binding not in rules:
        raise NotFound("There is no such access rule any more.")
    return visit.render(
        "delete_acl.html",
        effects=effects.of_deleting(binding, rules, _opened(visit)),
        rule=rule_words(binding),
    )


def delete(visit: Visit) -> Response:
    binding = resource, acl = stored_rule(visit.request.form)
    one = ResourceFilter(resource.type, resource.name, PatternFilter[resource.pattern.name])
    rule = RuleFilter(acl.principal, acl.host, acl.operation, acl.permission)
    with changing(visit, _WHAT) as call:
        gone = wire.delete(call, [(one, rule)])
    if not gone:
        raise Conflict("There is no such access rule any more.")
    visit.record("delete access rule", str(resource), rule_words(binding), None)
    return visit.done("/acls", f"A rule was deleted: {sentence(binding)}.")
