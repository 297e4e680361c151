"""Paths and payloads of every node of 0.8.2.2 in ZooKeeper, as pure functions.

Payloads are written exactly as kafka.utils.ZkUtils writes them, including the key order of Scala's
maps. They are read as its JSON reader does: every number must fit a signed 32-bit integer, integers
and strings are distinct, unknown keys are ignored. For a payload on which the original would fail,
these functions raise MalformedNodeError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

from kafka08.common import PLAINTEXT, Endpoint, TopicPartition, java_string_hash
from kafka08.errors import KafkaError
from zk import endpoints, locations
from zk.locations import NOWHERE, Location

CONSUMERS = "/consumers"
BROKER_IDS = "/brokers/ids"
BROKER_TOPICS = "/brokers/topics"
OFFLINE_REPLICAS = "/brokers/offline_replicas"
MESSAGE_FORMATS = "/brokers/message_formats"
TOPIC_CONFIG = "/config/topics"
TOPIC_CONFIG_CHANGES = "/config/changes"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
DELETE_TOPICS = "/admin/delete_topics"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
DELETE_REPLICAS = "/admin/delete_replicas"
ISR_CHANGES = "/isr_change_notification"

COMMON_PATHS = (
    CONSUMERS,
    BROKER_IDS,
    BROKER_TOPICS,
    TOPIC_CONFIG_CHANGES,
    TOPIC_CONFIG,
    DELETE_TOPICS,
)

STATIC, WHITE_LIST, BLACK_LIST = "static", "white_list", "black_list"

T = TypeVar("T")
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
# The order in which a mutable Scala map of up to four partitions lists them.
_MUTABLE_ORDER = {2: 0, 1: 1, 3: 2, 0: 3}
INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


class MalformedNodeError(KafkaError):
    """The payload of ``path`` is not one that 0.8.2.2 writes there; ``reason`` gives details."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"Malformed data at {path}: {reason}")
        self.path = path
        self.reason = reason


class BrokerRegistration(NamedTuple):
    """/brokers/ids/N. ``timestamp``: ms since the epoch as text.

    ``formats``: the highest message format that the broker knows; None if it does not say, as
    0.8.2.2, which ignores the field. ``endpoints``: of all listeners; without them host and port
    tell of the only one. See ``zk.endpoints``, also for a broker without host and port.
    """

    host: str
    port: int
    jmx_port: int = -1
    timestamp: str = ""
    formats: int | None = None
    endpoints: tuple[Endpoint, ...] = ()
    location: Location = NOWHERE

    @property
    def all_endpoints(self) -> tuple[Endpoint, ...]:
        """``endpoints``, or the one of 0.8.2.2."""
        if self.endpoints or self.port == endpoints.NO_PORT:
            return self.endpoints
        return (Endpoint(PLAINTEXT, PLAINTEXT, self.host, self.port),)

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((each for each in self.all_endpoints if each.listener == listener), None)


class ControllerNode(NamedTuple):
    """/controller."""

    broker_id: int
    timestamp: str = ""


class PartitionStateNode(NamedTuple):
    """/brokers/topics/T/partitions/P/state. ``leader`` -1: none. ``isr`` in stored order."""

    leader: int
    leader_epoch: int
    controller_epoch: int
    isr: tuple[int, ...]


class ConsumerRegistration(NamedTuple):
    """/consumers/G/ids/C. ``subscription``: topic to streams, or the one regex to streams."""

    subscription: dict[str, int]
    pattern: str = STATIC
    timestamp: str = ""


# --- paths


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def offline_replicas_path(broker_id: int) -> str:
    """Only in kafka08: 0.8.2.2 brokers halt when a disk fails."""
    return f"{OFFLINE_REPLICAS}/{broker_id}"


def message_format_path(broker_id: int) -> str:
    """Only in kafka08: the highest message format of a broker, also while it is away."""
    return f"{MESSAGE_FORMATS}/{broker_id}"


def isr_change_path_prefix() -> str:
    """The prefix of a sequential node. Introduced in 0.9; 0.8.2.2 does not announce isrs."""
    return f"{ISR_CHANGES}/isr_change_"


def delete_replica_path(topic: str, partition: int, broker_id: int) -> str:
    """Only in kafka08: the broker must still delete its replica of the partition."""
    return f"{DELETE_REPLICAS}/{topic}-{partition}-{broker_id}"


def replica_to_delete(name: str) -> tuple[TopicPartition, int]:
    """Partition and broker, from a child of /admin/delete_replicas. Raises MalformedNodeError."""
    found = re.fullmatch(r"(.+)-([0-9]{1,10})-([0-9]{1,10})", name)
    if found is None:
        raise MalformedNodeError(f"{DELETE_REPLICAS}/{name}", "not a replica")
    return TopicPartition(found[1], int(found[2])), int(found[3])


def topic_path(topic: str) -> str:
    return f"{BROKER_TOPICS}/{topic}"


def topic_partitions_path(topic: str) -> str:
    return f"{BROKER_TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{BROKER_TOPICS}/{topic}/partitions/{partition}"


def partition_state_path(topic: str, partition: int) -> str:
    return f"{BROKER_TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIG}/{topic}"


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


def group_path(group: str) -> str:
    return f"{CONSUMERS}/{group}"


def consumer_ids_path(group: str) -> str:
    return f"{CONSUMERS}/{group}/ids"


def consumer_id_path(group: str, consumer: str) -> str:
    return f"{CONSUMERS}/{group}/ids/{consumer}"


def consumer_owners_path(group: str) -> str:
    return f"{CONSUMERS}/{group}/owners"


def consumer_topic_owners_path(group: str, topic: str) -> str:
    return f"{CONSUMERS}/{group}/owners/{topic}"


def consumer_owner_path(group: str, topic: str, partition: int) -> str:
    return f"{CONSUMERS}/{group}/owners/{topic}/{partition}"


def consumer_offsets_path(group: str) -> str:
    return f"{CONSUMERS}/{group}/offsets"


def consumer_topic_offsets_path(group: str, topic: str) -> str:
    return f"{CONSUMERS}/{group}/offsets/{topic}"


def consumer_offset_path(group: str, topic: str, partition: int) -> str:
    return f"{CONSUMERS}/{group}/offsets/{topic}/{partition}"


# --- JSON as in kafka.utils.Json


def encode_json(value: object) -> bytes:
    """Compact UTF-8 JSON. Unlike the original, quotes in strings are escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _int32(digits: str) -> int:
    number = int(digits)
    if not INT32_MIN <= number <= INT32_MAX:
        raise ValueError(f"{digits} does not fit 32 bits")
    return number


def _no_fraction(digits: str) -> NoReturn:
    raise ValueError(f"{digits} is not an integer")


def decode_json(path: str, data: bytes) -> Any:
    """Any JSON value under the original's rule for numbers. Raises MalformedNodeError.

    A backslash that does not begin a valid escape stands for itself: 0.8.0 and 0.8.1 consumers
    wrote the regexes of their subscriptions unescaped.
    """
    try:
        text = _ESCAPE.sub(lambda found: found[0] if found[1] else r"\\", data.decode())
        return json.loads(
            text, parse_int=_int32, parse_float=_no_fraction, parse_constant=_no_fraction
        )
    except (ValueError, RecursionError) as error:
        raise MalformedNodeError(path, str(error)) from None


def scala_map_order(keys: Iterable[str]) -> list[str]:
    """The order in which an immutable Scala 2.11 map of strings lists its keys.

    Up to four keys: as inserted. More: a trie over five bits of the improved hash at a time,
    lowest first.
    """
    listed = list(keys)
    if len(listed) <= 4:
        return listed

    def trie_key(key: str) -> list[int]:
        h = java_string_hash(key) & 0xFFFFFFFF
        h = (h + ~(h << 9)) & 0xFFFFFFFF
        h ^= h >> 14
        h = (h + (h << 4)) & 0xFFFFFFFF
        h ^= h >> 10
        return [h >> shift & 31 for shift in range(0, 32, 5)]

    return sorted(listed, key=trie_key)


def java_properties_order(keys: Iterable[str]) -> list[str]:
    """The order in which java.util.Properties (since Java 9) lists its keys."""
    listed = list(keys)
    size = 16
    while len(listed) >= size * 3 // 4:
        size *= 2

    def bucket(key: str) -> int:
        h = java_string_hash(key) & 0xFFFFFFFF
        return (h ^ h >> 16) % size

    return sorted(listed, key=bucket)


# --- readers of JSON members


def decode_object(path: str, data: bytes) -> dict[str, object]:
    """A JSON object. Raises MalformedNodeError."""
    return _object(path, decode_json(path, data))


def _object(path: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise MalformedNodeError(path, "not a JSON object")
    return value


def _member(path: str, node: Mapping[str, object], key: str) -> object:
    if key not in node:
        raise MalformedNodeError(path, f"{key} is missing")
    return node[key]


def _integer(path: str, node: Mapping[str, object], key: str) -> int:
    value = _member(path, node, key)
    if type(value) is not int:
        raise MalformedNodeError(path, f"{key} is not an integer")
    return value


def _text(path: str, node: Mapping[str, object], key: str) -> str:
    value = _member(path, node, key)
    if not isinstance(value, str):
        raise MalformedNodeError(path, f"{key} is not a string")
    return value


def _ids(path: str, what: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or any(type(member) is not int for member in value):
        raise MalformedNodeError(path, f"{what} is not a list of integers")
    return tuple(value)


def _timestamp(node: Mapping[str, object]) -> str:
    """These members are not used, so any value is accepted, including bare numbers."""
    return str(node.get("timestamp", ""))


# --- /brokers


def encode_broker(registration: BrokerRegistration) -> bytes:
    # Five keys make a hashed map in Scala: this is its order.
    node: dict[str, object] = {
        "jmx_port": registration.jmx_port,
        "timestamp": registration.timestamp,
        "host": registration.host or None,
        "version": 1,
        "port": registration.port,
        **endpoints.members(registration.endpoints),
    }
    if registration.formats is not None:
        node["formats"] = registration.formats
    return encode_json(node | locations.members(registration.location))


def decode_broker(path: str, data: bytes) -> BrokerRegistration:
    """Only host and port are required (kafka.cluster.Broker.createBroker); the host may be null
    beside endpoints."""
    node = decode_object(path, data)
    jmx_port, formats = node.get("jmx_port", -1), node.get("formats")
    is_plain = "endpoints" not in node or node.get("host") is not None
    host = _text(path, node, "host") if is_plain else endpoints.NO_HOST
    port = _integer(path, node, "port")
    return BrokerRegistration(
        host,
        port,
        jmx_port if type(jmx_port) is int else -1,
        _timestamp(node),
        formats if type(formats) is int else None,
        endpoints.read(node),
        locations.read(node),
    )


def encode_cluster_id(cluster_id: str) -> bytes:
    return encode_json({"version": "1", "id": cluster_id})


def decode_cluster_id(path: str, data: bytes) -> str:
    """/cluster/id, a node of later releases. Raises MalformedNodeError."""
    return _text(path, decode_object(path, data), "id")


def encode_topic(assignment: Mapping[int, Sequence[int]]) -> bytes:
    """Partition to replicas, in the order the original lists them."""
    # The original builds it from a mutable map, whose order a small immutable map keeps.
    listed = sorted(assignment, key=lambda partition: _MUTABLE_ORDER.get(partition, -partition))
    keys = scala_map_order(str(partition) for partition in listed)
    return encode_json(
        {"version": 1, "partitions": {key: list(assignment[int(key)]) for key in keys}}
    )


def decode_topic(path: str, data: bytes) -> dict[int, tuple[int, ...]]:
    """Partition to replicas, by partition; no "partitions" member: no partition."""
    partitions = decode_object(path, data).get("partitions", {})
    assignment: dict[int, tuple[int, ...]] = {}
    for key, replicas in _object(path, partitions).items():
        if not (key.isascii() and key.isdecimal() and len(key) <= 10 and int(key) <= INT32_MAX):
            raise MalformedNodeError(path, f"{key!r} is not a partition")
        assignment[int(key)] = _ids(path, f"partition {key}", replicas)
    return dict(sorted(assignment.items()))


def encode_partition_state(state: PartitionStateNode) -> bytes:
    return encode_json(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
        }
    )


def decode_partition_state(path: str, data: bytes) -> PartitionStateNode:
    node = decode_object(path, data)
    return PartitionStateNode(
        _integer(path, node, "leader"),
        _integer(path, node, "leader_epoch"),
        _integer(path, node, "controller_epoch"),
        _ids(path, "isr", _member(path, node, "isr")),
    )


# --- /controller


def encode_controller(controller: ControllerNode) -> bytes:
    return encode_json(
        {"version": 1, "brokerid": controller.broker_id, "timestamp": controller.timestamp}
    )


def decode_controller(path: str, data: bytes) -> ControllerNode:
    """The object, or the bare broker id of older releases."""
    value = decode_json(path, data)
    if type(value) is int:
        return ControllerNode(value)
    node = _object(path, value)
    return ControllerNode(_integer(path, node, "brokerid"), _timestamp(node))


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_int32(path: str, data: bytes) -> int:
    """/controller_epoch, /brokers/message_formats/N. Raises MalformedNodeError."""
    return _decimal(path, data, 32)


# --- /admin


def encode_reassignment(partitions: Mapping[TopicPartition, Sequence[int]]) -> bytes:
    entries = [
        {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        for tp, replicas in partitions.items()
    ]
    return encode_json({"version": 1, "partitions": entries})


def decode_reassignment(path: str, data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Partition to its new replicas; the last entry of a partition counts."""

    def entry(node: dict[str, object]) -> tuple[TopicPartition, tuple[int, ...]]:
        replicas = _ids(path, "replicas", _member(path, node, "replicas"))
        return _topic_partition(path, node), replicas

    return dict(_entries(path, data, entry))


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """A preferred replica election, or an announcement of isrs that have changed."""
    entries = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return encode_json({"version": 1, "partitions": entries})


def decode_partitions(path: str, data: bytes) -> list[TopicPartition]:
    """The partitions in stored order, each once."""
    return list(dict.fromkeys(_entries(path, data, lambda node: _topic_partition(path, node))))


def _topic_partition(path: str, node: Mapping[str, object]) -> TopicPartition:
    return TopicPartition(_text(path, node, "topic"), _integer(path, node, "partition"))


def _entries(path: str, data: bytes, entry: Callable[[dict[str, object]], T]) -> list[T]:
    listed = decode_object(path, data).get("partitions", [])
    if not isinstance(listed, list):
        raise MalformedNodeError(path, "partitions is not a list")
    return [entry(_object(path, node)) for node in listed]


# --- /config


class OfflineReplicas(NamedTuple):
    """The replicas that a live broker cannot serve (``failed``) or cannot write (``full``)."""

    failed: list[TopicPartition]
    full: list[TopicPartition]


def encode_offline_replicas(
    failed: Iterable[TopicPartition], full: Iterable[TopicPartition] = ()
) -> bytes:
    """``{"version":1,"partitions":{topic: [partition, ...]}}``, and ``"full"`` likewise if any."""
    node: dict[str, object] = {"version": 1, "partitions": _by_topic(failed)}
    if listed := _by_topic(full):
        node["full"] = listed
    return encode_json(node)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return by_topic


def decode_offline_replicas(path: str, data: bytes) -> OfflineReplicas:
    """Raises MalformedNodeError."""
    node = decode_object(path, data)
    failed = _object(path, _member(path, node, "partitions"))
    full = _object(path, node.get("full", {}))
    return OfflineReplicas(_partitions(path, failed), _partitions(path, full))


def _partitions(path: str, by_topic: Mapping[str, object]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, partition)
        for topic, partitions in by_topic.items()
        for partition in _ids(path, topic, partitions)
    ]


def encode_topic_config(config: Mapping[str, str]) -> bytes:
    ordered = {key: str(config[key]) for key in java_properties_order(config)}
    return encode_json({"version": 1, "config": ordered})


def decode_topic_config(path: str, data: bytes) -> dict[str, str]:
    """The settings of a topic or another entity.

    Numbers and booleans, on which 0.8.2.2 fails, are read as their text.
    """
    if not data:
        return {}
    node = decode_object(path, data)
    if node.get("version", 1) != 1:
        raise MalformedNodeError(path, "version is not 1")
    config = _object(path, _member(path, node, "config"))
    if any(value is None or isinstance(value, (list, dict)) for value in config.values()):
        raise MalformedNodeError(path, "a config value is not a string")
    return {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()
    }


# --- /consumers


def encode_consumer(registration: ConsumerRegistration) -> bytes:
    return encode_json(
        {
            "version": 1,
            "subscription": dict(registration.subscription),
            "pattern": registration.pattern,
            "timestamp": registration.timestamp,
        }
    )


def decode_consumer(path: str, data: bytes) -> ConsumerRegistration:
    node = decode_object(path, data)
    topics = _object(path, _member(path, node, "subscription"))
    subscription = {topic: _integer(path, topics, topic) for topic in topics}
    pattern = _text(path, node, "pattern")
    if pattern not in (WHITE_LIST, BLACK_LIST) or not subscription:
        pattern = STATIC  # kafka.consumer.TopicCount reads any other value as static
    return ConsumerRegistration(subscription, pattern, _timestamp(node))


def encode_owner(consumer_thread: str) -> bytes:
    return consumer_thread.encode()


def encode_offset(offset: int) -> bytes:
    return str(offset).encode()


def decode_offset(path: str, data: bytes) -> int:
    return _decimal(path, data, 64)


def _decimal(path: str, data: bytes, bits: int) -> int:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise MalformedNodeError(path, "not UTF-8") from None
    digits = text[1:] if text[:1] in ("-", "+") else text
    # Python refuses to convert thousands of digits
    is_number = digits.isdecimal() and len(digits) <= bits
    if not is_number or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
        raise MalformedNodeError(path, f"{text[:50]!r} is not an integer of {bits} bits")
    return int(text)
