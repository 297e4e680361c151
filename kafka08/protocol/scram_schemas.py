"""SCRAM users: APIs 50 and 51 of later releases.

Numbers of mechanisms are the places in ``MECHANISMS``.
"""

from typing import Annotated, NamedTuple

from kafka08.protocol.types import (
    Compact,
    Doc,
    Nullable,
    Since,
    Strict,
    blob,
    int8,
    int16,
    int32,
    nullable_string,
    strict_string,
    string,
    tagged_fields,
)

MECHANISMS = ("", "SCRAM-SHA-256", "SCRAM-SHA-512")

_MECHANISM = Doc("1 SCRAM-SHA-256, 2 SCRAM-SHA-512")
# The header of these responses ends with tagged fields, and every structure too.
_IN_HEADER = Doc("of the header")


# 50 DescribeUserScramCredentials


class DescribedUserName(NamedTuple):
    name: Annotated[strict_string, Compact()]
    tags: tagged_fields = None


class DescribeUserScramCredentialsRequest(NamedTuple):
    """Which users can log in with SCRAM, and how. Keys are not shown."""

    users: Annotated[
        list[DescribedUserName] | None, Compact(), Nullable(), Doc("null or empty = all")
    ]
    tags: tagged_fields = None


class ScramCredentialInfo(NamedTuple):
    mechanism: Annotated[int8, _MECHANISM]
    iterations: int32
    tags: tagged_fields = None


class DescribedScramUser(NamedTuple):
    user: Annotated[string, Compact()]
    error: Annotated[int16, Doc("91 without credentials, 92 if named twice")]
    message: Annotated[nullable_string, Compact()]
    credentials: Annotated[list[ScramCredentialInfo], Compact()]
    tags: tagged_fields = None


class DescribeUserScramCredentialsResponse(NamedTuple):
    throttle_time_ms: int32
    error: int16
    message: Annotated[nullable_string, Compact()]
    users: Annotated[list[DescribedScramUser], Compact()]
    tags: tagged_fields = None
    header_tags: Annotated[tagged_fields, Since(0, before="throttle_time_ms"), _IN_HEADER] = None


# 51 AlterUserScramCredentials


class ScramDeletion(NamedTuple):
    name: Annotated[strict_string, Compact()]
    mechanism: Annotated[int8, _MECHANISM]
    tags: tagged_fields = None


class ScramUpsertion(NamedTuple):
    """A new password, or a first one."""

    name: Annotated[strict_string, Compact()]
    mechanism: Annotated[int8, _MECHANISM]
    iterations: int32
    salt: Annotated[blob, Compact()]
    salted_password: Annotated[blob, Compact(), Doc("from which both keys follow")]
    tags: tagged_fields = None

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.name!r}, {self.mechanism}, {self.iterations} iterations)"


class AlterUserScramCredentialsRequest(NamedTuple):
    """Delete and set credentials of users: for each user all of it or none."""

    deletions: Annotated[list[ScramDeletion], Compact(), Strict()]
    upsertions: Annotated[list[ScramUpsertion], Compact(), Strict()]
    tags: tagged_fields = None


class AlteredScramUser(NamedTuple):
    user: Annotated[string, Compact()]
    error: Annotated[int16, Doc("91 without the credential, 92 if altered twice, 93 if unfit")]
    message: Annotated[nullable_string, Compact()]
    tags: tagged_fields = None


class AlterUserScramCredentialsResponse(NamedTuple):
    throttle_time_ms: int32
    users: Annotated[list[AlteredScramUser], Compact()]
    tags: tagged_fields = None
    header_tags: Annotated[tagged_fields, Since(0, before="throttle_time_ms"), _IN_HEADER] = None
