"""kafka-acls: access rules of topics, groups and the cluster (kafka.admin.AclCommand).

Not of 0.8.2.2: options and outputs are those of Kafka 2.8 with --authorizer-properties. It reads
and writes the nodes in ZooKeeper. A failure exits 1.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

from kafka08.config import AUTHORIZERS
from kafka08.errors import AdminOperationError, ConfigError
from kafka08.security import acl_nodes
from kafka08.security.acl_store import AclStore, read_or_refuse
from kafka08.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    Acl,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from tools import admin_command
from tools.options import Arguments, OptionParser, parse_key_values, run_tool
from zk.errors import ZkError
from zk.znodes import MalformedNodeError

PARSER = OptionParser(
    "This tool helps to manage acls on kafka.",
    """
--authorizer <>  The authorizer whose rules are meant. There is one, by the name of either class.
    (default: kafka.security.authorizer.AclAuthorizer)
--authorizer-properties <>  REQUIRED: Where its rules are: zookeeper.connect=localhost:2181
--add  Indicates you are trying to add ACLs.
--remove  Indicates you are trying to remove ACLs.
--list  List ACLs for the specified resource, use --topic <topic> or --group <group> or --cluster
    to specify a resource.
--topic <>  topic to which ACLs should be added or removed. A value of * indicates ACL should apply
    to all topics.
--group <>  Consumer Group to which the ACLs should be added or removed. A value of * indicates the
    ACLs should apply to all groups.
--cluster  Add/Remove cluster ACLs.
--transactional-id <>  The transactionalId to which ACLs should be added or removed. A value of *
    indicates the ACLs should apply to all transactionalIds.
--delegation-token <>  Delegation token to which ACLs should be added or removed. A value of *
    indicates ACL should apply to all tokens.
--resource-pattern-type <>  The type of the resource pattern: literal or prefixed; to list and to
    remove also any, which takes the name as it is with every type of pattern, and match, for
    every pattern that the name matches. (default: literal)
--allow-principal <>  principal is in principalType:name format. For example, User:'*' is the wild
    card indicating all users.
--deny-principal <>  principal is in principalType:name format. It is refused also where it is
    allowed.
--allow-host <>  Host from which principals listed in --allow-principal will have access: an IP
    address. Without it: all hosts.
--deny-host <>  Host from which principals listed in --deny-principal will be denied access: an IP
    address. Without it: all hosts.
--operation <>  Operation that is being allowed or denied: Read, Write, Create, Delete, Alter,
    Describe, ClusterAction, DescribeConfigs, AlterConfigs, IdempotentWrite, All. (default: All)
--principal <>  List ACLs for the specified principal. It is only valid with --list.
--producer  Convenience option to add/remove ACLs for producer role: WRITE, DESCRIBE and CREATE on
    topic.
--consumer  Convenience option to add/remove ACLs for consumer role: READ, DESCRIBE on topic and
    READ on group.
--idempotent  Enable idempotence for the producer. This should be used in combination with the
    --producer option.
--force  Assume Yes to all queries and do not prompt.
--help  Print usage information.
""",
    admin_command.ZK_TLS_CONFIG_FILE,
)

_ALL, _READ, _WRITE = Operation.ALL, Operation.READ, Operation.WRITE
_CREATE, _DELETE, _ALTER = Operation.CREATE, Operation.DELETE, Operation.ALTER
_DESCRIBE = Operation.DESCRIBE
_CONFIGS = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
# The operations that mean something on a type, besides All.
_SUPPORTED = {
    ResourceType.TOPIC: (_READ, _WRITE, _CREATE, _DESCRIBE, _DELETE, _ALTER, *_CONFIGS),
    ResourceType.GROUP: (_READ, _DESCRIBE, _DELETE),
    ResourceType.CLUSTER: (
        _CREATE, Operation.CLUSTER_ACTION, *_CONFIGS, Operation.IDEMPOTENT_WRITE, _ALTER, _DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (_DESCRIBE, _WRITE),
    ResourceType.DELEGATION_TOKEN: (_DESCRIBE,),
}  # fmt: skip
_NAMED = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
}
_PATTERNS = ("literal", "prefixed", "any", "match")
_ZOOKEEPER = "zookeeper.connect"


class Filter(NamedTuple):
    """The resources that a command line names. ``pattern``: one of _PATTERNS."""

    type: ResourceType
    name: str
    pattern: str

    def __str__(self) -> str:
        return _pattern(self.type, self.name, self.pattern.upper())

    @property
    def resource(self) -> Resource:
        """The one resource of a pattern that is literal or prefixed."""
        return Resource(self.type, self.name, PatternType[self.pattern.upper()])

    def takes(self, resource: Resource) -> bool:
        if resource.type is not self.type:
            return False
        if self.pattern == "any":
            return resource.name == self.name
        if self.pattern != "match":
            return resource == self.resource
        if resource.pattern is PatternType.PREFIXED:
            return self.name.startswith(resource.name)
        return resource.name in (self.name, WILDCARD)


Rules = dict[Filter, list[Acl]]


def main(argv: list[str]) -> int:
    """Exit status; raises UsageError and OptionError for run_tool to print."""
    args = PARSER.parse_command(argv)
    _check(args)
    filters = _filters(args)
    rules = {} if args.has("list") else _rules(args, filters)
    given = parse_key_values(args.values("authorizer-properties"))
    connect = given.get(_ZOOKEEPER)
    if not connect:
        PARSER.usage_and_exit(f"--authorizer-properties must have {_ZOOKEEPER}=HOST:PORT")
    try:
        settings = admin_command.zookeeper_config(args, given)
        with closing(admin_command.connect(connect, settings)) as client:
            store = AclStore(client, time.sleep)
            if args.has("add"):
                _add(store, rules)
            if args.has("remove"):
                _remove(store, rules, force=args.has("force"))
            _list(store, filters, args.values("principal"))
        return 0
    except (AdminOperationError, ConfigError, MalformedNodeError, ZkError) as error:
        print(f"Error while executing ACL command: {error}", file=sys.stderr)
        return 1


# --- the command line


def _check(args: Arguments) -> None:
    PARSER.check_required(args, "authorizer-properties")
    if args.value("authorizer") not in AUTHORIZERS:
        PARSER.usage_and_exit(f"The authorizer {args.value('authorizer')} is not known")
    if sum(map(args.has, ("add", "remove", "list"))) != 1:
        PARSER.usage_and_exit("Command must include exactly one action: --list, --add, --remove. ")
    hosts_and_principals = ("allow-host", "allow-principal", "deny-host", "deny-principal")
    PARSER.check_invalid(args, "list", "producer", "consumer", *hosts_and_principals)
    for role in ("producer", "consumer"):
        PARSER.check_invalid(args, role, "operation", "deny-principal", "deny-host")
    if args.has("principal") and not args.has("list"):
        PARSER.usage_and_exit("The --principal option is only available if --list is set")
    if args.has("producer") and not args.has("topic"):
        PARSER.usage_and_exit("With --producer you must specify a --topic")
    if args.has("idempotent") and not args.has("producer"):
        PARSER.usage_and_exit("The --idempotent option is only available if --producer is set")
    needs = args.has("topic") and args.has("group")
    others = args.has("cluster") or args.has("transactional-id")
    if args.has("consumer") and (not needs or (others and not args.has("producer"))):
        PARSER.usage_and_exit(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )


def _filters(args: Arguments) -> list[Filter]:
    """The resources that are named; none for a list of all."""
    pattern = str(args.value("resource-pattern-type")).lower()
    if pattern not in _PATTERNS:
        PARSER.usage_and_exit(f"--resource-pattern-type is one of {', '.join(_PATTERNS)}")
    if args.has("add") and pattern in ("any", "match"):
        PARSER.usage_and_exit(
            f"A '--resource-pattern-type' value of '{pattern.title()}' is not valid when adding "
            "acls."
        )
    found = [
        Filter(kind, name.strip(), pattern)
        for option, kind in _NAMED.items()
        for name in args.values(option)
    ]
    if args.has("cluster") or args.has("idempotent"):
        found.append(Filter(ResourceType.CLUSTER, CLUSTER_NAME, "literal"))
    if not found and not args.has("list"):
        PARSER.usage_and_exit(
            "You must specify at least one resource: --topic <topic> or --cluster or --group "
            "<group> or --delegation-token <Delegation Token ID>"
        )
    for each in found:
        acl_nodes.check_name(each.name)
    return list(dict.fromkeys(found))


def _rules(args: Arguments, filters: Iterable[Filter]) -> Rules:
    """The rules to add, or to remove: with none of a resource all."""
    if args.has("producer") or args.has("consumer"):
        rules = {each: list(_of_roles(args, each.type)) for each in filters}
        rules = {each: acls for each, acls in rules.items() if acls}
    else:
        operations = _operations(args)
        acls = list(_acls(args, operations, "allow")) + list(_acls(args, operations, "deny"))
        rules = dict.fromkeys(filters, acls)
        for each in rules:
            _check_operations(each.type, operations)
    if args.has("add") and not all(rules.values()):
        PARSER.usage_and_exit(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    return rules


def _of_roles(args: Arguments, kind: ResourceType) -> Iterator[Acl]:
    """The rules that producers and consumers need for a resource of that type."""
    operations: dict[Operation, None] = {}
    if args.has("producer"):
        if kind is ResourceType.TOPIC:
            operations.update(dict.fromkeys((_DESCRIBE, _CREATE, _WRITE)))
        if kind is ResourceType.TRANSACTIONAL_ID:
            operations.update(dict.fromkeys((_DESCRIBE, _WRITE)))
        if kind is ResourceType.CLUSTER and args.has("idempotent"):
            operations[Operation.IDEMPOTENT_WRITE] = None
    if args.has("consumer"):
        if kind is ResourceType.TOPIC:
            operations.update(dict.fromkeys((_READ, _DESCRIBE)))
        if kind is ResourceType.GROUP:
            operations[_READ] = None
    return _acls(args, operations, "allow")


def _operations(args: Arguments) -> list[Operation]:
    texts = args.values("operation") or [args.value("operation")]
    found = []
    for text in texts:
        operation = acl_nodes.operation(text.strip())
        if operation is None:
            PARSER.usage_and_exit(f"{text} is not an operation")
        found.append(operation)
    return list(dict.fromkeys(found))


def _acls(args: Arguments, operations: Collection[Operation], kind: str) -> Iterator[Acl]:
    """``kind``: allow or deny."""
    principals = [each.strip() for each in args.values(f"{kind}-principal")]
    hosts = [each.strip() for each in args.values(f"{kind}-host")] or [WILDCARD]
    for principal in principals:
        if ":" not in principal.strip(":"):
            PARSER.usage_and_exit(
                f"expected a string in format principalType:principalName but got {principal}"
            )
        for operation in operations:
            for host in hosts:
                yield Acl(principal, Permission[kind.upper()], operation, host)


def _check_operations(kind: ResourceType, operations: Iterable[Operation]) -> None:
    supported = (*_SUPPORTED[kind], _ALL)
    if any(operation not in supported for operation in operations):
        names = ", ".join(each.name for each in supported)
        PARSER.usage_and_exit(f"ResourceType {kind.name} only supports operations {names}")


# --- the actions


def _add(store: AclStore, rules: Rules) -> None:
    for each, acls in rules.items():
        print(f"Adding ACLs for resource `{each}`: \n {_lines(acls)} \n")
        store.add(each.resource, acls)


def _remove(store: AclStore, rules: Rules, *, force: bool) -> None:
    for each, acls in rules.items():
        if acls:
            question = f"remove ACLs: \n {_lines(acls)} \n from resource filter `{each}`?"
        else:
            question = f"delete all ACLs for resource filter `{each}`?"
        if not force and not _is_confirmed(f"Are you sure you want to {question} (y/n)"):
            continue
        for resource in _stored(store, [each]):
            if acls:
                store.remove(resource, acls)
            else:
                store.remove_all(resource)


def _is_confirmed(question: str) -> bool:
    print(question)
    return sys.stdin.readline().strip().lower() == "y"


def _list(store: AclStore, filters: Collection[Filter], principals: Collection[str]) -> None:
    """One block for each resource; rules that cannot be read are told on stderr."""
    for resource in _stored(store, filters):
        found = read_or_refuse(store, resource)
        if isinstance(found, MalformedNodeError):
            print(f"{found}. Everybody but super users is refused.", file=sys.stderr)
            continue
        acls = [acl for acl in found if not principals or acl.principal in principals]
        if acls:
            print(f"Current ACLs for resource `{_shown(resource)}`: \n {_lines(acls)} \n")


def _stored(store: AclStore, filters: Collection[Filter]) -> list[Resource]:
    return [
        resource
        for resource in store.resources()
        if not filters or any(each.takes(resource) for each in filters)
    ]


# --- as later releases print it


def _pattern(kind: ResourceType, name: str, pattern: str) -> str:
    return f"ResourcePattern(resourceType={kind.name}, name={name}, patternType={pattern})"


def _shown(resource: Resource) -> str:
    return _pattern(resource.type, resource.name, resource.pattern.name)


def _lines(acls: Iterable[Acl]) -> str:
    return "\n".join(
        f"\t(principal={acl.principal}, host={acl.host}, operation={acl.operation.name}, "
        f"permissionType={acl.permission.name})"
        for acl in acls
    )


if __name__ == "__main__":
    sys.exit(run_tool(main))
