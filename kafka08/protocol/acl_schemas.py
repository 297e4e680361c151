"""Access rules: APIs 29 to 31 of later releases, for all their versions.

``principal`` and ``host`` are as in the rules in ZooKeeper. Numbers of types, patterns, operations
and permissions are those of ``kafka08.security.acls``; in filters 1 is any, and the pattern 2 is
every pattern that matches the name.
"""

from typing import Annotated, NamedTuple

from kafka08.protocol.types import (
    Doc,
    Since,
    Strict,
    int8,
    int16,
    int32,
    nullable_string,
    strict_string,
    string,
)

LITERAL = 3

_TYPE = Doc("2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user")
_FILTERED_TYPE = Doc("1 any, otherwise the type")
_PATTERN = Doc("3 literal, 4 prefixed; version 0: literal")
_FILTERED_PATTERN = Doc("1 any, 2 what matches the name, 3 literal, 4 prefixed")
_OPERATION = Doc("2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, ...")
_PERMISSION = Doc("2 deny, 3 allow")
_ANY_IF_NULL = Doc("null = any")
_OR_ANY = Doc("1 = any")


# 29 DescribeAcls


class AclFilter(NamedTuple):
    resource_type: Annotated[int8, _FILTERED_TYPE]
    resource_name: Annotated[nullable_string, _ANY_IF_NULL]
    principal: Annotated[nullable_string, _ANY_IF_NULL]
    host: Annotated[nullable_string, _ANY_IF_NULL]
    operation: Annotated[int8, _OR_ANY]
    permission: Annotated[int8, _OR_ANY]
    pattern: Annotated[int8, Since(1, before="principal"), _FILTERED_PATTERN] = LITERAL


class DescribeAclsRequest(AclFilter):
    """Read access rules."""


class DescribedAcl(NamedTuple):
    principal: string
    host: string
    operation: Annotated[int8, _OPERATION]
    permission: Annotated[int8, _PERMISSION]


class DescribedAcls(NamedTuple):
    resource_type: Annotated[int8, _TYPE]
    resource_name: string
    acls: list[DescribedAcl]
    pattern: Annotated[int8, Since(1, before="acls"), _PATTERN] = LITERAL


class DescribeAclsResponse(NamedTuple):
    throttle_time_ms: int32
    error: Annotated[int16, Doc("54 without an authorizer")]
    message: nullable_string
    resources: list[DescribedAcls]


# 30 CreateAcls


class NewAcl(NamedTuple):
    resource_type: Annotated[int8, _TYPE]
    resource_name: strict_string
    principal: strict_string
    host: strict_string
    operation: Annotated[int8, _OPERATION]
    permission: Annotated[int8, _PERMISSION]
    pattern: Annotated[int8, Since(1, before="principal"), _PATTERN] = LITERAL


class CreateAclsRequest(NamedTuple):
    """Add access rules."""

    creations: Annotated[list[NewAcl], Strict()]


class CreatedAcl(NamedTuple):
    error: Annotated[int16, Doc("54 without an authorizer")]
    message: nullable_string


class CreateAclsResponse(NamedTuple):
    throttle_time_ms: int32
    results: Annotated[list[CreatedAcl], Doc("in the order of the request")]


# 31 DeleteAcls


class DeleteAclsRequest(NamedTuple):
    """Delete the access rules that one of the filters takes."""

    filters: Annotated[list[AclFilter], Strict()]


class DeletedAcl(NamedTuple):
    error: int16
    message: nullable_string
    resource_type: Annotated[int8, _TYPE]
    resource_name: string
    principal: string
    host: string
    operation: Annotated[int8, _OPERATION]
    permission: Annotated[int8, _PERMISSION]
    pattern: Annotated[int8, Since(1, before="principal"), _PATTERN] = LITERAL


class DeletedAcls(NamedTuple):
    error: Annotated[int16, Doc("54 without an authorizer")]
    message: nullable_string
    acls: Annotated[list[DeletedAcl], Doc("those that were deleted for this filter first")]


class DeleteAclsResponse(NamedTuple):
    throttle_time_ms: int32
    results: Annotated[list[DeletedAcls], Doc("in the order of the filters")]
