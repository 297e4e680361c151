"""Paths and payloads of access rules in ZooKeeper, as pure functions.

The layouts are those of 0.9 (literal names) and 2.0 (prefixes), which no release has changed
since. Names of types, operations and permissions are read without regard to case. Payloads that are
not understood to the end raise MalformedNodeError: a rule that is left out could be a Deny.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TypeVar

from kafka08.errors import AdminOperationError
from kafka08.security.acls import Acl, Operation, PatternType, Permission, Resource, ResourceType
from zk.znodes import MalformedNodeError, decode_json, encode_json

ROOTS = {PatternType.LITERAL: "/kafka-acl", PatternType.PREFIXED: "/kafka-acl-extended/prefixed"}
CHANGES = {
    PatternType.LITERAL: "/kafka-acl-changes",
    PatternType.PREFIXED: "/kafka-acl-extended-changes",
}
_CHANGE_PREFIX = "acl_changes_"
_VERSION = 1
# ZooKeeper's default limit is a quarter of it. To read more would take too long.
_MAX_BYTES = 4 << 20
# Names of nodes cannot hold these characters.
_ILLEGAL = re.compile("[/\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")

E = TypeVar("E", bound=IntEnum)


def _by_text(members: Iterable[E]) -> Mapping[str, E]:
    """Members by name in lower case, with and without underscores."""
    listed = list(members)
    texts = {each.name.lower(): each for each in listed}
    return texts | {text.replace("_", ""): each for text, each in texts.items()}


_TYPES = _by_text(ResourceType)
_OPERATIONS = _by_text(Operation)
_PERMISSIONS = _by_text(Permission)
_PATTERNS = _by_text(PatternType)


def resource_type(text: str) -> ResourceType | None:
    """The type of that name, in any case."""
    return _TYPES.get(text.lower())


def operation(text: str) -> Operation | None:
    """The operation of that name, in any case."""
    return _OPERATIONS.get(text.lower())


def resource_path(resource: Resource) -> str:
    return f"{ROOTS[resource.pattern]}/{resource.type.label}/{resource.name}"


def change_path(pattern: PatternType, name: str) -> str:
    return f"{CHANGES[pattern]}/{name}"


def change_path_prefix(pattern: PatternType) -> str:
    """The prefix of a sequential node."""
    return f"{CHANGES[pattern]}/{_CHANGE_PREFIX}"


def check_name(name: str) -> None:
    """Raises AdminOperationError for a resource that cannot have a node."""
    if not _is_name(name):
        raise AdminOperationError(f"{name!r} cannot be stored as the name of a resource")


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and not _ILLEGAL.search(name)


def _object(path: str, data: bytes) -> Mapping[str, object]:
    node = decode_json(path, data)
    version = node.get("version") if isinstance(node, dict) else None
    if version is not True and version == _VERSION:
        return dict(node)
    raise MalformedNodeError(path, f"not a JSON object of version {_VERSION}")


def encode_acls(acls: Iterable[Acl]) -> bytes:
    return encode_json(
        {
            "version": _VERSION,
            "acls": [
                {
                    "principal": acl.principal,
                    "permissionType": acl.permission.label,
                    "operation": acl.operation.label,
                    "host": acl.host,
                }
                for acl in acls
            ],
        }
    )


def decode_acls(path: str, data: bytes) -> tuple[Acl, ...]:
    """The rules in their order, each once."""
    if len(data) > _MAX_BYTES:
        raise MalformedNodeError(path, f"{len(data)} bytes are more than the {_MAX_BYTES} read")
    listed = _object(path, data).get("acls")
    if not isinstance(listed, list):
        raise MalformedNodeError(path, "acls is not a list")
    return tuple(dict.fromkeys(_decode_acl(path, each) for each in listed))


def _decode_acl(path: str, node: object) -> Acl:
    if not isinstance(node, dict):
        raise MalformedNodeError(path, "a rule is not a JSON object")
    principal, host = _text(path, node, "principal"), _text(path, node, "host")
    permission = _PERMISSIONS.get(_text(path, node, "permissionType").lower())
    what = operation(_text(path, node, "operation"))
    if permission is None or what is None or ":" not in principal:
        raise MalformedNodeError(path, f"a rule that is not known: {str(node)[:200]}")
    return Acl(principal, permission, what, host)


def _text(path: str, node: Mapping[str, object], key: str) -> str:
    value = node.get(key)
    if not isinstance(value, str):
        raise MalformedNodeError(path, f"{key} of a rule is not a string")
    return value


def encode_change(resource: Resource) -> bytes:
    """The notice that the rules of a resource have changed."""
    kind = resource.type.name
    if resource.pattern is PatternType.LITERAL:
        return f"{kind}:{resource.name}".encode()
    return encode_json(
        {
            "version": _VERSION,
            "resourceType": kind,
            "name": resource.name,
            "patternType": resource.pattern.name,
        }
    )


def decode_change(pattern: PatternType, path: str, data: bytes) -> Resource:
    """The resource of a notice below ``CHANGES[pattern]``."""
    if pattern is PatternType.LITERAL:
        kind, _, name = data.decode(errors="replace").partition(":")
        return _changed(path, kind, name, pattern)
    node = _object(path, data)
    of = _PATTERNS.get(_text(path, node, "patternType").lower())
    return _changed(path, _text(path, node, "resourceType"), _text(path, node, "name"), of)


def _changed(path: str, kind: str, name: str, pattern: PatternType | None) -> Resource:
    found = resource_type(kind)
    if found is None or pattern is None or not _is_name(name):
        raise MalformedNodeError(path, "not a change of access rules")
    return Resource(found, name, pattern)
