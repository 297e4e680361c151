"""Reads and writes the settings of entities in ZooKeeper (kafka.zk.AdminZkClient).

An entity is a path, see ``entities``. Does not know which settings there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from zk import entities
from zk.client import ZkClient
from zk.errors import BadVersionError, NodeExistsError
from zk.znodes import decode_topic_config, encode_topic_config

Change = Callable[[dict[str, str]], Mapping[str, str]]


def fetch(client: ZkClient, entity: str) -> dict[str, str]:
    """The entity's settings; empty if it has no node. Raises MalformedNodeError."""
    path = entities.config_path(entity)
    found = client.get_if_exists(path)
    return {} if found is None else decode_topic_config(path, found[0])


def names(client: ZkClient, parent: str) -> list[str]:
    """The entities below ``parent``, sorted: a type, or an entity and a type."""
    below = client.children_if_exists(entities.config_path(parent))
    return [f"{parent}/{name}" for name in sorted(below)]


def alter(client: ZkClient, entity: str, change: Change) -> None:
    """Replace an entity's settings by ``change`` of the present ones, and notify the brokers.

    ``change`` is called again if another writer was first. Raises MalformedNodeError.
    """
    path = entities.config_path(entity)
    while True:
        found = client.get_if_exists(path)
        present = {} if found is None else decode_topic_config(path, found[0])
        data = encode_topic_config(change(present))
        try:
            if found is None:
                client.create(path, data, makepath=True)
            else:
                client.set(path, data, found[1].version)
        except (BadVersionError, NodeExistsError):
            continue
        break
    notify(client, entity)


def notify(client: ZkClient, entity: str) -> None:
    """Announce to brokers that an entity's settings have changed."""
    client.create(
        entities.CONFIG_CHANGE,
        entities.encode_config_change(entity),
        sequence=True,
        makepath=True,
    )
