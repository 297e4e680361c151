"""The effects of adding and of deleting a rule, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafka08.console.access.sentences import (
    allows,
    covers,
    denies,
    resource_text,
    sentence,
    who,
)
from kafka08.security.acls import (
    ALLOWED_BY,
    Binding,
    Operation,
    Permission,
    Resource,
    ResourceType,
)

OPEN = "allow.everyone.if.no.acl.found"
_BROKERS = (
    "Brokers need ClusterAction: those that are not super users (super.users) and have no rule "
    "that allows it are refused by the others, and replicate nothing"
)


def of_adding(new: Binding, rules: Sequence[Binding], opened: bool | None) -> list[str]:
    """``opened``: what brokers have for OPEN, None if that is not known. ``rules``: all there
    are."""
    return list(_adding(new, rules, opened))


def of_deleting(old: Binding, rules: Sequence[Binding], opened: bool | None) -> list[str]:
    """As ``of_adding``; ``old`` is one of the rules."""
    return list(_deleting(old, [each for each in rules if each != old], opened))


def _adding(new: Binding, rules: Sequence[Binding], opened: bool | None) -> Iterator[str]:
    resource, acl = new
    yield sentence(new)
    if new in rules:
        yield "This rule is there already: nothing changes"
        return
    if acl.permission is Permission.ALLOW:
        for each in rules:
            if denies(each, new):
                yield f"It has no effect while another rule denies it: {sentence(each)}"
            elif allows(each, new):
                yield f"Another rule allows it already: {sentence(each)}"
        yield from _implied(acl.operation)
    else:
        yield "This denies it also where another rule allows it. Super users are not held by it"
        if resource.type is ResourceType.CLUSTER and _is_of_brokers(acl.operation):
            yield _BROKERS
    if not any(covers(each, resource) for each, _ in rules):
        yield from _first(resource, opened)


def _implied(operation: Operation) -> Iterator[str]:
    for implied in (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS):
        if operation not in (implied, Operation.ALL) and operation in ALLOWED_BY[implied]:
            yield f"It allows {implied.label} too"


def _first(resource: Resource, opened: bool | None) -> Iterator[str]:
    begin = f"It is the first rule for {resource_text(resource)}"
    if opened is False:
        yield f"{begin}: until now super users alone may use that"
        return
    where = "" if opened else f"where brokers have {OPEN}=true, "
    yield (
        f"{begin}: {where}everybody may use that until now, and from then on what no rule allows "
        "is refused"
    )
    if resource.type is ResourceType.CLUSTER:
        yield _BROKERS


def _deleting(old: Binding, left: Sequence[Binding], opened: bool | None) -> Iterator[str]:
    resource, acl = old
    yield f"This rule goes: {sentence(old)}"
    if acl.permission is Permission.ALLOW:
        still = [each for each in left if allows(each, old)]
        for each in still:
            yield f"It stays allowed by another rule: {sentence(each)}"
        if not still:
            yield f"{who(acl.principal)} loses what no other rule allows"
            if resource.type is ResourceType.CLUSTER and _is_of_brokers(acl.operation):
                yield _BROKERS
    else:
        freed = [
            each
            for each in left
            if denies(old, each) and not any(denies(other, each) for other in left)
        ]
        for each in freed:
            yield f"Then this rule has an effect again: {sentence(each)}"
        if not freed:
            yield "The other rules then decide about that"
    if not any(covers(each, resource) for each, _ in left):
        yield _last(resource, opened)


def _last(resource: Resource, opened: bool | None) -> str:
    begin = f"It is the last rule for {resource_text(resource)}"
    if opened is None:
        return (
            f"{begin}: then super users alone may use that, or everybody where brokers have "
            f"{OPEN}=true"
        )
    if opened:
        return f"{begin}: then everybody may use that, as {OPEN} is true"
    return f"{begin}: then super users alone may use that"


def _is_of_brokers(operation: Operation) -> bool:
    return operation in (Operation.ALL, Operation.CLUSTER_ACTION)
