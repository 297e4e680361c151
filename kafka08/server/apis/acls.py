"""APIs 29 to 31 of later releases: access rules without ZooKeeper.

Any broker answers, by reading and writing the nodes in ZooKeeper, as kafka-acls does there. Brokers
follow a change within a second, this one too. ``no_acls`` answers without an authorizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import partial
from typing import TypeVar

from kafka08.errors import NO_ERROR
from kafka08.protocol import acl_schemas as a
from kafka08.protocol.schemas import Message
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
from kafka08.server.apis.no_acls import CREATE, DELETE, DESCRIBE, AclApi
from kafka08.server.apis.outcomes import AdminOutcome, InvalidRequestError, tried
from kafka08.server.requests.dispatch import Handler
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


def _filters(asked: a.AclFilter) -> tuple[ResourceFilter, RuleFilter]:
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


def _describe(store: AclStore, request: a.DescribeAclsRequest) -> a.DescribeAclsResponse:
    found: list[a.DescribedAcls] = []
    outcome = tried("access rules", lambda: found.extend(_described(store, request)))
    return a.DescribeAclsResponse(0, *outcome, [] if outcome.code else found)


def _described(store: AclStore, request: a.DescribeAclsRequest) -> Iterator[a.DescribedAcls]:
    """A resource with unreadable rules is shown as it is treated: refused to all."""
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


def _create(store: AclStore, request: a.CreateAclsRequest) -> a.CreateAclsResponse:
    """The rules of one resource are added by one write: all of them or none."""
    outcomes: list[AdminOutcome] = []
    bindings: Bindings = {}
    for number, new in enumerate(request.creations):
        outcomes.append(tried("an access rule", partial(_bind, number, new, bindings)))
    for resource, numbered in bindings.items():
        acls = [acl for _, acl in numbered]
        outcome = tried(str(resource), partial(store.add, resource, acls))
        for number, _ in numbered:
            outcomes[number] = outcome
    return a.CreateAclsResponse(0, [a.CreatedAcl(*outcome) for outcome in outcomes])


def _delete(store: AclStore, request: a.DeleteAclsRequest) -> a.DeleteAclsResponse:
    results = []
    for asked in request.filters:
        gone: list[a.DeletedAcl] = []
        outcome = tried("access rules", partial(_delete_taken, store, asked, gone))
        results.append(a.DeletedAcls(*outcome, gone))
    return a.DeleteAclsResponse(0, results)


def _delete_taken(store: AclStore, asked: a.AclFilter, gone: list[a.DeletedAcl]) -> None:
    """Delete what a filter takes, and add it to ``gone``; if it takes all rules of a resource, also
    those that cannot be read. Raises what the store raises."""
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


def handlers(store: AclStore) -> list[Handler]:
    serving: dict[int, Callable[[AclStore, Message], Message]] = {
        DESCRIBE: _describe,
        CREATE: _create,
        DELETE: _delete,
    }
    return [AclApi(key, partial(serve, store)) for key, serve in serving.items()]
