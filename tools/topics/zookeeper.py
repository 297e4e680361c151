"""kafka-topics --zookeeper: the nodes themselves are read and written."""

from __future__ import annotations

from kafka08 import admin
from kafka08.common import OFFSETS_TOPIC
from kafka08.errors import TopicExistsError
from kafka08.settings import INT
from tools.options import Arguments
from tools.topics.shared import (
    MIN_ISR,
    PartitionView,
    configs_to_add,
    configs_to_delete,
    needs_min_isr,
    print_topic,
    select,
)
from zk import registry, znodes
from zk.client import ZkClient
from zk.errors import NodeExistsError


def _topics(client: ZkClient, args: Arguments) -> list[str]:
    return select(args, admin.list_topics(client))


def create_topic(client: ZkClient, args: Arguments) -> None:
    topic = args.value("topic")
    config = configs_to_add(args)
    try:
        if args.has("replica-assignment"):
            assignment = admin.parse_replica_assignment(args.value("replica-assignment"))
            admin.create_topic_with_assignment(client, topic, assignment, config)
        else:
            partitions, replicas = args.value("partitions"), args.value("replication-factor")
            admin.create_topic(client, topic, partitions, replicas, config)
    except TopicExistsError:
        if args.has("if-not-exists"):
            return
        raise
    print(f'Created topic "{topic}".')


def alter_topics(client: ZkClient, args: Arguments) -> None:
    for topic in _topics(client, args):
        if args.has("config") or args.has("delete-config"):
            config = admin.fetch_topic_config(client, topic)
            config.update(configs_to_add(args))
            for name in configs_to_delete(args):
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
    if not topics and not args.has("if-exists"):
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
    for topic in _topics(client, args):
        assignment = admin.fetch_assignment(client, topic)
        if not assignment:
            print(f"Topic {topic} doesn't exist!")
            continue
        config = admin.fetch_topic_config(client, topic)
        views = [
            _view(topic, partition, replicas, live, client)
            for partition, replicas in assignment.items()
        ]
        # Brokers' own defaults are not in ZooKeeper, and do not count on 0.8.2.2 (KAFKA-2114).
        min_isr = INT.parse(config.get(MIN_ISR, "1")) if needs_min_isr(args) else 1
        print_topic(args, topic, views, config, min_isr)


def _view(
    topic: str, partition: int, replicas: tuple[int, ...], live: set[int], client: ZkClient
) -> PartitionView:
    state = admin.fetch_partition_state(client, topic, partition)
    if state is None:
        state, leader = znodes.PartitionStateNode(-1, 0, 0, ()), "none"
    else:
        leader = str(state.leader)
    return PartitionView(
        topic,
        partition,
        leader,
        replicas,
        state.isr,
        under_replicated=len(state.isr) < len(replicas),
        available=state.leader in live,
    )


ACTIONS = {
    "create": create_topic,
    "alter": alter_topics,
    "list": list_topics,
    "describe": describe_topics,
    "delete": delete_topics,
}
