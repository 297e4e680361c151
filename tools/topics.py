"""kafka-topics: create, list, describe, alter and delete topics (kafka.admin.TopicCommand).

A failed command is told on stdout and exits 0, as 0.8.2.2 does; with KAFKA_TOOLS_STRICT_EXIT=1
in the environment it exits 1, as later releases do.
"""

from __future__ import annotations

import os
import re
import sys
import traceback

from kafka08 import admin
from kafka08.common import OFFSETS_TOPIC
from kafka08.config import LogConfig
from kafka08.consumer.filters import Whitelist
from kafka08.errors import AdminOperationError
from tools.options import Arguments, OptionParser, UsageError, run_tool
from zk import registry, znodes
from zk.client import ZkClient
from zk.errors import NodeExistsError

STRICT_EXIT = "KAFKA_TOOLS_STRICT_EXIT"
ACTIONS = ("create", "list", "alter", "describe", "delete")
_ZK_TIMEOUT_MS = 30000
_FILTERS = ("under-replicated-partitions", "unavailable-partitions", "topics-with-overrides")


class AdminCommandFailedError(AdminOperationError):
    java_class = "kafka.common.AdminCommandFailedException"


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
    client = ZkClient(
        args.value("zookeeper"),
        session_timeout_ms=_ZK_TIMEOUT_MS,
        connection_timeout_ms=_ZK_TIMEOUT_MS,
        create_chroot=False,
    ).start()
    try:
        _run(client, parser, args)
    except (UsageError, BrokenPipeError):
        raise
    except Exception as error:
        print(f"Error while executing topic command {error}")
        print(_stack_trace(error))
        return 1 if os.environ.get(STRICT_EXIT) == "1" else 0
    finally:
        client.close()
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
    return parser


def _check(parser: OptionParser, args: Arguments) -> None:
    """Which options may go together; the place for --bootstrap-server, once it is served."""
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
    parser.check_invalid(args, "replica-assignment", "partitions", "replication-factor")
    for option in _FILTERS:
        only_with(option, "describe")
        parser.check_invalid(args, option, *(other for other in _FILTERS if other != option))


def _run(client: ZkClient, parser: OptionParser, args: Arguments) -> None:
    if args.has("create"):
        create_topic(client, parser, args)
    elif args.has("alter"):
        alter_topics(client, args)
    elif args.has("list"):
        list_topics(client, args)
    elif args.has("describe"):
        describe_topics(client, args)
    else:
        delete_topics(client, args)


def _topics(client: ZkClient, args: Arguments) -> list[str]:
    """The topics --topic matches, all without it, sorted."""
    topics = admin.list_topics(client)
    if not args.has("topic"):
        return topics
    return Whitelist(args.value("topic")).select(topics, exclude_internal=False)


def create_topic(client: ZkClient, parser: OptionParser, args: Arguments) -> None:
    topic = args.value("topic")
    config = _configs_to_add(args)
    if args.has("replica-assignment"):
        assignment = parse_replica_assignment(args.value("replica-assignment"))
        admin.create_topic_with_assignment(client, topic, assignment, config)
    else:
        parser.check_required(args, "partitions", "replication-factor")
        partitions, replicas = args.value("partitions"), args.value("replication-factor")
        admin.create_topic(client, topic, partitions, replicas, config)
    print(f'Created topic "{topic}".')


def alter_topics(client: ZkClient, args: Arguments) -> None:
    for topic in _topics(client, args):
        if args.has("config") or args.has("delete-config"):
            config = admin.fetch_topic_config(client, topic)
            config.update(_configs_to_add(args))
            for name in _configs_to_delete(args):
                config.pop(name, None)
            admin.change_topic_config(client, topic, config)
            print(f'Updated config for topic "{topic}".')
        if args.has("partitions"):
            if topic == OFFSETS_TOPIC:
                raise admin.InvalidArgumentError(
                    "The number of partitions for the offsets topic cannot be changed."
                )
            print(
                "WARNING: If partitions are increased for a topic that has a key, the partition "
                "logic or ordering of the messages will be affected"
            )
            admin.add_partitions(client, topic, args.value("partitions"))
            print("Adding partitions succeeded!")


def list_topics(client: ZkClient, args: Arguments) -> None:
    for topic in _topics(client, args):
        marked = admin.is_marked_for_deletion(client, topic)
        print(f"{topic} - marked for deletion" if marked else topic)


def delete_topics(client: ZkClient, args: Arguments) -> None:
    topics = _topics(client, args)
    if not topics:
        print(f"Topic {args.value('topic')} does not exist")
    for topic in topics:
        try:
            admin.delete_topic(client, topic)
        except NodeExistsError:
            print(f"Topic {topic} is already marked for deletion.")
            continue
        print(f"Topic {topic} is marked for deletion.")
        print("Note: This will have no impact if delete.topic.enable is not set to true.")


def describe_topics(client: ZkClient, args: Arguments) -> None:
    live = set(registry.broker_ids(client))
    partition_filter = args.has("under-replicated-partitions") or args.has("unavailable-partitions")
    overrides_only = args.has("topics-with-overrides")
    for topic in _topics(client, args):
        assignment = admin.fetch_assignment(client, topic)
        if not assignment:
            print(f"Topic {topic} doesn't exist!")
            continue
        if not partition_filter:
            config = admin.fetch_topic_config(client, topic)
            if config or not overrides_only:
                _print_header(topic, assignment, config)
        if not overrides_only:
            for partition, replicas in assignment.items():
                state = admin.fetch_partition_state(client, topic, partition)
                if _is_wanted(args, state, replicas, live):
                    _print_partition(topic, partition, replicas, state)


def _is_wanted(
    args: Arguments,
    state: znodes.PartitionStateNode | None,
    replicas: tuple[int, ...],
    live: set[int],
) -> bool:
    if args.has("under-replicated-partitions"):
        return len(state.isr if state else ()) < len(replicas)
    if args.has("unavailable-partitions"):
        return state is None or state.leader not in live
    return True


def _print_header(
    topic: str, assignment: dict[int, tuple[int, ...]], config: dict[str, str]
) -> None:
    configs = ",".join(f"{key}={config[key]}" for key in znodes.java_properties_order(config))
    factor = len(next(iter(assignment.values())))
    print(
        f"Topic:{topic}\tPartitionCount:{len(assignment)}\t"
        f"ReplicationFactor:{factor}\tConfigs:{configs}"
    )


def _print_partition(
    topic: str,
    partition: int,
    replicas: tuple[int, ...],
    state: znodes.PartitionStateNode | None,
) -> None:
    leader = "none" if state is None else state.leader
    isr = ",".join(map(str, state.isr)) if state else ""
    print(
        f"\tTopic: {topic}\tPartition: {partition}\tLeader: {leader}\t"
        f"Replicas: {','.join(map(str, replicas))}\tIsr: {isr}"
    )


def _configs_to_add(args: Arguments) -> dict[str, str]:
    """The --config options, checked."""
    # Java drops empty pieces at the end: "a=" is one piece.
    pairs = [re.split(r"\s*=\s*", text) for text in args.values("config")]
    for pair in pairs:
        while pair and not pair[-1]:
            pair.pop()
    if any(len(pair) != 2 for pair in pairs):
        raise admin.InvalidArgumentError(
            "requirement failed: Invalid topic config: all configs to be added must be in the "
            'format "key=val".'
        )
    config = {key.strip(): value.strip() for key, value in pairs}
    LogConfig.validate(config)
    return config


def _configs_to_delete(args: Arguments) -> list[str]:
    """The --delete-config options; their names must be known."""
    names = [name.strip() for name in args.values("delete-config")]
    known = LogConfig.keys()
    for name in names:
        if name not in known:
            raise admin.InvalidArgumentError(f'requirement failed: Unknown configuration "{name}".')
    return names


def parse_replica_assignment(text: str) -> dict[int, list[int]]:
    """ "0:1,1:2" to partition and replicas. Raises AdminOperationError."""
    assignment: dict[int, list[int]] = {}
    for partition, entry in enumerate(text.rstrip(",").split(",")):
        replicas = [admin.parse_broker_id(word) for word in entry.split(":")]
        twice = sorted({broker for broker in replicas if replicas.count(broker) > 1})
        if twice:
            raise AdminCommandFailedError(
                "Partition replica lists may not contain duplicate entries: "
                + ",".join(map(str, twice))
            )
        assignment[partition] = replicas
        if len(replicas) != len(assignment[0]):
            raise AdminOperationError(
                f"Partition {partition} has different replication factor: "
                f"{','.join(map(str, replicas))}"
            )
    return assignment


def _stack_trace(error: Exception) -> str:
    """Like Throwable.printStackTrace: class, message, a frame per line, newline at the end."""
    java_class = getattr(error, "java_class", type(error).__name__)
    frames = [
        f"\tat {os.path.basename(frame.filename).removesuffix('.py')}.{frame.name}"
        f"({os.path.basename(frame.filename)}:{frame.lineno})\n"
        for frame in reversed(traceback.extract_tb(error.__traceback__))
    ]
    return f"{java_class}: {error}\n{''.join(frames)}"


if __name__ == "__main__":
    sys.exit(run_tool(main))
