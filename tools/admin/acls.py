"""kafka-acls: access rules of topics, groups and the cluster (kafka.admin.AclCommand).

Not of 0.8.2.2: options and outputs are those of Kafka 2.8. With --authorizer-properties it reads
and writes the nodes in ZooKeeper, with --bootstrap-server it asks a broker. A failure exits 1.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from kafka08.errors import KafkaError
from kafka08.security import acl_nodes
from kafka08.security.acl_filters import PatternFilter, ResourceFilter
from kafka08.security.acl_store import AclStore
from kafka08.security.acls import (
    CLUSTER_NAME,
    SUPPORTED,
    WILDCARD,
    Acl,
    Operation,
    Permission,
    Resource,
    ResourceType,
)
from kafka08.settings.broker import AUTHORIZERS
from tools import admin_command, brokers
from tools.admin.acl_sources import AclSource, RemoteAcls, ZooKeeperAcls
from tools.options import Arguments, OptionParser, parse_key_values
from zk.znodes import MalformedNodeError

PARSER = OptionParser(
    "This tool helps to manage acls on kafka.",
    """
--bootstrap-server <server to connect to>  The brokers to ask, in place of --authorizer-properties.
    They need an authorizer, and the sender Alter or Describe on the cluster.
--command-config <command config property file>  Properties for --bootstrap-server: client.id,
    request.timeout.ms, security.protocol and what belongs to it.
--authorizer <>  The authorizer whose rules are meant. There is one, by the name of either class.
    (default: kafka.security.authorizer.AclAuthorizer)
--authorizer-properties <>  Where its rules are: zookeeper.connect=localhost:2181. Either this or
    --bootstrap-server is required.
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
_CREATE, _DESCRIBE = Operation.CREATE, Operation.DESCRIBE
_ROLES = ("producer", "idempotent", "consumer")
_NEEDED: dict[tuple[str, ResourceType | None], tuple[Operation, ...]] = {
    ("producer", ResourceType.TOPIC): (_DESCRIBE, _CREATE, _WRITE),
    ("producer", ResourceType.TRANSACTIONAL_ID): (_DESCRIBE, _WRITE),
    ("idempotent", ResourceType.CLUSTER): (Operation.IDEMPOTENT_WRITE,),
    ("consumer", ResourceType.TOPIC): (_READ, _DESCRIBE),
    ("consumer", ResourceType.GROUP): (_READ,),
}
_NAMED = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
}
_ZOOKEEPER = "zookeeper.connect"

Rules = dict[ResourceFilter, list[Acl]]


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv)
    _check(args)
    filters = _filters(args)
    rules = {} if args.has("list") else _rules(args, filters)
    try:
        with _source(args) as source:
            if args.has("add"):
                _add(source, rules)
            if args.has("remove"):
                _remove(source, rules, force=args.has("force"))
            _list(source, filters, args.values("principal"))
        return 0
    except (KafkaError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        print(f"Error while executing ACL command: {error}", file=sys.stderr)
        return 1


@contextlib.contextmanager
def _source(args: Arguments) -> Iterator[AclSource]:
    if args.has("bootstrap-server"):
        with brokers.admin_client(PARSER, args) as admin:
            yield RemoteAcls(admin)
        return
    given = parse_key_values(args.values("authorizer-properties"))
    connect = given.get(_ZOOKEEPER)
    if not connect:
        PARSER.usage_and_exit(f"--authorizer-properties must have {_ZOOKEEPER}=HOST:PORT")
    settings = admin_command.zookeeper_config(args, given)
    with contextlib.closing(admin_command.connect(connect, settings)) as client:
        yield ZooKeeperAcls(AclStore(client, time.sleep))


# --- the command line


def _check(args: Arguments) -> None:
    if args.has("bootstrap-server"):
        if args.has("authorizer"):
            PARSER.usage_and_exit(
                "Only one of --bootstrap-server or --authorizer must be specified"
            )
        if args.has("authorizer-properties"):
            PARSER.usage_and_exit(
                "The --authorizer-properties option can only be used with --authorizer option"
            )
    else:
        PARSER.check_required(args, "authorizer-properties")
        if args.has("command-config"):
            PARSER.usage_and_exit(
                "The --command-config option can only be used with --bootstrap-server option"
            )
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


def _filters(args: Arguments) -> list[ResourceFilter]:
    """The resources that are named; none for a list of all."""
    text = str(args.value("resource-pattern-type")).upper()
    if text not in PatternFilter.__members__:
        names = ", ".join(each.name.lower() for each in PatternFilter)
        PARSER.usage_and_exit(f"--resource-pattern-type is one of {names}")
    pattern = PatternFilter[text]
    if args.has("add") and pattern in (PatternFilter.ANY, PatternFilter.MATCH):
        PARSER.usage_and_exit(
            f"A '--resource-pattern-type' value of '{text.title()}' is not valid when adding acls."
        )
    found = [
        ResourceFilter(kind, name.strip(), pattern)
        for option, kind in _NAMED.items()
        for name in args.values(option)
    ]
    if args.has("cluster") or args.has("idempotent"):
        found.append(ResourceFilter(ResourceType.CLUSTER, CLUSTER_NAME, PatternFilter.LITERAL))
    if not found and not args.has("list"):
        PARSER.usage_and_exit(
            "You must specify at least one resource: --topic <topic> or --cluster or --group "
            "<group> or --delegation-token <Delegation Token ID>"
        )
    for each in found:
        acl_nodes.check_name(each.name or "")
    return list(dict.fromkeys(found))


def _rules(args: Arguments, filters: Iterable[ResourceFilter]) -> Rules:
    """The rules to add, or to remove: with none of a resource all."""
    if args.has("producer") or args.has("consumer"):
        rules = {each: list(_of_roles(args, each.type)) for each in filters}
        rules = {each: acls for each, acls in rules.items() if acls}
    else:
        operations = _operations(args)
        acls = list(_acls(args, operations, "allow")) + list(_acls(args, operations, "deny"))
        rules = dict.fromkeys(filters, acls)
        for each in rules:
            if each.type is not None:
                _check_operations(each.type, operations)
    if args.has("add") and not all(rules.values()):
        PARSER.usage_and_exit(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    return rules


def _of_roles(args: Arguments, kind: ResourceType | None) -> Iterator[Acl]:
    """The rules that producers and consumers need for a resource of that type."""
    needed = [_NEEDED.get((role, kind), ()) for role in _ROLES if args.has(role)]
    return _acls(args, list(dict.fromkeys(chain.from_iterable(needed))), "allow")


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
    supported = (*SUPPORTED[kind], _ALL)
    if any(operation not in supported for operation in operations):
        names = ", ".join(each.name for each in supported)
        PARSER.usage_and_exit(f"ResourceType {kind.name} only supports operations {names}")


# --- the actions


def _add(source: AclSource, rules: Rules) -> None:
    for each, acls in rules.items():
        print(f"Adding ACLs for resource `{_shown(each)}`: \n {_lines(acls)} \n")
        if each.resource is not None:
            source.add(each.resource, acls)


def _remove(source: AclSource, rules: Rules, *, force: bool) -> None:
    for each, acls in rules.items():
        shown = _shown(each)
        if acls:
            question = f"remove ACLs: \n {_lines(acls)} \n from resource filter `{shown}`?"
        else:
            question = f"delete all ACLs for resource filter `{shown}`?"
        if force or _is_confirmed(f"Are you sure you want to {question} (y/n)"):
            source.remove(each, acls)


def _is_confirmed(question: str) -> bool:
    print(question)
    return sys.stdin.readline().strip().lower() == "y"


def _list(
    source: AclSource, filters: Collection[ResourceFilter], principals: Collection[str]
) -> None:
    """One block for each resource; rules that cannot be read are reported on stderr."""
    for resource, found in source.listed(filters):
        if isinstance(found, MalformedNodeError):
            print(f"{found}. Everybody but super users is refused.", file=sys.stderr)
            continue
        acls = [acl for acl in found if not principals or acl.principal in principals]
        if acls:
            print(f"Current ACLs for resource `{_shown(resource)}`: \n {_lines(acls)} \n")


# --- as later releases print it


def _shown(named: Resource | ResourceFilter) -> str:
    kind = "ANY" if named.type is None else named.type.name
    return (
        f"ResourcePattern(resourceType={kind}, name={named.name}, patternType={named.pattern.name})"
    )


def _lines(acls: Iterable[Acl]) -> str:
    return "\n".join(
        f"\t(principal={acl.principal}, host={acl.host}, operation={acl.operation.name}, "
        f"permissionType={acl.permission.name})"
        for acl in acls
    )
