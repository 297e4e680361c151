"""kafka-topics: create, list, describe, alter and delete topics (kafka.admin.TopicCommand).

The command line is here. With --zookeeper it is that of 0.8.2.2, whose failures exit 0 (see
admin_command); --bootstrap-server and the options that came with it or later are those of later
releases, whose failures exit 1.
"""

from __future__ import annotations

import logging

from kafka08.settings.topic import TOPIC_KEYS
from kafka08.topics.topics import BrokerTopics, ZooKeeperTopics
from tools import admin_command, brokers
from tools.options import Arguments, OptionParser
from tools.topics import actions

logger = logging.getLogger("kafka.admin.TopicCommand$")

_FILTERS = (*actions.PARTITION_FILTERS, "topics-with-overrides")

_CONFIGS = "\n".join(f"    |\t{key}" for key in sorted(TOPIC_KEYS))
PARSER = OptionParser(
    "Create, delete, describe, or change a topic.",
    f"""
--zookeeper <urls>  REQUIRED: Where ZooKeeper is: host:port, several separated by commas, a chroot
    at the end.
--list  List the topics.
--create  Create a topic.
--delete  Mark topics for deletion.
--alter  Change topics' configs or add partitions.
--describe  Show partitions, replicas and configs of topics.
--help  Print usage information.
--topic <topic>  The topic to create; for the other actions a regular expression that must match the
    whole name.
--config <name=value>  A topic config to set. The configs are:
{_CONFIGS}
    |See docs/settings.md for each.
--delete-config <name>  A topic config to remove, see --config for the names.
--partitions <Integer: # of partitions>  How many partitions the topic gets or is extended to
    (WARNING: more partitions change where the messages of a key go).
--replication-factor <Integer: replication factor>  How many replicas each partition of the new
    topic gets.
--replica-assignment <broker_id_for_part1_replica1 : broker_id_for_part1_replica2 ,
    broker_id_for_part2_replica1 : broker_id_for_part2_replica2 , ...>  The brokers of each
    partition, in place of the automatic assignment.
--under-replicated-partitions  Describe only partitions that miss replicas.
--unavailable-partitions  Describe only partitions without a live leader.
--topics-with-overrides  Describe only topics that have configs of their own.
""",
    later="""
--if-exists  Alter, delete or describe a topic only if there is one.
--if-not-exists  Create a topic only if there is none.
--exclude-internal  List or describe no internal topics.
--under-min-isr-partitions  Describe only partitions with too few in-sync replicas.
--at-min-isr-partitions  Describe only partitions with just enough in-sync replicas.
--force  Accepted; nothing is ever asked.
--disable-rack-aware  With --zookeeper: place replicas whatever racks and units brokers are in.
--bootstrap-server <server to connect to>  The brokers to ask, in place of --zookeeper. Brokers of
    0.8.2.2 list and describe topics so, and create those without further options.
--command-config <command config property file>  Properties for --bootstrap-server: client.id,
    request.timeout.ms and those of security.
"""
    + admin_command.ZK_TLS_CONFIG_FILE.lstrip(),
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv)
    given = [action for action in actions.ACTIONS if args.has(action)]
    if len(given) != 1:
        PARSER.usage_and_exit(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    _check(args)
    if args.has("bootstrap-server"):
        return _over_the_wire(given[0], args)
    with admin_command.session(args) as client:
        return admin_command.run(
            lambda: actions.run(
                given[0],
                ZooKeeperTopics(client, rack_aware=not args.has("disable-rack-aware")),
                args,
            ),
            "Error while executing topic command {error}",
        )


def _over_the_wire(action: str, args: Arguments) -> int:
    """0, or 1 for a failure: what later releases exit with."""
    with brokers.admin_client(PARSER, args) as client:
        try:
            actions.run(action, BrokerTopics(client), args)
        except BrokenPipeError:
            raise
        except Exception as error:
            print(f"Error while executing topic command : {error}")
            logger.error("%s", admin_command.stack_trace(error))
            return 1
    return 0


def _check(args: Arguments) -> None:
    """Which options may go together."""
    over_the_wire = args.has("bootstrap-server")
    if over_the_wire and args.has("zookeeper"):
        PARSER.usage_and_exit("Only one of --bootstrap-server or --zookeeper must be specified")
    if not over_the_wire:
        PARSER.check_required(args, "zookeeper")
    if not args.has("list") and not args.has("describe"):
        PARSER.check_required(args, "topic")

    def only_with(option: str, *actions: str) -> None:
        others = [a for a in ("alter", "create", "describe", "list") if a not in actions]
        PARSER.check_invalid(args, option, *others)

    only_with("config", "alter", "create")
    only_with("delete-config", "alter")
    only_with("partitions", "alter", "create")
    only_with("replication-factor", "create")
    only_with("replica-assignment", "alter", "create")
    if not (over_the_wire and args.has("alter")):
        PARSER.check_invalid(args, "replica-assignment", "partitions", "replication-factor")
    for option in _FILTERS:
        only_with(option, "describe")
    PARSER.check_exclusive(args, _FILTERS)
    _check_later_options(args)


def _check_later_options(args: Arguments) -> None:
    PARSER.check_invalid(args, "if-exists", "create", "list")
    PARSER.check_invalid(args, "if-not-exists", "alter", "describe", "list", "delete")
    PARSER.check_invalid(args, "exclude-internal", "alter", "create", "delete")
    if args.has("describe") and args.has("if-exists"):
        PARSER.check_required(args, "topic")
    if args.has("bootstrap-server") and args.has("alter"):
        if not args.has("config") and not args.has("delete-config"):
            PARSER.check_required(args, "partitions")
    elif args.has("zookeeper") and args.has("create") and not args.has("replica-assignment"):
        PARSER.check_required(args, "partitions", "replication-factor")
