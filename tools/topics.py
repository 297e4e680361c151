"""kafka-topics: create, list, describe, alter and delete topics (kafka.admin.TopicCommand).

The command line is here. With --zookeeper it is that of 0.8.2.2, whose failures exit 0 (see
admin_command); --bootstrap-server and the options that came with it or later are those of later
releases, whose failures exit 1.
"""

from __future__ import annotations

import logging
import sys

from kafka08.config import LogConfig
from tools import admin_command, topics_bootstrap, topics_zookeeper
from tools.broker_list import broker_list
from tools.options import Arguments, OptionParser, run_tool
from tools.topics_shared import PARTITION_FILTERS

logger = logging.getLogger("kafka.admin.TopicCommand$")

ACTIONS = ("create", "list", "alter", "describe", "delete")
_FILTERS = (*PARTITION_FILTERS, "topics-with-overrides")


def main(argv: list[str]) -> int:
    """Exit status; raises UsageError and OptionError for run_tool to print."""
    parser = _parser()
    args = parser.parse(argv)
    if not argv:
        parser.usage_and_exit()
    if sum(args.has(action) for action in ACTIONS) != 1:
        parser.usage_and_exit(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    _check(parser, args)
    if args.has("bootstrap-server"):
        return _over_the_wire(parser, args)
    client = admin_command.connect(args.value("zookeeper"))
    try:
        topics_zookeeper.run(client, args)
    except BrokenPipeError:
        raise
    except Exception as error:
        print(f"Error while executing topic command {error}")
        print(admin_command.stack_trace(error))
        return admin_command.failure_status()
    finally:
        client.close()
    return 0


def _over_the_wire(parser: OptionParser, args: Arguments) -> int:
    """0, or 1 for a failure: what later releases exit with."""
    endpoints = broker_list(parser, args.value("bootstrap-server"))
    with topics_bootstrap.connect(endpoints, args) as client:
        try:
            topics_bootstrap.run(client, args)
        except BrokenPipeError:
            raise
        except Exception as error:
            print(f"Error while executing topic command : {error}")
            logger.error("%s", admin_command.stack_trace(error))
            return 1
    return 0


def _parser() -> OptionParser:
    parser = OptionParser("Create, delete, describe, or change a topic.")
    parser.option(
        "zookeeper",
        "REQUIRED: Where ZooKeeper is: host:port, several separated by commas, a chroot at the "
        "end.",
        arg="urls",
    )
    parser.option("list", "List the topics.")
    parser.option("create", "Create a topic.")
    parser.option("delete", "Mark topics for deletion.")
    parser.option("alter", "Change topics' configs or add partitions.")
    parser.option("describe", "Show partitions, replicas and configs of topics.")
    parser.option("help", "Print usage information.")
    parser.option(
        "topic",
        "The topic to create; for the other actions a regular expression that must match the "
        "whole name.",
        arg="topic",
    )
    names = "\n".join(f"\t{key}" for key in sorted(LogConfig.keys()))
    parser.option(
        "config",
        f"A topic config to set. The configs are:\n{names}\nSee docs/settings.md for each.",
        arg="name=value",
        repeatable=True,
    )
    parser.option(
        "delete-config",
        "A topic config to remove, see --config for the names.",
        arg="name",
        repeatable=True,
    )
    parser.option(
        "partitions",
        "How many partitions the topic gets, or shall have (WARNING: more partitions change "
        "where the messages of a key go).",
        arg="# of partitions",
        kind=int,
    )
    parser.option(
        "replication-factor",
        "How many replicas each partition of the new topic gets.",
        arg="replication factor",
        kind=int,
    )
    parser.option(
        "replica-assignment",
        "The brokers of each partition, in place of the automatic assignment.",
        arg="broker_id_for_part1_replica1 : broker_id_for_part1_replica2 , "
        "broker_id_for_part2_replica1 : broker_id_for_part2_replica2 , ...",
    )
    parser.option("under-replicated-partitions", "Describe only partitions that miss replicas.")
    parser.option("unavailable-partitions", "Describe only partitions without a live leader.")
    parser.option("topics-with-overrides", "Describe only topics that have configs of their own.")
    _later_options(parser)
    return parser


def _later_options(parser: OptionParser) -> None:
    """What 0.8.2.2 lacks; in full only, so that the prefixes it took keep their meaning."""
    for name, doc in [
        ("if-exists", "Alter, delete or describe a topic only if there is one."),
        ("if-not-exists", "Create a topic only if there is none."),
        ("exclude-internal", "List or describe no internal topics."),
        ("under-min-isr-partitions", "Describe only partitions with too few in-sync replicas."),
        ("at-min-isr-partitions", "Describe only partitions with just enough in-sync replicas."),
        ("force", "Accepted; nothing is ever asked."),
        ("disable-rack-aware", "Accepted; racks are not known."),
    ]:
        parser.option(name, doc, exact=True)
    parser.option(
        "bootstrap-server",
        "The brokers to ask, in place of --zookeeper. Brokers of 0.8.2.2 list and describe topics "
        "so, and create those without further options.",
        arg="server to connect to",
        exact=True,
    )
    parser.option(
        "command-config",
        "Properties for --bootstrap-server: client.id, request.timeout.ms.",
        arg="command config property file",
        exact=True,
    )


def _check(parser: OptionParser, args: Arguments) -> None:
    """Which options may go together."""
    over_the_wire = args.has("bootstrap-server")
    if over_the_wire and args.has("zookeeper"):
        parser.usage_and_exit("Only one of --bootstrap-server or --zookeeper must be specified")
    if not over_the_wire:
        parser.check_required(args, "zookeeper")
    if not args.has("list") and not args.has("describe"):
        parser.check_required(args, "topic")

    def only_with(option: str, *actions: str) -> None:
        others = [a for a in ("alter", "create", "describe", "list") if a not in actions]
        parser.check_invalid(args, option, *others)

    only_with("config", "alter", "create")
    only_with("delete-config", "alter")
    only_with("partitions", "alter", "create")
    only_with("replication-factor", "create")
    only_with("replica-assignment", "alter", "create")
    if not (over_the_wire and args.has("alter")):
        parser.check_invalid(args, "replica-assignment", "partitions", "replication-factor")
    for option in _FILTERS:
        only_with(option, "describe")
        parser.check_invalid(args, option, *(other for other in _FILTERS if other != option))
    _check_later_options(parser, args)


def _check_later_options(parser: OptionParser, args: Arguments) -> None:
    parser.check_invalid(args, "if-exists", "create", "list")
    parser.check_invalid(args, "if-not-exists", "alter", "describe", "list", "delete")
    parser.check_invalid(args, "exclude-internal", "alter", "create", "delete")
    if args.has("describe") and args.has("if-exists"):
        parser.check_required(args, "topic")
    if args.has("bootstrap-server") and args.has("alter"):
        if not args.has("config") and not args.has("delete-config"):
            parser.check_required(args, "partitions")
    elif args.has("zookeeper") and args.has("create") and not args.has("replica-assignment"):
        parser.check_required(args, "partitions", "replication-factor")


if __name__ == "__main__":
    sys.exit(run_tool(main))
