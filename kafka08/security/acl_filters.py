"""Which resources and rules a filter takes, as in AclBindingFilter of later releases."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from kafka08.security.acls import (
    WILDCARD,
    Acl,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)


class PatternFilter(IntEnum):
    """ANY takes the name as it is with both types of pattern, MATCH every pattern that the name
    matches."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class ResourceFilter(NamedTuple):
    """None takes all types, or all names."""

    type: ResourceType | None
    name: str | None
    pattern: PatternFilter

    @property
    def resource(self) -> Resource | None:
        """The one resource that it can take, if it is one."""
        if (
            self.type is None
            or self.name is None
            or self.pattern in (PatternFilter.ANY, PatternFilter.MATCH)
        ):
            return None
        return Resource(self.type, self.name, PatternType(self.pattern))

    def takes(self, resource: Resource) -> bool:
        if self.type not in (None, resource.type):
            return False
        is_of_both = self.pattern in (PatternFilter.ANY, PatternFilter.MATCH)
        if not is_of_both and self.pattern.name != resource.pattern.name:
            return False
        if self.name is None:
            return True
        if self.pattern is not PatternFilter.MATCH:
            return resource.name == self.name
        if resource.pattern is PatternType.PREFIXED:
            return self.name.startswith(resource.name)
        return resource.name in (self.name, WILDCARD)


class RuleFilter(NamedTuple):
    """None takes all."""

    principal: str | None = None
    host: str | None = None
    operation: Operation | None = None
    permission: Permission | None = None

    def takes(self, acl: Acl) -> bool:
        return (
            self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (None, acl.operation)
            and self.permission in (None, acl.permission)
        )


ALL_ACLS = RuleFilter()
