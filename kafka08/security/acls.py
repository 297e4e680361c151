"""Access control lists: who may do what with which resource, and the decision about one request.

A rule (``Acl``) belongs to a resource, which is named literally, by ``*`` for all of its type, or
by a prefix. The decision follows kafka.security.auth.SimpleAclAuthorizer: if no rule belongs to
the resource, there is none. Else a Deny that matches refuses, an Allow that matches allows, and
without either it is refused. The numbers of the enumerations are those of later releases on the
wire. Does not know super users, ZooKeeper or requests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple


class _Named(IntEnum):
    @property
    def label(self) -> str:
        """The name in ZooKeeper and in logs: TransactionalId for TRANSACTIONAL_ID."""
        return self.name.title().replace("_", "")


class ResourceType(_Named):
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Named):
    LITERAL = 3
    PREFIXED = 4


class Operation(_Named):
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class Permission(_Named):
    DENY = 2
    ALLOW = 3


WILDCARD = "*"
EVERYONE = "User:*"
CLUSTER_NAME = "kafka-cluster"

_CONFIGS = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
SUPPORTED: Mapping[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE, Operation.DELETE,
        Operation.ALTER, *_CONFIGS,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DESCRIBE, Operation.DELETE),
    ResourceType.CLUSTER: (
        Operation.CREATE, Operation.CLUSTER_ACTION, *_CONFIGS, Operation.IDEMPOTENT_WRITE,
        Operation.ALTER, Operation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.DESCRIBE, Operation.WRITE),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}  # fmt: skip
"""The operations that mean something on a type, besides ALL."""

_IMPLYING_DESCRIBE = (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
ALLOWED_BY = {operation: (operation, Operation.ALL) for operation in Operation} | {
    Operation.DESCRIBE: (Operation.DESCRIBE, *_IMPLYING_DESCRIBE, Operation.ALL),
    Operation.DESCRIBE_CONFIGS: (
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.ALL,
    ),
}
"""The operations whose Allow also allows an operation."""
# No name holds this character: PREFIX + _OTHER is a name of which nothing but PREFIX is known.
_OTHER = "\0"


class Resource(NamedTuple):
    """One thing or many that rules belong to (ResourcePattern). The literal name ``*``: all."""

    type: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return f"{self.type.label}:{self.pattern.name}:{self.name}"


class Acl(NamedTuple):
    """A rule. ``principal``: "User:alice" or EVERYONE; ``host``: an address as text, or ``*``."""

    principal: str
    permission: Permission
    operation: Operation
    host: str = WILDCARD

    def is_about(self, principal: str, host: str) -> bool:
        return self.principal in (principal, EVERYONE) and self.host in (host, WILDCARD)


CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME)
DENY_ALL = (Acl(EVERYONE, Permission.DENY, Operation.ALL),)
"""The rules of a resource whose own cannot be read."""


def decide(acls: Collection[Acl], principal: str, host: str, operation: Operation) -> bool | None:
    """Whether the rules of a resource allow an operation; None if there are no rules."""
    if not acls:
        return None
    about = [acl for acl in acls if acl.is_about(principal, host)]
    denied = (operation, Operation.ALL)
    if any(acl.permission is Permission.DENY and acl.operation in denied for acl in about):
        return False
    allowed = ALLOWED_BY[operation]
    return any(acl.permission is Permission.ALLOW and acl.operation in allowed for acl in about)


Binding = tuple[Resource, Acl]
"""A rule, and the resource that it belongs to."""

RULE_FIELDS = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission",
)


def rule_words(binding: Binding) -> dict[str, str]:
    """The texts of RULE_FIELDS, in Kafka's words: TOPIC, LITERAL, READ, ALLOW."""
    resource, acl = binding
    texts = (
        resource.type.name,
        resource.name,
        resource.pattern.name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission.name,
    )
    return dict(zip(RULE_FIELDS, texts, strict=True))


class AclIndex:
    """The rules of all resources, found by the name of one thing."""

    def __init__(self, rules: Mapping[Resource, Collection[Acl]] | None = None) -> None:
        self._rules = {resource: tuple(acls) for resource, acls in (rules or {}).items()}
        # The lengths of the prefixes of a type, ascending.
        self._lengths: dict[ResourceType, list[int]] = {each: [] for each in ResourceType}
        for kind in ResourceType:
            self._measure(kind)

    def put(self, resource: Resource, acls: Collection[Acl]) -> None:
        """Replace the rules of a resource; it has none if ``acls`` is empty."""
        if acls:
            self._rules[resource] = tuple(acls)
        else:
            self._rules.pop(resource, None)
        self._measure(resource.type)

    def _measure(self, kind: ResourceType) -> None:
        prefixes = (
            each.name
            for each in self._rules
            if each.type is kind and each.pattern is PatternType.PREFIXED
        )
        self._lengths[kind] = sorted({len(prefix) for prefix in prefixes})

    def items(self) -> Iterator[tuple[Resource, tuple[Acl, ...]]]:
        yield from self._rules.items()

    def matching(self, kind: ResourceType, name: str) -> list[Acl]:
        """The rules that belong to a thing of that name: its own, those of ``*``, of prefixes."""
        rules = self._rules
        found = [*rules.get(Resource(kind, name), ())]
        if name != WILDCARD:
            found += rules.get(Resource(kind, WILDCARD), ())
        for length in self._lengths[kind]:
            if length > len(name):
                break
            found += rules.get(Resource(kind, name[:length], PatternType.PREFIXED), ())
        return found

    def allows_any(
        self, kind: ResourceType, principal: str, host: str, operation: Operation
    ) -> bool | None:
        """Whether an operation is allowed on something of the type, whatever its name; None if
        there is only what has no rules."""
        names = {_OTHER, *(_name_under(each) for each in self._rules if each.type is kind)}
        found = {decide(self.matching(kind, name), principal, host, operation) for name in names}
        if True in found:
            return True
        return None if None in found else False


def _name_under(resource: Resource) -> str:
    """The name of something that the rules of a resource belong to."""
    if resource.pattern is PatternType.PREFIXED:
        return resource.name + _OTHER
    return _OTHER if resource.name == WILDCARD else resource.name
