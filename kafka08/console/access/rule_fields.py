"""An access rule as fields of a form or of a link, in Kafka's words. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from enum import IntEnum
from typing import TypeVar

from kafka08.console.forms import FieldError
from kafka08.errors import AdminOperationError
from kafka08.security.acl_nodes import check_name
from kafka08.security.acls import (
    CLUSTER_NAME,
    SUPPORTED,
    WILDCARD,
    Acl,
    Binding,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)

_USER = "User"
E = TypeVar("E", bound=IntEnum)


def options(kind: type[E]) -> list[tuple[str, str]]:
    """Values and texts of the members: TOPIC, Topic."""
    return [(each.name, str(each.label)) for each in kind]  # type: ignore[attr-defined]


def member(fields: Mapping[str, str], name: str, kind: type[E]) -> E:
    """Raises FieldError."""
    word = fields.get(name, "")
    if word not in kind.__members__:
        raise FieldError(name, f"{word!r} is not one of {', '.join(kind.__members__)}")
    return kind[word]


def stored_rule(fields: Mapping[str, str]) -> Binding:
    """A rule as it is named by a link, whatever brokers make of it. Raises FieldError."""
    resource = Resource(
        member(fields, "resource_type", ResourceType),
        fields.get("resource_name", ""),
        member(fields, "pattern_type", PatternType),
    )
    permission = member(fields, "permission", Permission)
    operation = member(fields, "operation", Operation)
    return resource, Acl(
        fields.get("principal", ""), permission, operation, fields.get("host", WILDCARD)
    )


def new_rule(fields: Mapping[str, str]) -> Binding:
    """A rule that somebody wrote, and that brokers can act on. Raises FieldError."""
    texts = {name: text.strip() for name, text in fields.items()}
    resource, acl = stored_rule(texts)
    resource = _checked_resource(resource)
    supported = (*SUPPORTED[resource.type], Operation.ALL)
    if acl.operation not in supported:
        names = ", ".join(each.label for each in supported)
        raise FieldError("operation", f"{resource.type.label} has {names}")
    kind, _, name = acl.principal.partition(":")
    if kind != _USER or not name:
        raise FieldError("principal", f"{acl.principal!r} is not like User:ann, or User:* for all")
    return resource, acl._replace(host=_host(acl.host))


def _checked_resource(resource: Resource) -> Resource:
    name = resource.name
    if resource.type is ResourceType.CLUSTER:
        if name not in ("", WILDCARD, CLUSTER_NAME):
            raise FieldError("resource_name", f"the only cluster is {CLUSTER_NAME}")
        if resource.pattern is not PatternType.LITERAL:
            raise FieldError("pattern_type", "the cluster is named literally")
        return resource._replace(name=CLUSTER_NAME)
    if resource.pattern is PatternType.PREFIXED and name == WILDCARD:
        raise FieldError("resource_name", "* stands for all names in a literal pattern alone")
    try:
        check_name(name)
    except AdminOperationError as error:
        raise FieldError("resource_name", str(error)) from None
    return resource


def _host(text: str) -> str:
    """As brokers compare it: there are no host names and no ranges."""
    if text in ("", WILDCARD):
        return WILDCARD
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise FieldError("host", f"{text!r} is not an address, or * for all") from None
