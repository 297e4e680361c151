"""kafka-configs: settings of topics, clients, users, brokers and addresses
(kafka.admin.ConfigCommand).

Not of 0.8.2.2: options and outputs are those of Kafka 2.8. A failure exits 1.
"""

from __future__ import annotations

import getpass
import ipaddress
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kafka08 import admin
from kafka08.admin import InvalidArgumentError
from kafka08.client.admin import AdminClient
from kafka08.errors import ConfigError, KafkaError
from kafka08.security.scram import HASHES
from tools import admin_command, brokers
from tools.admin import config_values, remote_configs
from tools.options import Arguments, OptionError, OptionParser
from zk import entities, entity_configs
from zk.client import ZkClient
from zk.entities import BROKERS, CLIENTS, DEFAULT, ENTITY_TYPES, IPS, TOPICS, USERS
from zk.znodes import java_properties_order

_TITLES = {USERS: "user-principal", CLIENTS: "client-id", TOPICS: "topic"}


def _known_settings() -> str:
    return "\n".join(
        f"For entity-type '{kind}':\n" + "\n".join(f"    |\t{name}" for name in names)
        for kind, names in config_values.KNOWN.items()
    )


PARSER = OptionParser(
    "Add/Remove entity config for a topic, client, user, broker or ip",
    f"""
--zookeeper <urls>  Where ZooKeeper is: host:port, several separated by commas, a chroot at the end.
    Either this or --bootstrap-server is required.
--bootstrap-server <server to connect to>  The brokers to ask, in place of --zookeeper: for topics,
    for the SCRAM credentials of users, and to describe brokers.
--command-config <command config property file>  Properties for --bootstrap-server: client.id,
    request.timeout.ms, security.protocol and what belongs to it.
--alter  Alter the configuration for the entity.
--describe  List configs for the given entity.
--all  With --bootstrap-server: describe also settings that have no value of their own.
--entity-type <>  Type of entity (topics/clients/users/brokers/ips)
--entity-name <>  Name of entity (topic name/client id/user principal name/broker id/ip)
--entity-default  Default entity name for clients/users/brokers/ips (applies to the corresponding
    entity type in the command line)
--add-config <>  Key Value pairs of configs to add. Square brackets can be used to group values
    which contain commas: 'k1=v1,k2=[v1,v2,v2],k3=v3'. A user's credential is
    SCRAM-SHA-256=[iterations=8192,password=PASSWORD]. Without password= the password is asked for
    at a terminal, or is the next line of standard input. The configs are:
{_known_settings()}
--add-config-file <>  Path to a properties file with configs to add, - for standard input.
--delete-config <>  config keys to remove 'k1,k2'
--force  Suppress console prompts
--help  Print usage information.
""",
    admin_command.ZK_TLS_CONFIG_FILE,
)


class EntityPart(NamedTuple):
    """An entity type and a name as it is stored; None: every name."""

    kind: str
    name: str | None

    def __str__(self) -> str:
        title = _TITLES.get(self.kind, self.kind)
        if self.name is None:
            return self.kind
        if self.name == DEFAULT:
            return f"default {title}"
        quoted = self.kind in (USERS, CLIENTS)
        return f"{title} '{entities.desanitize(self.name) if quoted else self.name}'"


Parts = tuple[EntityPart, ...]
"""One part, or a user and a client."""


def main(argv: list[str]) -> int:
    try:
        args = PARSER.parse_command(argv)
        if args.has("alter") == args.has("describe"):
            PARSER.usage_and_exit("Command must include exactly one action: --describe, --alter")
        PARSER.check_invalid(args, "describe", "add-config", "add-config-file", "delete-config")
        over_the_wire = args.has("bootstrap-server")
        if over_the_wire and args.has("zookeeper"):
            PARSER.usage_and_exit("Only one of --bootstrap-server or --zookeeper must be specified")
        PARSER.check_required(args, "bootstrap-server" if over_the_wire else "zookeeper")
        parts = _parts(args)
        if over_the_wire:
            _ask_brokers(parts, args)
            return 0
        with admin_command.session(args) as client:
            (_alter if args.has("alter") else _describe)(client, parts, args)
        return 0
    except (KafkaError, OptionError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        print(error, file=sys.stderr)
        return 1


def _ask_brokers(parts: Parts, args: Arguments) -> None:
    """Raises KafkaError, OSError."""
    kind, name = parts[0]
    is_user = kind == USERS and len(parts) == 1 and name != DEFAULT
    if kind not in remote_configs.KINDS and not is_user:
        raise InvalidArgumentError(
            "--bootstrap-server is for topics, brokers and users with a name; others need "
            "--zookeeper"
        )
    with brokers.admin_client(PARSER, args) as client:
        if is_user:
            _ask_about_user(client, name, args)
        elif args.has("describe"):
            remote_configs.describe(client, kind, name, every=args.has("all"))
        elif name is not None:
            remote_configs.alter(client, kind, name, _added(args), _deleted(args))


def _ask_about_user(client: AdminClient, encoded: str | None, args: Arguments) -> None:
    """``encoded``: the name as it is stored; None to describe all users."""
    name = None if encoded is None else entities.desanitize(encoded)
    if args.has("describe") or name is None:
        remote_configs.describe_users(client, name)
        return
    remote_configs.alter_user(client, name, _added(args), _deleted(args), _ask_password)


# --- the entity


def _parts(args: Arguments) -> Parts:
    kinds: list[str] = args.values("entity-type")
    if not kinds:
        raise InvalidArgumentError("At least one --entity-type must be specified")
    for kind in kinds:
        if kind not in ENTITY_TYPES:
            raise InvalidArgumentError(
                f"Invalid entity type {kind}, the entity type must be one of "
                f"{', '.join(ENTITY_TYPES)} with the --zookeeper argument"
            )
    if len(kinds) > 1 and sorted(kinds) != [CLIENTS, USERS]:
        raise InvalidArgumentError(
            "Only 'users' and 'clients' entity types may be specified together"
        )
    given = [
        DEFAULT if option == "entity-default" else _encoded(kinds, text or "")
        for option, text in args.in_order
        if option in ("entity-name", "entity-default")
    ]
    _check_names(args, kinds, given)
    names: list[str | None] = [*given, None, None]
    parts = [EntityPart(kind, name) for kind, name in zip(kinds, names, strict=False)]
    return tuple(reversed(parts)) if kinds[0] == CLIENTS else tuple(parts)


def _encoded(kinds: list[str], name: str) -> str:
    if kinds[0] in (USERS, CLIENTS):
        return entities.sanitize(name) or DEFAULT
    if "/" in name or name in ("", ".", ".."):
        raise InvalidArgumentError(f"{name!r} is not the name of an entity of type {kinds[0]}")
    return name


def _check_names(args: Arguments, kinds: list[str], names: list[str]) -> None:
    if len(names) > len(kinds):
        raise InvalidArgumentError("There are more entity names than entity types")
    if TOPICS in kinds and DEFAULT in names:
        raise InvalidArgumentError("--entity-default must not be specified with topics")
    for name in names if kinds == [BROKERS] else ():
        if name != DEFAULT and not name.isdecimal():
            raise InvalidArgumentError(
                f"The entity name for {BROKERS} must be a valid integer broker id, found: {name}"
            )
    for name in names if kinds == [IPS] else ():
        if name != DEFAULT and not _is_address(name):
            raise InvalidArgumentError(
                f"The entity name for {IPS} must be a valid IP, but it is: {name}"
            )
    if not args.has("alter"):
        return
    if not names:
        raise InvalidArgumentError(
            f"{'--entity-name' if TOPICS in kinds else '--entity-name or --entity-default'} must "
            f"be specified with --alter of {', '.join(kinds)}"
        )
    if len(names) != len(kinds):
        raise InvalidArgumentError(
            "--entity-name or --entity-default must be specified with each --entity-type for "
            "--alter"
        )
    if not any(map(args.has, ("add-config", "add-config-file", "delete-config"))):
        raise InvalidArgumentError(
            "At least one of --add-config, --add-config-file, or --delete-config must be "
            "specified with --alter"
        )


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _path(parts: Parts) -> str:
    return "/".join(f"{part.kind}/{part.name}" for part in parts)


def _shown(parts: Parts) -> str:
    return ", ".join(map(str, parts))


# --- alter


def _alter(client: ZkClient, parts: Parts, args: Arguments) -> None:
    kind = parts[0].kind
    added = _added(args)
    if kind == USERS and len(parts) == 1 and parts[0].name != DEFAULT:
        added = config_values.with_credentials(added, _ask_password)
    elif any(name in HASHES for name in added):
        raise InvalidArgumentError("SCRAM credentials belong to a user with a name")
    deleted = _deleted(args)
    if kind == TOPICS and not admin.topic_exists(client, parts[0].name or ""):
        raise InvalidArgumentError(f"Topic '{parts[0].name}' does not exist.")

    def change(present: dict[str, str]) -> Mapping[str, str]:
        missing = [name for name in deleted if name not in present]
        if missing:
            raise ConfigError(f"Invalid config(s): {','.join(missing)}")
        settings = {**present, **added}
        for name in deleted:
            settings.pop(name, None)
        config_values.check(kind, len(parts) > 1, settings)
        return settings

    entity_configs.alter(client, _path(parts), change)
    print(f"Completed updating config for entity: {_shown(parts)}.")


def _deleted(args: Arguments) -> list[str]:
    return [name.strip() for text in args.values("delete-config") for name in text.split(",")]


def _added(args: Arguments) -> dict[str, str]:
    added = {}
    if args.has("add-config-file"):
        name = args.value("add-config-file")
        data = sys.stdin.buffer.read() if name == "-" else admin_command.read_file(name)
        added = config_values.parse_file(data.decode("latin-1"))
    if args.has("add-config"):
        added |= config_values.parse(args.value("add-config"))
    return added


def _ask_password(mechanism: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(f"Password for {mechanism}: ")
    return sys.stdin.readline().rstrip("\r\n")


# --- describe


def _describe(client: ZkClient, parts: Parts, args: Arguments) -> None:
    all_users = parts == (EntityPart(USERS, None),)
    for each in _named(client, parts):
        settings = entity_configs.fetch(client, _path(each))
        # A user may have a node only because its clients have settings.
        if settings or not all_users:
            listed = [
                config_values.shown(key, settings[key]) for key in java_properties_order(settings)
            ]
            print(f"Configs for {_shown(each)} are {','.join(listed)}")


def _named(client: ZkClient, parts: Parts) -> Iterator[Parts]:
    """The entities that exist, of parts without a name."""
    for depth, part in enumerate(parts):
        if part.name is None:
            before = f"{_path(parts[:depth])}/" if depth else ""
            for path in entity_configs.names(client, before + part.kind):
                named = part._replace(name=path.rpartition("/")[2])
                yield from _named(client, (*parts[:depth], named, *parts[depth + 1 :]))
            return
    yield parts
