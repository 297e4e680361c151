"""Entities with settings in ZooKeeper: topics, clients, users, brokers, ips. Their names, nodes and
the notices of their changes, as pure functions.

0.8.2.2 knows topics only, and notices that are a topic in quotes. Those of other entities are as in
Kafka 0.10.1 and later; 0.8.2.2 takes them for topics that it does not have. An entity is written as
a path below /config: ``topics/t``, ``users/alice``, ``users/alice/clients/<default>``. Names of
users and clients are percent-encoded there.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from zk.znodes import TOPIC_CONFIG_CHANGES, MalformedNodeError, decode_object, encode_json

CONFIG = "/config"
TOPICS, CLIENTS, USERS, BROKERS, IPS = ENTITY_TYPES = (
    "topics",
    "clients",
    "users",
    "brokers",
    "ips",
)
DEFAULT = "<default>"
"""The name of the entity that stands for all that have no settings of their own."""

_CHANGE_PREFIX = "config_change_"
CONFIG_CHANGE = f"{TOPIC_CONFIG_CHANGES}/{_CHANGE_PREFIX}"
"""The prefix of a sequential node, to which ZooKeeper appends ten digits."""

desanitize = unquote


def sanitize(name: str) -> str:
    """A name as a part of a path (org.apache.kafka.common.utils.Sanitizer)."""
    return quote(name, safe="").replace("~", "%7E")


def config_path(entity: str) -> str:
    """The node of an entity's settings, or the parent of all entities of a type."""
    return f"{CONFIG}/{entity}"


def config_change_path(name: str) -> str:
    return f"{TOPIC_CONFIG_CHANGES}/{name}"


def config_change_number(name: str) -> int:
    """The sequence number in the name of a child of /config/changes. Raises MalformedNodeError."""
    digits = name[len(_CHANGE_PREFIX) :]
    is_number = digits.isdecimal() and len(digits) < 20
    if not name.startswith(_CHANGE_PREFIX) or not is_number:
        raise MalformedNodeError(config_change_path(name), "not a change notification")
    return int(digits)


def encode_config_change(entity: str) -> bytes:
    """A topic's notice has the form of 0.8.2.2, which brokers of 0.8.2.2 must be able to read."""
    kind, _, name = entity.partition("/")
    if kind == TOPICS:
        return b'"%b"' % name.encode()
    return encode_json({"version": 2, "entity_path": entity})


def decode_config_change(path: str, data: bytes) -> str:
    """The entity that a notice of any release names. Raises MalformedNodeError.

    A notice of 0.8.2.2 is a topic with one byte before and one after it.
    """
    if data[:1] == b"{":
        return _named(path, data)
    if len(data) < 3:
        raise MalformedNodeError(path, "names no topic")
    try:
        return f"{TOPICS}/{data[1:-1].decode()}"
    except UnicodeDecodeError:
        raise MalformedNodeError(path, "not UTF-8") from None


def _named(path: str, data: bytes) -> str:
    node = decode_object(path, data)
    if node.get("version") == 1:
        entity = f"{node.get('entity_type')}/{node.get('entity_name')}"
    else:
        entity = str(node.get("entity_path"))
    parts = entity.split("/")
    if len(parts) not in (2, 4) or any(part in ("", ".", "..", "None") for part in parts):
        raise MalformedNodeError(path, "names no entity")
    if not entity.isprintable():
        raise MalformedNodeError(path, "names an entity with control characters")
    return entity
