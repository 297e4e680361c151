"""Topics in ZooKeeper: creating, growing, configuring, marking for deletion.

What brokers do about it is theirs: these functions only read and write nodes. Refusals carry
the words of kafka.admin.AdminUtils. Better than the original: a topic and its config are
created in one transaction, and partitions are added only to the assignment that was read.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Mapping, Sequence

from kafka08.common import validate_topic
from kafka08.config import LogConfig
from kafka08.errors import AdminOperationError, TopicExistsError
from kafka08.settings import NumberFormatError
from zk import znodes
from zk.client import CreateOp, Op, SetOp, ZkClient
from zk.errors import BadVersionError, NodeExistsError, NoNodeError

logger = logging.getLogger("kafka.admin.AdminUtils$")

Assignment = Mapping[int, Sequence[int]]
"""Partition to replicas, the preferred leader first."""


class InvalidArgumentError(AdminOperationError):
    """What the JVM calls an illegal argument."""

    java_class = "java.lang.IllegalArgumentException"


# --- assignments


def assign_replicas(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    start: int | None = None,
    shift: int | None = None,
    first_partition: int = 0,
) -> dict[int, list[int]]:
    """Spread the replicas of ``partitions`` new partitions over ``brokers``.

    First replicas go round the brokers from index ``start``; the others follow at a distance
    that begins with ``shift`` and grows by one each time round, so that the partitions of one
    leader have their followers on different brokers. Both are random unless given. Partitions
    count from ``first_partition``. Raises AdminOperationError.
    """
    if partitions <= 0:
        raise AdminOperationError("number of partitions must be larger than 0")
    if replication_factor <= 0:
        raise AdminOperationError("replication factor must be larger than 0")
    n = len(brokers)
    if replication_factor > n:
        raise AdminOperationError(
            f"replication factor: {replication_factor} larger than available brokers: {n}"
        )
    start = random.randrange(n) if start is None else start
    shift = random.randrange(n) if shift is None else shift
    assignment = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % n == 0:
            shift += 1
        first = (partition + start) % n
        followers = [(first + 1 + (shift + j) % (n - 1)) % n for j in range(replication_factor - 1)]
        assignment[partition] = [brokers[index] for index in (first, *followers)]
    return assignment


def check_assignment(assignment: Assignment) -> None:
    """As many replicas everywhere, none twice. Raises InvalidArgumentError."""
    if len({len(replicas) for replicas in assignment.values()}) != 1:
        raise InvalidArgumentError(
            "requirement failed: All partitions should have the same number of replicas."
        )
    if any(len(set(replicas)) != len(replicas) for replicas in assignment.values()):
        listed = ", ".join(
            f"{partition} -> List({', '.join(map(str, replicas))})"
            for partition, replicas in assignment.items()
        )
        raise InvalidArgumentError(
            f"requirement failed: Duplicate replica assignment found: Map({listed})"
        )


# --- reading


def list_topics(client: ZkClient) -> list[str]:
    """Every topic, sorted, those marked for deletion too."""
    return sorted(client.children_if_exists(znodes.BROKER_TOPICS))


def topic_exists(client: ZkClient, topic: str) -> bool:
    return client.exists(znodes.topic_path(topic)) is not None


def fetch_assignment(client: ZkClient, topic: str) -> dict[int, tuple[int, ...]] | None:
    """Partition to replicas, None without such a topic. Raises MalformedNodeError."""
    path = znodes.topic_path(topic)
    found = client.get_if_exists(path)
    return None if found is None else znodes.decode_topic(path, found[0])


def fetch_partition_state(
    client: ZkClient, topic: str, partition: int
) -> znodes.PartitionStateNode | None:
    """Leader, epochs and isr; None before the first election. Raises MalformedNodeError."""
    path = znodes.partition_state_path(topic, partition)
    found = client.get_if_exists(path)
    return None if found is None else znodes.decode_partition_state(path, found[0])


def fetch_topic_config(client: ZkClient, topic: str) -> dict[str, str]:
    """The topic's overrides, none without a node. Raises MalformedNodeError."""
    path = znodes.topic_config_path(topic)
    found = client.get_if_exists(path)
    return {} if found is None else znodes.decode_topic_config(path, found[0])


def fetch_all_topic_configs(client: ZkClient) -> dict[str, dict[str, str]]:
    """Topic to overrides. Raises MalformedNodeError."""
    return {topic: fetch_topic_config(client, topic) for topic in list_topics(client)}


def is_marked_for_deletion(client: ZkClient, topic: str) -> bool:
    return client.exists(znodes.delete_topic_path(topic)) is not None


# --- writing


def create_topic(
    client: ZkClient,
    topic: str,
    partitions: int,
    replication_factor: int,
    config: Mapping[str, str] | None = None,
) -> dict[int, list[int]]:
    """Create a topic over the live brokers; its assignment.

    Raises AdminOperationError, InvalidTopicError, ConfigError, TopicExistsError.
    """
    brokers = _sorted_brokers(client)
    assignment = assign_replicas(brokers, partitions, replication_factor)
    create_topic_with_assignment(client, topic, assignment, config)
    return assignment


def create_topic_with_assignment(
    client: ZkClient,
    topic: str,
    assignment: Assignment,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic just so; whether the brokers exist is not looked at.

    Raises InvalidTopicError, ConfigError, InvalidArgumentError, TopicExistsError.
    """
    config = config or {}
    validate_topic(topic)
    LogConfig.validate(config)
    check_assignment(assignment)
    if topic_exists(client, topic):
        raise TopicExistsError(f'Topic "{topic}" already exists.')
    data = znodes.encode_topic(assignment)
    logger.info("Topic creation %s", data.decode())
    while not _create(client, topic, data, znodes.encode_topic_config(config)):
        pass


def _create(client: ZkClient, topic: str, data: bytes, config: bytes) -> bool:
    """One transaction for both nodes; False when the ground moved and it should be tried again."""
    path, config_path = znodes.topic_path(topic), znodes.topic_config_path(topic)
    # A topic deleted by hand leaves its config behind.
    leftover = client.exists(config_path) is not None
    write_config: Op = SetOp(config_path, config) if leftover else CreateOp(config_path, config)
    try:
        client.multi([write_config, CreateOp(path, data)])
    except NodeExistsError as error:
        if error.path == config_path and not error.after_loss:
            return False
        found = client.get_if_exists(path)
        if found is None:
            return False
        if not error.after_loss or found[0] != data:
            raise TopicExistsError(f"topic {topic} already exists") from None
    except NoNodeError:
        client.ensure_path(znodes.TOPIC_CONFIG)
        client.ensure_path(znodes.BROKER_TOPICS)
        return False
    return True


def add_partitions(
    client: ZkClient, topic: str, partitions: int, replica_assignment: str = ""
) -> dict[int, list[int]]:
    """Grow a topic to ``partitions``; the new ones' assignment.

    ``replica_assignment`` lists all partitions, "1:2,2:1"; the entries of existing ones are
    ignored. Raises AdminOperationError.
    """
    path = znodes.topic_path(topic)
    while True:
        found = client.get_if_exists(path)
        existing = {} if found is None else znodes.decode_topic(path, found[0])
        if found is None or not existing:
            raise AdminOperationError(f"The topic {topic} does not exist")
        added = _new_partitions(client, existing, partitions, replica_assignment)
        data = znodes.encode_topic({**existing, **added})
        logger.info("Add partition list for %s is %s", topic, added)
        logger.info("Topic update %s", data.decode())
        try:
            client.set(path, data, found[1].version)
        except BadVersionError:
            continue
        return added


def _new_partitions(
    client: ZkClient,
    existing: Mapping[int, Sequence[int]],
    partitions: int,
    replica_assignment: str,
) -> dict[int, list[int]]:
    replicas = existing[min(existing)]
    if partitions <= len(existing):
        raise AdminOperationError("The number of partitions for a topic can only be increased")
    brokers = _sorted_brokers(client)
    if replica_assignment:
        added = parse_manual_assignment(replica_assignment, brokers, len(existing))
    else:
        # A broker id where an index belongs: so does 0.8.2.2 (KAFKA-2146), to the same effect.
        added = assign_replicas(
            brokers,
            partitions - len(existing),
            len(replicas),
            start=replicas[0],
            shift=replicas[0],
            first_partition=len(existing),
        )
    if any(len(new) != len(replicas) for new in added.values()):
        raise AdminOperationError(
            "The replication factor in manual replication assignment  is not equal to the "
            f"existing replication factor for the topic {len(replicas)}"
        )
    return added


def parse_manual_assignment(
    text: str, brokers: Collection[int], first_partition: int
) -> dict[int, list[int]]:
    """The entries of "0:1,1:2" from ``first_partition`` on. Raises AdminOperationError."""
    added: dict[int, list[int]] = {}
    for partition, entry in enumerate(text.split(",")[first_partition:], first_partition):
        replicas = [parse_broker_id(word) for word in entry.split(":")]
        listed = f"List({', '.join(map(str, replicas))})"
        if len(set(replicas)) != len(replicas):
            raise AdminOperationError(f"duplicate brokers in replica assignment: {listed}")
        if not set(replicas) <= set(brokers):
            raise AdminOperationError(
                f"some specified brokers not available. specified brokers: {listed}"
                f"available broker:Set({', '.join(map(str, brokers))})"
            )
        added[partition] = replicas
        if len(replicas) != len(added[first_partition]):
            raise AdminOperationError(
                f"partition {partition - first_partition} has different replication factor: "
                f"{listed}"
            )
    return added


def parse_broker_id(text: str) -> int:
    """Raises NumberFormatError."""
    try:
        return int(text)
    except ValueError:
        raise NumberFormatError(text.strip()) from None


def change_topic_config(client: ZkClient, topic: str, config: Mapping[str, str]) -> None:
    """Replace all overrides of a topic and notify the brokers.

    Raises AdminOperationError without such a topic, ConfigError.
    """
    if not topic_exists(client, topic):
        raise AdminOperationError(f'Topic "{topic}" does not exist.')
    LogConfig.validate(config)
    client.create_or_set(znodes.topic_config_path(topic), znodes.encode_topic_config(config))
    client.create(
        znodes.config_change_path_prefix(),
        znodes.encode_config_change(topic),
        sequence=True,
        makepath=True,
    )


def delete_topic(client: ZkClient, topic: str) -> None:
    """Mark a topic for deletion. Raises NodeExistsError if it is marked already."""
    client.create(znodes.delete_topic_path(topic), makepath=True)


def _sorted_brokers(client: ZkClient) -> list[int]:
    return sorted(int(name) for name in client.children(znodes.BROKER_IDS))


# --- offsets that consumers keep in ZooKeeper


def fetch_consumer_offset(client: ZkClient, group: str, topic: str, partition: int) -> int | None:
    """The committed offset, None without one. Raises MalformedNodeError."""
    path = znodes.consumer_offset_path(group, topic, partition)
    found = client.get_if_exists(path)
    return None if found is None else znodes.decode_offset(path, found[0])


def store_consumer_offset(
    client: ZkClient, group: str, topic: str, partition: int, offset: int
) -> None:
    path = znodes.consumer_offset_path(group, topic, partition)
    client.create_or_set(path, znodes.encode_offset(offset))
