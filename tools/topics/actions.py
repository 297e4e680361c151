"""The actions of kafka-topics, over ZooKeeper and over brokers, and what they print.

Over ZooKeeper the texts are those of 0.8.2.2, over brokers those of later releases.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator

from kafka08 import admin
from kafka08.client.admin import AdminNotServedError
from kafka08.consumer.filters import Whitelist
from kafka08.errors import TopicExistsError
from kafka08.settings.topic import TOPIC_KEYS, LogConfig
from kafka08.topics.topics import PartitionDescription, TopicDescription, Topics
from tools.options import Arguments
from zk import znodes

PARTITION_FILTERS: dict[str, Callable[[PartitionDescription, TopicDescription], bool]] = {
    "under-replicated-partitions": lambda each, topic: each.under_replicated,
    "unavailable-partitions": lambda each, topic: not each.available,
    "under-min-isr-partitions": lambda each, topic: len(each.isr) < topic.min_isr,
    "at-min-isr-partitions": lambda each, topic: len(each.isr) == topic.min_isr,
}
"""Options of describe, and which partitions they show."""
_ADVICE = "Use --zookeeper instead."


def run(action: str, topics: Topics, args: Arguments) -> None:
    """Raises KafkaError and what reading an option's value raises."""
    try:
        ACTIONS[action](topics, args)
    except AdminNotServedError as error:
        raise AdminNotServedError(f"{error}. {_ADVICE}") from None


def _over_brokers(args: Arguments) -> bool:
    return args.has("bootstrap-server")


def _named(topic: str, args: Arguments) -> str:
    return topic if _over_brokers(args) else f'"{topic}"'


def _existing(topics: Topics, args: Arguments) -> list[str]:
    """The topics to act on. Raises InvalidArgumentError for none, as later releases do, unless
    --if-exists is given."""
    names = select(args, topics.names())
    if not names and _over_brokers(args) and not args.has("if-exists"):
        raise admin.InvalidArgumentError(
            f"Topic '{args.value('topic')}' does not exist as expected"
        )
    return names


def _assignment(args: Arguments) -> dict[int, list[int]] | None:
    if not args.has("replica-assignment"):
        return None
    return admin.parse_replica_assignment(args.value("replica-assignment"))


def create_topic(topics: Topics, args: Arguments) -> None:
    topic, config = args.value("topic"), configs_to_add(args)
    counts = (args.value("partitions"), args.value("replication-factor"))
    try:
        topics.create(topic, *counts, _assignment(args), config)
    except TopicExistsError:
        if args.has("if-not-exists"):
            return
        raise
    print(f"Created topic {_named(topic, args)}.")


def alter_topics(topics: Topics, args: Arguments) -> None:
    for topic in _existing(topics, args):
        if args.has("config") or args.has("delete-config"):
            config = topics.own_config(topic)
            config.update(configs_to_add(args))
            for name in configs_to_delete(args):
                config.pop(name, None)
            topics.change_config(topic, config)
            print(f"Updated config for topic {_named(topic, args)}.")
        if args.has("partitions"):
            _add_partitions(topics, args, topic)


def _add_partitions(topics: Topics, args: Arguments, topic: str) -> None:
    if _over_brokers(args):
        topics.add_partitions(topic, args.value("partitions"), _assignment(args))
        return
    if topic in admin.FIXED_PARTITIONS:
        raise admin.InvalidArgumentError(admin.FIXED_PARTITIONS[topic])
    print(
        "WARNING: If partitions are increased for a topic that has a key, the partition "
        "logic or ordering of the messages will be affected"
    )
    topics.add_partitions(topic, args.value("partitions"), None)
    print("Adding partitions succeeded!")


def list_topics(topics: Topics, args: Arguments) -> None:
    names = select(args, topics.names())
    marked = topics.marked_for_deletion()
    for topic in names:
        print(f"{topic} - marked for deletion" if topic in marked else topic)


def delete_topics(topics: Topics, args: Arguments) -> None:
    names = _existing(topics, args)
    if not names and not args.has("if-exists"):
        print(f"Topic {args.value('topic')} does not exist")
    for topic, is_new in topics.delete(names):
        if _over_brokers(args):
            continue
        if is_new:
            print(f"Topic {topic} is marked for deletion.")
            print("Note: This will have no impact if delete.topic.enable is not set to true.")
        else:
            print(f"Topic {topic} is already marked for deletion.")


def describe_topics(topics: Topics, args: Arguments) -> None:
    for topic, view in _described(topics, select(args, topics.names()), args):
        if view is None:
            print(f"Topic {topic} doesn't exist!")
        else:
            print_topic(args, topic, view)


def _described(
    topics: Topics, names: list[str], args: Arguments
) -> Iterator[tuple[str, TopicDescription | None]]:
    """With the settings as far as needed, without where no broker serves them."""
    try:
        needs_settings = needs_min_isr(args) or not filters_partitions(args)
        return topics.describe(names, configs=needs_settings)
    except AdminNotServedError as error:
        if needs_min_isr(args) or args.has("topics-with-overrides"):
            raise
        print(f"WARNING: configs are not shown: {error}. {_ADVICE}", file=sys.stderr)
        return topics.describe(names, configs=False)


ACTIONS = {
    "create": create_topic,
    "alter": alter_topics,
    "list": list_topics,
    "describe": describe_topics,
    "delete": delete_topics,
}


# --- option values


def select(args: Arguments, topics: Iterable[str]) -> list[str]:
    """The topics --topic matches, all without it, sorted."""
    regex = args.value("topic") if args.has("topic") else ".*"
    return Whitelist(regex).select(topics, exclude_internal=args.has("exclude-internal"))


def configs_to_add(args: Arguments) -> dict[str, str]:
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


def configs_to_delete(args: Arguments) -> list[str]:
    """The --delete-config options; their names must be known."""
    names = [name.strip() for name in args.values("delete-config")]
    for name in names:
        if name not in TOPIC_KEYS:
            raise admin.InvalidArgumentError(f'requirement failed: Unknown configuration "{name}".')
    return names


# --- printing


def filters_partitions(args: Arguments) -> bool:
    """Whether describe shows some partitions only, and no header lines."""
    return any(args.has(name) for name in PARTITION_FILTERS)


def needs_min_isr(args: Arguments) -> bool:
    return args.has("under-min-isr-partitions") or args.has("at-min-isr-partitions")


def print_topic(args: Arguments, topic: str, view: TopicDescription) -> None:
    """The lines that describe prints for a topic."""
    overrides_only = args.has("topics-with-overrides")
    if not filters_partitions(args) and (view.own or not overrides_only):
        _print_header(topic, view)
    if not overrides_only:
        shows = [shown for option, shown in PARTITION_FILTERS.items() if args.has(option)]
        for partition in view.partitions:
            if all(shown(partition, view) for shown in shows):
                _print_partition(topic, partition)


def _print_header(topic: str, view: TopicDescription) -> None:
    configs = ",".join(f"{key}={view.own[key]}" for key in znodes.java_properties_order(view.own))
    # Metadata leaves dead replicas out, so the longest list counts.
    factor = max((len(each.replicas) for each in view.partitions), default=0)
    print(
        f"Topic:{topic}\tPartitionCount:{len(view.partitions)}\t"
        f"ReplicationFactor:{factor}\tConfigs:{configs}"
    )


def _print_partition(topic: str, view: PartitionDescription) -> None:
    leader = "none" if view.leader is None else view.leader
    print(
        f"\tTopic: {topic}\tPartition: {view.partition}\tLeader: {leader}\t"
        f"Replicas: {','.join(map(str, view.replicas))}\tIsr: {','.join(map(str, view.isr))}"
    )
