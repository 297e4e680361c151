"""APIs 29 to 31 of later releases: access rules without ZooKeeper.

Any broker answers, by reading and writing the nodes in ZooKeeper, as kafka-acls does there. Brokers
follow a change within a second, this one too. ``no_acls`` answers without an authorizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from functools import partial
from typing import Any, TypeVar

from kafka08.errors import NO_ERROR
from kafka08.protocol import acl_schemas as a
from kafka08.protocol.schemas import RequestHeader
from kafka08.security.acl_filters import ALL_ACLS, PatternFilter, ResourceFilter, RuleFilter
from kafka08.security.acl_nodes import check_name
from kafka08.security.acl_store import AclStore, read_or_refuse
from kafka08.security.acls import (
    CLUSTER,
    DENY_ALL,
    Acl,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from kafka08.server.apis import no_acls
from kafka08.server.apis.outcomes import InvalidRequestError, Outcome, tried
from zk.znodes import MalformedNodeError

_ANY = 1

E = TypeVar("E", bound=IntEnum)


def _member(kind: type[E], number: int) -> E:
    try:
        return kind(number)
    except ValueError:
        raise InvalidRequestError(f"{number} is not a known {kind.__name__}") from None


def _member_or_any(kind: type[E], number: int) -> E | None:
    return None if number == _ANY else _member(kind, number)


def _filters(asked: Any) -> tuple[ResourceFilter, RuleFilter]:
    """The filters of a request. Raises InvalidRequestError."""
    resources = ResourceFilter(
        _member_or_any(ResourceType, asked.resource_type),
        asked.resource_name,
        _member(PatternFilter, asked.pattern),
    )
    acls = RuleFilter(
        asked.principal,
        asked.host,
        _member_or_any(Operation, asked.operation),
        _member_or_any(Permission, asked.permission),
    )
    return resources, acls


def _binding(new: a.NewAcl) -> tuple[Resource, Acl]:
    """Raises AdminOperationError for what could not be read again."""
    resource = Resource(
        _member(ResourceType, new.resource_type),
        new.resource_name,
        _member(PatternType, new.pattern),
    )
    check_name(resource.name)
    if resource.type is ResourceType.CLUSTER and resource != CLUSTER:
        raise InvalidRequestError(f"The only name of a cluster is {CLUSTER.name}, literally")
    if not all(new.principal.partition(":")):
        raise InvalidRequestError(
            f"{new.principal!r} is not a principal of the form principalType:principalName"
        )
    if not new.host:
        raise InvalidRequestError("The host of a rule is empty")
    permission, operation = _member(Permission, new.permission), _member(Operation, new.operation)
    return resource, Acl(new.principal, permission, operation, new.host)


Bindings = dict[Resource, list[tuple[int, Acl]]]
"""The new rules of each resource, with their numbers in the request."""


def _bind(number: int, new: a.NewAcl, bindings: Bindings) -> None:
    resource, acl = _binding(new)
    bindings.setdefault(resource, []).append((number, acl))


def _taken(store: AclStore, resources: ResourceFilter) -> Iterator[Resource]:
    if resources.resource is not None:
        return iter([resources.resource])
    return filter(resources.takes, store.resources())


class DescribeAclsApi(no_acls.DescribeAclsApi):
    """Log how a resource with unreadable rules is treated: refused to all."""

    def __init__(self, store: AclStore) -> None:
        self._store = store

    def handle(
        self, header: RequestHeader, request: a.DescribeAclsRequest
    ) -> a.DescribeAclsResponse:
        found: list[a.DescribedAcls] = []
        outcome = tried("access rules", lambda: found.extend(_described(self._store, request)))
        return a.DescribeAclsResponse(0, *outcome, [] if outcome.code else found)


def _described(store: AclStore, request: a.DescribeAclsRequest) -> Iterator[a.DescribedAcls]:
    resources, wanted = _filters(request)
    for resource in _taken(store, resources):
        found = read_or_refuse(store, resource)
        acls = DENY_ALL if isinstance(found, MalformedNodeError) else found
        told = [
            a.DescribedAcl(acl.principal, acl.host, acl.operation, acl.permission)
            for acl in filter(wanted.takes, acls)
        ]
        if told:
            yield a.DescribedAcls(resource.type, resource.name, told, resource.pattern)


class CreateAclsApi(no_acls.CreateAclsApi):
    """The rules of one resource are added by one write: all of them or none."""

    def __init__(self, store: AclStore) -> None:
        self._store = store

    def handle(self, header: RequestHeader, request: a.CreateAclsRequest) -> a.CreateAclsResponse:
        outcomes: list[Outcome] = []
        bindings: Bindings = {}
        for number, new in enumerate(request.creations):
            outcomes.append(tried("an access rule", partial(_bind, number, new, bindings)))
        for resource, numbered in bindings.items():
            acls = [acl for _, acl in numbered]
            outcome = tried(str(resource), partial(self._store.add, resource, acls))
            for number, _ in numbered:
                outcomes[number] = outcome
        return no_acls.created(outcomes)


class DeleteAclsApi(no_acls.DeleteAclsApi):
    """A filter that takes all rules of a resource removes those that cannot be read, too."""

    def __init__(self, store: AclStore) -> None:
        self._store = store

    def handle(self, header: RequestHeader, request: a.DeleteAclsRequest) -> a.DeleteAclsResponse:
        results = []
        for asked in request.filters:
            gone: list[a.DeletedAcl] = []
            outcome = tried("access rules", partial(_delete, self._store, asked, gone))
            results.append((outcome, gone))
        return no_acls.deleted(results)


def _delete(store: AclStore, asked: a.AclFilter, gone: list[a.DeletedAcl]) -> None:
    """Delete what a filter takes, and add it to ``gone``. Raises what the store raises."""
    resources, taken = _filters(asked)
    for resource in list(_taken(store, resources)):
        found = read_or_refuse(store, resource)
        if isinstance(found, MalformedNodeError):
            if taken != ALL_ACLS:
                raise found
            store.remove_all(resource)
            continue
        acls = list(filter(taken.takes, found))
        if acls:
            store.remove(resource, acls)
        gone.extend(
            a.DeletedAcl(
                NO_ERROR, None, resource.type, resource.name,
                acl.principal, acl.host, acl.operation, acl.permission, resource.pattern,
            )
            for acl in acls
        )  # fmt: skip


def handlers(store: AclStore) -> list[Any]:
    return [DescribeAclsApi(store), CreateAclsApi(store), DeleteAclsApi(store)]
