"""The records of ``__consumer_offsets``: committed offsets and groups, in all stored versions.

0.8.2.2 writes keys and values of version 0 and stops reading a partition at any other. Offsets are
therefore always written in version 0. Keys of version 0 and 1 belong to offsets, those of version 2
to groups. A value of null deletes.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kafka08.errors import ProtocolError
from kafka08.protocol.codec import decode, encode
from kafka08.protocol.schemas import OffsetKey, OffsetValue
from kafka08.protocol.types import Records, int16, int32, int64, nullable_string, strict_string

_OFFSET_VERSION = 0
_GROUP_KEY = 2
_GROUP_VERSION = 3

blob = Annotated[bytes | memoryview, Records("bytes")]


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
    instance_id: nullable_string
    client_id: strict_string
    client_host: strict_string
    rebalance_timeout_ms: int32
    session_timeout_ms: int32
    subscription: blob
    assignment: blob


class GroupRecord(NamedTuple):
    """A group as stored; ``since_ms`` is the time of its last change of state, -1 if unknown."""

    protocol_type: strict_string
    generation: int32
    protocol: nullable_string
    leader: nullable_string
    since_ms: int64
    members: list[MemberRecord]


class _Version(NamedTuple):
    version: int16


class _GroupKey(NamedTuple):
    version: int16
    group: strict_string


class _GroupValue(NamedTuple):
    version: int16
    group: GroupRecord


# Layouts that are read but never written.


class _OffsetValueV1(NamedTuple):
    version: int16
    offset: int64
    metadata: strict_string
    timestamp: int64
    expires: int64


class _OffsetValueV3(NamedTuple):
    version: int16
    offset: int64
    leader_epoch: int32
    metadata: strict_string
    timestamp: int64


class _MemberV0(NamedTuple):
    member_id: strict_string
    client_id: strict_string
    client_host: strict_string
    session_timeout_ms: int32
    subscription: blob
    assignment: blob


class _MemberV1(NamedTuple):
    member_id: strict_string
    client_id: strict_string
    client_host: strict_string
    rebalance_timeout_ms: int32
    session_timeout_ms: int32
    subscription: blob
    assignment: blob


class _GroupValueV0(NamedTuple):
    version: int16
    protocol_type: strict_string
    generation: int32
    protocol: nullable_string
    leader: nullable_string
    members: list[_MemberV0]


class _GroupValueV1(NamedTuple):
    version: int16
    protocol_type: strict_string
    generation: int32
    protocol: nullable_string
    leader: nullable_string
    members: list[_MemberV1]


class _GroupValueV2(NamedTuple):
    version: int16
    protocol_type: strict_string
    generation: int32
    protocol: nullable_string
    leader: nullable_string
    since_ms: int64
    members: list[_MemberV1]


_OFFSET_VALUES: dict[int, Any] = {
    0: OffsetValue,
    1: _OffsetValueV1,
    2: OffsetValue,
    3: _OffsetValueV3,
}
_GROUP_VALUES: dict[int, Any] = {0: _GroupValueV0, 1: _GroupValueV1, 2: _GroupValueV2}


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
    return encode(_GroupValue(_GROUP_VERSION, record))


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
    layout = _OFFSET_VALUES.get(_version(data))
    if layout is None:
        raise ProtocolError(f"an offset of version {_version(data)}")
    value: Any = decode(layout, memoryview(data))[0]
    return Committed(value.offset, value.metadata, value.timestamp)


def decode_group(data: bytes) -> GroupRecord:
    """The value of a group. ProtocolError for unknown versions."""
    version = _version(data)
    if version == _GROUP_VERSION:
        return decode(_GroupValue, memoryview(data))[0].group
    layout = _GROUP_VALUES.get(version)
    if layout is None:
        raise ProtocolError(f"a group of version {version}")
    value: Any = decode(layout, memoryview(data))[0]
    members = [
        MemberRecord(
            member.member_id,
            None,
            member.client_id,
            member.client_host,
            getattr(member, "rebalance_timeout_ms", member.session_timeout_ms),
            member.session_timeout_ms,
            member.subscription,
            member.assignment,
        )
        for member in value.members
    ]
    return GroupRecord(
        value.protocol_type,
        value.generation,
        value.protocol,
        value.leader,
        getattr(value, "since_ms", -1),
        members,
    )


def _version(data: bytes) -> int:
    return decode(_Version, memoryview(data))[0].version
