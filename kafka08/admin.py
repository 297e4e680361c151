"""Topics in ZooKeeper: create, grow, configure, move, mark for deletion.

These functions only read and write nodes; brokers act on the changes. Error texts are those of
kafka.admin.AdminUtils. Unlike the original, a topic and its config are created in one
transaction, and partitions are added only to the assignment that was read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from kafka08.common import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition, validate_topic
from kafka08.errors import AdminOperationError, TopicExistsError
from kafka08.placement import BrokerPlace, InvalidPartitionsError, assign_replicas
from kafka08.settings.settings import NumberFormatError
from kafka08.settings.topic import LogConfig
from zk import entities, entity_configs, znodes
from zk.client import CreateOp, Op, SetOp, ZkClient
from zk.errors import BadVersionError, NodeExistsError, NoNodeError
from zk.registry import live_brokers, registrations

logger = logging.getLogger("kafka.admin.AdminUtils$")

_SHOWN_BYTES = 2000
T = TypeVar("T")

Assignment = Mapping[int, Sequence[int]]
"""Partition to replicas, the preferred leader first."""


# Topics that keep their number of partitions, each with the refusal: a group, or a transactional
# id, belongs to the partition that its hash says.
FIXED_PARTITIONS: Final = {
    OFFSETS_TOPIC: "The number of partitions for the offsets topic cannot be changed.",
    TRANSACTIONS_TOPIC: "The number of partitions for the topic of transactions cannot be changed.",
}


class InvalidArgumentError(AdminOperationError):
    """An argument that the JVM rejects with IllegalArgumentException."""

    java_class = "java.lang.IllegalArgumentException"


class AdminCommandFailedError(AdminOperationError):
    """A command that was refused or could not be carried out."""

    java_class = "kafka.common.AdminCommandFailedException"


class InvalidAssignmentError(AdminOperationError):
    """An assignment of partitions to brokers that is not valid."""


class UnevenAssignmentError(InvalidAssignmentError, InvalidArgumentError):
    """A replica is named twice, or partitions differ in their number of replicas."""

    java_class = InvalidArgumentError.java_class


class UnknownTopicError(AdminOperationError):
    """The topic does not exist."""


# --- assignments


def check_assignment(assignment: Assignment) -> None:
    """Check that all partitions have as many replicas, none twice. Raises UnevenAssignmentError."""
    if len({len(replicas) for replicas in assignment.values()}) != 1:
        raise UnevenAssignmentError(
            "requirement failed: All partitions should have the same number of replicas."
        )
    if any(len(set(replicas)) != len(replicas) for replicas in assignment.values()):
        listed = ", ".join(
            f"{partition} -> List({', '.join(map(str, replicas))})"
            for partition, replicas in assignment.items()
        )
        raise UnevenAssignmentError(
            f"requirement failed: Duplicate replica assignment found: Map({listed})"
        )


# --- reading


def read_node(client: ZkClient, path: str, decode: Callable[[str, bytes], T]) -> T | None:
    """The value of a node; None if there is no such node. Raises MalformedNodeError."""
    found = client.get_if_exists(path)
    return None if found is None else decode(path, found[0])


def list_topics(client: ZkClient) -> list[str]:
    """Every topic, sorted, including those marked for deletion."""
    return sorted(client.children_if_exists(znodes.BROKER_TOPICS))


def live_places(client: ZkClient, *, rack_aware: bool = True) -> list[BrokerPlace]:
    """The live brokers by id, with their racks and units if ``rack_aware``. Malformed registrations
    are skipped with a warning. Raises NoNodeError before the first broker's start."""
    client.children(znodes.BROKER_IDS)
    found = []
    for broker_id, registration in registrations(client).items():
        if registration is None:
            logger.warning("Skipping broker %d: its registration is malformed", broker_id)
        else:
            found.append(BrokerPlace(broker_id, *registration.location))
    return found if rack_aware else [BrokerPlace(each.broker_id) for each in found]


def live_broker_ids(client: ZkClient) -> list[int]:
    """The ids of the live brokers, sorted. Raises NoNodeError before the first broker's start."""
    client.children(znodes.BROKER_IDS)
    return [broker.id for broker in live_brokers(client)]


def topic_exists(client: ZkClient, topic: str) -> bool:
    return client.exists(znodes.topic_path(topic)) is not None


def fetch_assignment(client: ZkClient, topic: str) -> dict[int, tuple[int, ...]] | None:
    """Partition to replicas; None if the topic does not exist. Raises MalformedNodeError."""
    return read_node(client, znodes.topic_path(topic), znodes.decode_topic)


def fetch_partition_state(
    client: ZkClient, topic: str, partition: int
) -> znodes.PartitionStateNode | None:
    """Leader, epochs and isr; None before the first election. Raises MalformedNodeError."""
    path = znodes.partition_state_path(topic, partition)
    return read_node(client, path, znodes.decode_partition_state)


def fetch_topic_config(client: ZkClient, topic: str) -> dict[str, str]:
    """The topic's overrides; empty if it has no node. Raises MalformedNodeError."""
    return entity_configs.fetch(client, f"{entities.TOPICS}/{topic}")


def fetch_all_topic_configs(client: ZkClient) -> dict[str, dict[str, str]]:
    """Topic to overrides. A malformed node is logged as an error and counts as empty."""
    configs = {}
    for topic in list_topics(client):
        try:
            configs[topic] = fetch_topic_config(client, topic)
        except znodes.MalformedNodeError as error:
            logger.error("Ignoring the configuration of topic %s: %s", topic, error)
    return configs


def is_marked_for_deletion(client: ZkClient, topic: str) -> bool:
    return client.exists(znodes.delete_topic_path(topic)) is not None


# --- writing


def create_topic(
    client: ZkClient,
    topic: str,
    partitions: int,
    replication_factor: int,
    config: Mapping[str, str] | None = None,
    *,
    rack_aware: bool = True,
) -> dict[int, list[int]]:
    """Create a topic over the live brokers and return its assignment.

    Raises AdminOperationError, InvalidTopicError, ConfigError, TopicExistsError.
    """
    places = live_places(client, rack_aware=rack_aware)
    assignment = assign_replicas(places, partitions, replication_factor)
    create_topic_with_assignment(client, topic, assignment, config)
    return assignment


def create_topic_with_assignment(
    client: ZkClient,
    topic: str,
    assignment: Assignment,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic with this assignment, without checking that the brokers exist.

    Raises InvalidTopicError, ConfigError, InvalidArgumentError, TopicExistsError.
    """
    config = config or {}
    check_new_topic(client, topic, assignment, config)
    data = znodes.encode_topic(assignment)
    logger.info("Topic creation %s", _shown(data))
    while not _create(client, topic, data, znodes.encode_topic_config(config)):
        pass


def _shown(data: bytes) -> str:
    """A node's text for the log: up to 2,000 bytes of it."""
    text = data[:_SHOWN_BYTES].decode(errors="replace")
    return text if len(data) <= _SHOWN_BYTES else f"{text}... ({len(data)} bytes)"


def check_new_topic(
    client: ZkClient, topic: str, assignment: Assignment, config: Mapping[str, str]
) -> None:
    """Check the arguments of ``create_topic_with_assignment``; raises as it does."""
    validate_topic(topic)
    LogConfig.validate(config)
    check_assignment(assignment)
    if topic_exists(client, topic):
        raise TopicExistsError(f'Topic "{topic}" already exists.')


def _create(client: ZkClient, topic: str, data: bytes, config: bytes) -> bool:
    """Write both nodes in one transaction; False if a node changed and it should be tried again."""
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
        client.ensure_path(znodes.TOPIC_CONFIG, znodes.BROKER_TOPICS)
        return False
    return True


def add_partitions(
    client: ZkClient,
    topic: str,
    partitions: int,
    new_replicas: Sequence[Sequence[int]] = (),
    validate_only: bool = False,
    *,
    rack_aware: bool = True,
) -> dict[int, list[int]]:
    """Grow a topic to ``partitions`` and return the assignment of the new ones.

    ``new_replicas`` are those of each new partition. Raises AdminOperationError.
    """
    path = znodes.topic_path(topic)
    while True:
        found = client.get_if_exists(path)
        existing = {} if found is None else znodes.decode_topic(path, found[0])
        if found is None or not existing:
            raise UnknownTopicError(f"The topic {topic} does not exist")
        places = live_places(client, rack_aware=rack_aware)
        added = _new_partitions(places, existing, partitions, new_replicas)
        if validate_only:
            return added
        data = znodes.encode_topic({**existing, **added})
        logger.info("Add partition list for %s is %s", topic, _shown(str(added).encode()))
        logger.info("Topic update %s", _shown(data))
        try:
            client.set(path, data, found[1].version)
        except BadVersionError:
            continue
        return added


def _new_partitions(
    places: Sequence[BrokerPlace],
    existing: Mapping[int, Sequence[int]],
    partitions: int,
    new_replicas: Sequence[Sequence[int]],
) -> dict[int, list[int]]:
    replicas = existing[min(existing)]
    if partitions <= len(existing):
        raise InvalidPartitionsError("The number of partitions for a topic can only be increased")
    brokers = [each.broker_id for each in places]
    if new_replicas:
        if len(new_replicas) != partitions - len(existing):
            raise InvalidAssignmentError(
                f"{partitions - len(existing)} new partitions, but replicas for "
                f"{len(new_replicas)} of them"
            )
        added = place_by_hand(new_replicas, brokers, len(existing))
    else:
        # 0.8.2.2 also passes a broker id where an index belongs (KAFKA-2146).
        added = assign_replicas(
            places,
            partitions - len(existing),
            len(replicas),
            start=replicas[0],
            shift=replicas[0],
            first_partition=len(existing),
        )
    if any(len(new) != len(replicas) for new in added.values()):
        raise InvalidAssignmentError(
            "The replication factor in manual replication assignment  is not equal to the "
            f"existing replication factor for the topic {len(replicas)}"
        )
    return added


def place_by_hand(
    new_replicas: Sequence[Sequence[int]], brokers: Collection[int], first_partition: int
) -> dict[int, list[int]]:
    """Parse the replicas of the partitions from ``first_partition`` on.

    Raises InvalidAssignmentError.
    """
    added: dict[int, list[int]] = {}
    for partition, replicas in enumerate(new_replicas, first_partition):
        listed = f"List({', '.join(map(str, replicas))})"
        if len(set(replicas)) != len(replicas):
            raise InvalidAssignmentError(f"duplicate brokers in replica assignment: {listed}")
        if not set(replicas) <= set(brokers):
            raise InvalidAssignmentError(
                f"some specified brokers not available. specified brokers: {listed}"
                f"available broker:Set({', '.join(map(str, brokers))})"
            )
        added[partition] = list(replicas)
        if len(replicas) != len(added[first_partition]):
            raise InvalidAssignmentError(
                f"partition {partition - first_partition} has different replication factor: "
                f"{listed}"
            )
    return added


def parse_replica_assignment(text: str) -> dict[int, list[int]]:
    """ "0:1,1:2" to partition and replicas. Raises AdminOperationError."""
    assignment: dict[int, list[int]] = {}
    for partition, entry in enumerate(text.rstrip(",").split(",")):
        replicas = [parse_broker_id(word) for word in entry.split(":")]
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


def parse_broker_id(text: str) -> int:
    """Raises NumberFormatError."""
    try:
        return int(text)
    except ValueError:
        raise NumberFormatError(text.strip()) from None


def change_topic_config(client: ZkClient, topic: str, config: Mapping[str, str]) -> None:
    """Replace all overrides of a topic and notify the brokers.

    Raises AdminOperationError if the topic does not exist, and ConfigError.
    """
    if not topic_exists(client, topic):
        raise UnknownTopicError(f'Topic "{topic}" does not exist.')
    LogConfig.validate(config)
    client.create_or_set(znodes.topic_config_path(topic), znodes.encode_topic_config(config))
    entity_configs.notify(client, f"{entities.TOPICS}/{topic}")


def delete_topic(client: ZkClient, topic: str) -> None:
    """Mark a topic for deletion. Raises NodeExistsError if it is marked already."""
    client.create(znodes.delete_topic_path(topic), makepath=True)


# --- moving replicas and leaders


def fetch_assignments(
    client: ZkClient, topics: Iterable[str]
) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of every partition of ``topics``. Topics that do not exist are left out."""
    return {
        TopicPartition(topic, partition): replicas
        for topic in topics
        for partition, replicas in (fetch_assignment(client, topic) or {}).items()
    }


def fetch_reassignments(client: ZkClient) -> dict[TopicPartition, tuple[int, ...]]:
    """The partitions being moved, with their new replicas. Raises MalformedNodeError."""
    return read_node(client, znodes.REASSIGN_PARTITIONS, znodes.decode_reassignment) or {}


def start_reassignment(
    client: ZkClient, partitions: Mapping[TopicPartition, Sequence[int]]
) -> None:
    """Ask the controller to move partitions. Raises NodeExistsError if a move is under way."""
    data = znodes.encode_reassignment(partitions)
    client.create(znodes.REASSIGN_PARTITIONS, data, makepath=True)


def fetch_preferred_elections(client: ZkClient) -> list[TopicPartition]:
    """The partitions with a pending preferred replica election. Raises MalformedNodeError."""
    return read_node(client, znodes.PREFERRED_REPLICA_ELECTION, znodes.decode_partitions) or []


def start_preferred_election(client: ZkClient, partitions: Iterable[TopicPartition]) -> None:
    """Ask for a preferred replica election. Raises NodeExistsError if one is under way."""
    data = znodes.encode_partitions(partitions)
    client.create(znodes.PREFERRED_REPLICA_ELECTION, data, makepath=True)
