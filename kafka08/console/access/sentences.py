"""Access rules as sentences, and which of them reach as far as others. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kafka08.security.acls import (
    ALLOWED_BY,
    EVERYONE,
    WILDCARD,
    Acl,
    Binding,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)

_NOUNS = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
    ResourceType.DELEGATION_TOKEN: "delegation token",
    ResourceType.USER: "user",
}
_VERBS = {
    Operation.ALL: "do everything with",
    Operation.READ: "read",
    Operation.WRITE: "write",
    Operation.CREATE: "create",
    Operation.DELETE: "delete",
    Operation.ALTER: "alter",
    Operation.DESCRIBE: "describe",
    Operation.CLUSTER_ACTION: "act as a broker of",
    Operation.DESCRIBE_CONFIGS: "see the settings of",
    Operation.ALTER_CONFIGS: "change the settings of",
    Operation.IDEMPOTENT_WRITE: "write idempotently to",
    Operation.CREATE_TOKENS: "create tokens of",
    Operation.DESCRIBE_TOKENS: "see the tokens of",
}


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def resource_text(resource: Resource) -> str:
    if resource.type is ResourceType.CLUSTER:
        return "the cluster"
    noun = _NOUNS[resource.type]
    if resource.pattern is PatternType.PREFIXED:
        return f"{noun}s that begin with {resource.name}"
    return f"all {noun}s" if resource.name == WILDCARD else f"{noun} {resource.name}"


def verbs(operations: Sequence[Operation]) -> str:
    return listed([_VERBS[each] for each in operations])


def host_text(host: str) -> str:
    return "" if host == WILDCARD else f" from {host}"


def who(principal: str) -> str:
    return "Everybody" if principal == EVERYONE else principal


def sentence(binding: Binding) -> str:
    """A rule, without a full stop: User:ann may read topic orders from 10.0.0.1."""
    resource, acl = binding
    may = "may" if acl.permission is Permission.ALLOW else "may not"
    if acl.principal == EVERYONE and acl.permission is Permission.DENY:
        subject, may = "Nobody", "may"
    else:
        subject = who(acl.principal)
    action = f"{verbs([acl.operation])} {resource_text(resource)}"
    return f"{subject} {may} {action}{host_text(acl.host)}"


def covers(wide: Resource, narrow: Resource) -> bool:
    """Whether what ``narrow`` names is all named by ``wide``."""
    if wide.type is not narrow.type:
        return False
    if wide.pattern is PatternType.PREFIXED:
        is_all = narrow.pattern is PatternType.LITERAL and narrow.name == WILDCARD
        return not is_all and narrow.name.startswith(wide.name)
    return wide.name == WILDCARD or wide == narrow


def _reaches(wide: Acl, narrow: Acl) -> bool:
    """Whether a rule holds for all principals and hosts of another one."""
    return wide.principal in (narrow.principal, EVERYONE) and wide.host in (narrow.host, WILDCARD)


def denies(wide: Binding, narrow: Binding) -> bool:
    """Whether one rule denies all that another one allows."""
    deny, allow = wide[1], narrow[1]
    return (
        deny.permission is Permission.DENY
        and allow.permission is Permission.ALLOW
        and deny.operation in (allow.operation, Operation.ALL)
        and _reaches(deny, allow)
        and covers(wide[0], narrow[0])
    )


def allows(wide: Binding, narrow: Binding) -> bool:
    """Whether one rule allows all that another one allows."""
    one, other = wide[1], narrow[1]
    return (
        one.permission is other.permission is Permission.ALLOW
        and one.operation in ALLOWED_BY[other.operation]
        and _reaches(one, other)
        and covers(wide[0], narrow[0])
    )
