"""kafka-topics --bootstrap-server: any broker is asked, ZooKeeper is not touched.

Every broker lists and describes topics, and creates one with its own defaults. The rest, and the
settings that describe shows, take a broker that answers administrative requests: ours does, one
of 0.8.2.2 does not.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from kafka08 import admin
from kafka08.admin import (
    InvalidArgumentError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
)
from kafka08.client.admin import AdminClient, AdminNotServedError
from kafka08.client.cluster import Endpoint
from kafka08.client.security import runtime_of
from kafka08.errors import ReplicaNotAvailableError, TopicExistsError
from kafka08.protocol import schemas
from kafka08.protocol.admin_schemas import BROKER_DEFAULT, ConfigEntry
from kafka08.settings import INT
from tools.admin_command import command_config
from tools.options import Arguments
from tools.topics.shared import (
    MIN_ISR,
    PartitionView,
    configs_to_add,
    configs_to_delete,
    filters_partitions,
    needs_min_isr,
    print_topic,
    select,
)

DEFAULT_TIMEOUT_MS = 30000
_MAX_REPLICATION_FACTOR = 32767
_ADVICE = "Use --zookeeper instead."


def connect(endpoints: list[Endpoint], args: Arguments) -> AdminClient:
    """The client --command-config asks for. Raises ConfigError, FileNotFoundError."""
    config = command_config(args)
    return AdminClient(
        endpoints,
        client_id=config.get("client.id", ""),
        timeout_ms=INT.parse(config.get("request.timeout.ms", str(DEFAULT_TIMEOUT_MS))),
        runtime=runtime_of(config),
    )


def _existing(client: AdminClient, args: Arguments) -> list[str]:
    """The topics to act on. Raises InvalidArgumentError for none, unless --if-exists is given."""
    topics = select(args, (found.topic for found in client.metadata().topics))
    if not topics and not args.has("if-exists"):
        raise InvalidArgumentError(f"Topic '{args.value('topic')}' does not exist as expected")
    return topics


def create_topic(client: AdminClient, args: Arguments) -> None:
    topic = args.value("topic")
    config = configs_to_add(args)
    try:
        if any(found.topic == topic for found in client.metadata().topics):
            raise TopicExistsError(f"Topic '{topic}' already exists.")
        if args.has("replica-assignment"):
            assignment = admin.parse_replica_assignment(args.value("replica-assignment"))
            client.create_topic(topic, assignment=assignment, config=config)
        else:
            _create_by_counts(client, args, topic, config)
    except TopicExistsError:
        if args.has("if-not-exists"):
            return
        raise
    print(f"Created topic {topic}.")


def _create_by_counts(
    client: AdminClient, args: Arguments, topic: str, config: Mapping[str, str]
) -> None:
    """Counts that are not given are the broker's."""
    partitions, replicas = args.value("partitions"), args.value("replication-factor")
    if partitions is not None and partitions <= 0:
        raise InvalidPartitionsError("number of partitions must be larger than 0")
    if replicas is not None and replicas <= 0:
        raise InvalidReplicationFactorError("replication factor must be larger than 0")
    if replicas is not None and replicas > _MAX_REPLICATION_FACTOR:
        raise InvalidReplicationFactorError(
            "The replication factor's maximum value must be smaller or equal to "
            f"{_MAX_REPLICATION_FACTOR}"
        )
    try:
        client.create_topic(
            topic, partitions or BROKER_DEFAULT, replicas or BROKER_DEFAULT, config=config
        )
    except AdminNotServedError:
        if partitions or replicas or config:
            raise
        # All that is asked for is what 0.8.2.2 does at the first request for a topic.
        client.create_by_metadata(topic)


def alter_topics(client: AdminClient, args: Arguments) -> None:
    for topic in _existing(client, args):
        if args.has("config") or args.has("delete-config"):
            config = _own(client.describe_configs([topic])[topic])
            config.update(configs_to_add(args))
            for name in configs_to_delete(args):
                config.pop(name, None)
            client.alter_config(topic, config)
            print(f"Updated config for topic {topic}.")
        if args.has("partitions"):
            _add_partitions(client, args, topic)


def _add_partitions(client: AdminClient, args: Arguments, topic: str) -> None:
    new_replicas: list[list[int]] = []
    if args.has("replica-assignment"):
        assignment = admin.parse_replica_assignment(args.value("replica-assignment"))
        found = next(t for t in client.metadata().topics if t.topic == topic)
        new_replicas = list(assignment.values())[len(found.partitions) :]
    client.create_partitions(topic, args.value("partitions"), new_replicas)


def delete_topics(client: AdminClient, args: Arguments) -> None:
    topics = _existing(client, args)
    if topics:
        client.delete_topics(topics)


def list_topics(client: AdminClient, args: Arguments) -> None:
    for topic in select(args, (found.topic for found in client.metadata().topics)):
        print(topic)


# --- describe


def describe_topics(client: AdminClient, args: Arguments) -> None:
    metadata = client.metadata()
    live = {broker.node_id for broker in metadata.brokers}
    by_name = {found.topic: found for found in metadata.topics}
    topics = select(args, by_name)
    configs = _configs(client, args, topics)
    for topic in topics:
        views = [
            _view(topic, found, live)
            for found in sorted(by_name[topic].partitions, key=lambda found: found.partition)
        ]
        config = configs.get(topic, {})
        min_isr = int(config[MIN_ISR].value or 1) if MIN_ISR in config else 1
        print_topic(args, topic, views, _own(config), min_isr)


def _configs(
    client: AdminClient, args: Arguments, topics: list[str]
) -> dict[str, dict[str, ConfigEntry]]:
    """The settings of topics as far as needed, none where no broker reports them."""
    if not topics or (filters_partitions(args) and not needs_min_isr(args)):
        return {}
    try:
        return client.describe_configs(topics)
    except AdminNotServedError as error:
        if needs_min_isr(args) or args.has("topics-with-overrides"):
            raise
        print(f"WARNING: configs are not shown: {error}. {_ADVICE}", file=sys.stderr)
        return {}


def _own(config: Mapping[str, ConfigEntry]) -> dict[str, str]:
    return {name: entry.value or "" for name, entry in config.items() if not entry.is_default}


def _view(topic: str, found: schemas.PartitionMetadata, live: set[int]) -> PartitionView:
    # Metadata leaves dead replicas out of both lists and says so by this code only.
    lacks_replicas = found.error == ReplicaNotAvailableError.code
    return PartitionView(
        topic,
        found.partition,
        "none" if found.leader < 0 else found.leader,
        tuple(found.replicas),
        tuple(found.isr),
        under_replicated=lacks_replicas or len(found.isr) < len(found.replicas),
        available=found.leader in live,
    )


ACTIONS = {
    "create": create_topic,
    "alter": alter_topics,
    "list": list_topics,
    "describe": describe_topics,
    "delete": delete_topics,
}


def run(action: str, client: AdminClient, args: Arguments) -> None:
    """Raises KafkaError and what reading an option's value raises."""
    try:
        ACTIONS[action](client, args)
    except AdminNotServedError as error:
        raise AdminNotServedError(f"{error}. {_ADVICE}") from None
