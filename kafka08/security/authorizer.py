"""Decides whether a request is allowed, by super users and the rules that it was given last.

Mirrors kafka.security.authorizer.AclAuthorizer. Decisions are remembered until a rule changes, so
that a request costs a lookup for each of its topics. Does not know ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kafka08.security.acls import Acl, AclIndex, Operation, Resource, ResourceType, decide
from kafka08.security.audit import AuditLog

# Remembered decisions; clients choose names.
_MAX_DECISIONS = 20_000


class Requester(NamedTuple):
    """The sender of a request, and its address without the port."""

    principal: str
    host: str


_Asked = tuple[Requester, Operation, ResourceType, str]


class AclAuthorizer:
    """``changes`` counts the changes of rules. Without any rules everything is refused to all but
    super users, or nothing to anybody if ``allow_everyone``."""

    def __init__(self, super_users: Collection[str], allow_everyone: bool, audit: AuditLog) -> None:
        self.changes = 0
        self._super_users = frozenset(super_users)
        self._allow_everyone = allow_everyone
        self._audit = audit
        self._index = AclIndex()
        self._decisions: dict[_Asked, bool] = {}

    def replace(self, index: AclIndex) -> None:
        """From now on these are all rules."""
        self._index = index
        self._forget()

    def put(self, resource: Resource, acls: Sequence[Acl]) -> None:
        """The rules of one resource have changed."""
        self._index.put(resource, acls)
        self._forget()

    def _forget(self) -> None:
        self._decisions.clear()
        self.changes += 1

    def is_allowed(
        self, requester: Requester, operation: Operation, kind: ResourceType, name: str
    ) -> bool:
        """The decision, which is not logged."""
        asked = (requester, operation, kind, name)
        known = self._decisions.get(asked)
        if known is not None:
            return known
        if len(self._decisions) >= _MAX_DECISIONS:
            self._decisions.clear()
        allowed = self._decide(requester, operation, kind, name)
        self._decisions[asked] = allowed
        return allowed

    def authorize(
        self,
        requester: Requester,
        operation: Operation,
        kind: ResourceType,
        name: str,
        request: str,
    ) -> bool:
        """The decision, which goes into the audit log; ``request`` is the name of the API."""
        allowed = self.is_allowed(requester, operation, kind, name)
        if not allowed or self._audit.tells_allowed:
            self._audit.note(allowed, *requester, operation, Resource(kind, name), request)
        return allowed

    def is_allowed_on_any(
        self, requester: Requester, operation: Operation, kind: ResourceType
    ) -> bool:
        """Whether there is something of the type on which the operation is allowed. Not logged."""
        if requester.principal in self._super_users:
            return True
        found = self._index.allows_any(kind, *requester, operation)
        return self._allow_everyone if found is None else found

    def _decide(
        self, requester: Requester, operation: Operation, kind: ResourceType, name: str
    ) -> bool:
        if requester.principal in self._super_users:
            return True
        found = decide(self._index.matching(kind, name), *requester, operation)
        return self._allow_everyone if found is None else found
