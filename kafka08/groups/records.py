"""The records of ``__consumer_offsets``: committed offsets and groups, in all stored versions.

0.8.2.2 writes keys and values of version 0 and stops reading a partition at any other. Offsets are
therefore always written in version 0. Keys of version 0 and 1 belong to offsets, those of version 2
to groups. A value of null deletes.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kafka08.errors import ProtocolError
from kafka08.protocol.codec import decode, encode
from kafka08.protocol.schemas import OffsetKey, OffsetValue
from kafka08.protocol.types import (
    Since,
    Until,
    blob,
    int16,
    int32,
    int64,
    nullable_string,
    strict_string,
)

_OFFSET_VERSION = 0
_VERSION_0 = bytes(2)
_GROUP_KEY = 2
_GROUP_VERSION = 3
_LAST_OFFSET_VERSION = 3  # that later releases write
_UNKNOWN = -1


class GroupPartition(NamedTuple):
    """The key of a commit (kafka.server.GroupTopicPartition)."""

    group: str
    topic: str
    partition: int


class Committed(NamedTuple):
    """A committed position: next offset to read, metadata, ms since the epoch."""

    offset: int
    metadata: str
    timestamp: int


class MemberRecord(NamedTuple):
    member_id: strict_string
    client_id: strict_string
    client_host: strict_string
    session_timeout_ms: int32
    subscription: blob
    assignment: blob
    instance_id: Annotated[nullable_string, Since(3, before="client_id")] = None
    rebalance_timeout_ms: Annotated[int32, Since(1, before="session_timeout_ms")] = _UNKNOWN


class GroupRecord(NamedTuple):
    """A group as stored; ``since_ms`` is the time of its last change of state, -1 if unknown."""

    protocol_type: strict_string
    generation: int32
    protocol: nullable_string
    leader: nullable_string
    members: list[MemberRecord]
    since_ms: Annotated[int64, Since(2, before="members")] = _UNKNOWN


class _Version(NamedTuple):
    version: int16


class _GroupKey(NamedTuple):
    version: int16
    group: strict_string


class _GroupValue(NamedTuple):
    version: int16
    group: GroupRecord


class _OffsetValue(NamedTuple):
    version: int16
    offset: int64
    metadata: strict_string
    timestamp: int64
    leader_epoch: Annotated[int32, Since(3, before="metadata")] = _UNKNOWN
    expires: Annotated[int64, Since(1), Until(1)] = _UNKNOWN


def encode_key(key: GroupPartition) -> bytes:
    """The stored key of a commit."""
    return encode(OffsetKey(_OFFSET_VERSION, *key))


def encode_value(value: Committed) -> bytes:
    """The stored value of a commit."""
    return encode(OffsetValue(_OFFSET_VERSION, *value))


def encode_group_key(group: str) -> bytes:
    """The stored key of a group."""
    return encode(_GroupKey(_GROUP_KEY, group))


def encode_group(record: GroupRecord) -> bytes:
    """The stored value of a group."""
    return encode(_GroupValue(_GROUP_VERSION, record), _GROUP_VERSION)


def decode_key(data: bytes) -> GroupPartition | str:
    """The key of an offset, or the id of a group. ProtocolError for any other record."""
    version = _version(data)
    if version == _GROUP_KEY:
        group: str = decode(_GroupKey, memoryview(data))[0].group
        return group
    if version not in (0, 1):
        raise ProtocolError(f"a key of version {version}")
    key, _ = decode(OffsetKey, memoryview(data))
    return GroupPartition(key.group, key.topic, key.partition)


def decode_value(data: bytes) -> Committed:
    """The value of an offset. ProtocolError for unknown versions."""
    version = _version(data)
    if not 0 <= version <= _LAST_OFFSET_VERSION:
        raise ProtocolError(f"an offset of version {version}")
    value, _ = decode(_OffsetValue, memoryview(data), version=version)
    return Committed(value.offset, value.metadata, value.timestamp)


def decode_group(data: bytes) -> GroupRecord:
    """The value of a group. ProtocolError for unknown versions."""
    version = _version(data)
    if not 0 <= version <= _GROUP_VERSION:
        raise ProtocolError(f"a group of version {version}")
    record = decode(_GroupValue, memoryview(data), version=version)[0].group
    if version:
        return record
    members = [
        member._replace(rebalance_timeout_ms=member.session_timeout_ms) for member in record.members
    ]
    return record._replace(members=members)


def is_original(key: bytes, value: bytes | None) -> bool:
    """Whether 0.8.2.2 knows the versions. It stops reading a partition at any other record."""
    return key[:2] == _VERSION_0 and (value is None or value[:2] == _VERSION_0)


def is_offset_key(key: bytes) -> bool:
    """Whether this is a key that ``encode_key`` has made."""
    return key[:2] == _VERSION_0


def _version(data: bytes) -> int:
    return decode(_Version, memoryview(data))[0].version
