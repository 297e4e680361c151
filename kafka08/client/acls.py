"""Access rules over the wire: brokers of later releases and of kafka08 with an authorizer.

Every function takes a call to one broker, and may raise what the call raises, and RemoteError for
what the broker refused, as with code 54 without an authorizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka08.client.admin import check
from kafka08.client.requests import Call
from kafka08.errors import LaterCode, ProtocolError
from kafka08.protocol import acl_schemas as a
from kafka08.security.acl_filters import ResourceFilter, RuleFilter
from kafka08.security.acls import (
    Acl,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)

_ANY = 1


def describe(
    call: Call, resources: ResourceFilter, acls: RuleFilter
) -> list[tuple[Resource, list[Acl]]]:
    """The rules that both filters take, by resource."""
    found = call(a.DescribeAclsRequest(*_wire(resources, acls)))
    _check(found.error, found.message)
    return [_read(resource) for resource in found.resources]


def create(call: Call, resource: Resource, acls: Iterable[Acl]) -> None:
    """Rules before one that is refused may have been added."""
    create_all(call, [(resource, acl) for acl in acls])


def create_all(call: Call, bindings: Iterable[tuple[Resource, Acl]]) -> None:
    """The same for rules of several resources. Others than one that is refused may have been
    added."""
    creations = [
        a.NewAcl(
            resource.type, resource.name,
            acl.principal, acl.host, acl.operation, acl.permission, resource.pattern,
        )
        for resource, acl in bindings
    ]  # fmt: skip
    for result in call(a.CreateAclsRequest(creations)).results:
        _check(*result)


def delete(
    call: Call, filters: Sequence[tuple[ResourceFilter, RuleFilter]]
) -> list[tuple[Resource, Acl]]:
    """Delete the rules that one of the filters takes, if there are any; those that were."""
    asked = [a.AclFilter(*_wire(*each)) for each in filters]
    gone: list[tuple[Resource, Acl]] = []
    for result in call(a.DeleteAclsRequest(asked)).results:
        _check(result.error, result.message)
        for acl in result.acls:
            _check(acl.error, acl.message)
            gone.append((_resource(acl), _acl(acl)))
    return gone


def _wire(
    resources: ResourceFilter, acls: RuleFilter
) -> tuple[int, str | None, str | None, str | None, int, int, int]:
    """The fields of both filters in the order of the schemas."""
    return (
        resources.type or _ANY,
        resources.name,
        acls.principal,
        acls.host,
        acls.operation or _ANY,
        acls.permission or _ANY,
        resources.pattern,
    )


def _read(found: a.DescribedAcls) -> tuple[Resource, list[Acl]]:
    """Raises ProtocolError, as below."""
    return _resource(found), [_acl(each) for each in found.acls]


def _resource(found: a.DescribedAcls | a.DeletedAcl) -> Resource:
    """Raises ProtocolError for numbers that are not known here."""
    try:
        kind, pattern = ResourceType(found.resource_type), PatternType(found.pattern)
    except ValueError as error:
        raise _later_release(error) from None
    return Resource(kind, found.resource_name, pattern)


def _acl(found: a.DescribedAcl | a.DeletedAcl) -> Acl:
    """Raises ProtocolError for numbers that are not known here."""
    try:
        permission, operation = Permission(found.permission), Operation(found.operation)
    except ValueError as error:
        raise _later_release(error) from None
    return Acl(found.principal, permission, operation, found.host)


def _later_release(error: ValueError) -> ProtocolError:
    return ProtocolError(f"The broker has access rules of a later release: {error}")


def _check(code: int, message: str | None) -> None:
    if code == LaterCode.CLUSTER_AUTHORIZATION_FAILED and not message:
        message = "Cluster authorization failed."
    check(code, message)
