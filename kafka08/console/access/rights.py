"""The rights of one principal, by all rules about it. Pure.

Super users may do everything, and ``allow.everyone.if.no.acl.found`` decides about what has no
rules: neither is in the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafka08.console.access.sentences import (
    denies,
    host_text,
    resource_text,
    verbs,
)
from kafka08.security.acls import EVERYONE, Acl, Binding, Operation, Permission, Resource


class PrincipalRight(NamedTuple):
    """The rights of a principal on a resource, or their denial, from a host. ``excepted``: the
    operations of an allow that a deny takes back completely."""

    resource: Resource
    permission: Permission
    host: str
    operations: tuple[Operation, ...]
    excepted: tuple[Operation, ...]

    @property
    def sentence(self) -> str:
        """Without a full stop."""
        where = f"{resource_text(self.resource)}{host_text(self.host)}"
        if self.permission is Permission.DENY:
            return f"May not {verbs(self.operations)} {where}"
        if not self.operations:
            return f"May not {verbs(self.excepted)} {where}, though a rule allows it: a deny holds"
        text = f"May {verbs(self.operations)} {where}"
        return f"{text}, but not {verbs(self.excepted)} it" if self.excepted else text


def rights(principal: str, bindings: Iterable[Binding]) -> list[PrincipalRight]:
    """By resource, what is denied first. Rules of ``User:*`` hold for the principal too."""
    about = [each for each in bindings if each[1].principal in (principal, EVERYONE)]
    found: dict[tuple[Resource, Permission, str], set[Operation]] = {}
    for resource, acl in about:
        found.setdefault((resource, acl.permission, acl.host), set()).add(acl.operation)
    made = [
        _right(*key, _without_implied(operations), principal, about)
        for key, operations in found.items()
    ]
    return sorted(made, key=lambda each: (*each.resource, each.permission, each.host))


def _without_implied(operations: set[Operation]) -> list[Operation]:
    """All that there is to say: All has every other one."""
    return [Operation.ALL] if Operation.ALL in operations else sorted(operations)


def _right(
    resource: Resource,
    permission: Permission,
    host: str,
    operations: list[Operation],
    principal: str,
    about: list[Binding],
) -> PrincipalRight:
    if permission is Permission.DENY:
        return PrincipalRight(resource, permission, host, tuple(operations), ())

    def is_denied(operation: Operation) -> bool:
        allowed = resource, Acl(principal, Permission.ALLOW, operation, host)
        return any(denies(each, allowed) for each in about)

    is_all = operations == [Operation.ALL] and not is_denied(Operation.ALL)
    taken = tuple(filter(is_denied, list(Operation) if is_all else operations))
    left = [each for each in operations if each not in taken]
    return PrincipalRight(resource, permission, host, tuple(left), taken)
