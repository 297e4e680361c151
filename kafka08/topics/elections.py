"""Preferred replica elections: the partitions of one, read from JSON and asked of the controller.

The controller elects, where the preferred replica is alive and in sync.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kafka08 import admin
from kafka08.admin import AdminCommandFailedError
from kafka08.common import TopicPartition
from kafka08.errors import AdminOperationError
from zk import znodes
from zk.client import ZkClient
from zk.errors import NodeExistsError
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.admin.PreferredReplicaLeaderElectionCommand")


def parse_partitions(path: str, data: bytes) -> list[TopicPartition]:
    """The partitions that JSON lists. Raises AdminOperationError, MalformedNodeError."""
    try:
        node = znodes.decode_json(path, data)
    except MalformedNodeError:
        node = None
    if node is None or (isinstance(node, dict) and "partitions" not in node):
        raise AdminOperationError("Preferred replica election data is empty")
    partitions = znodes.decode_partitions(path, data)
    if len(partitions) != len(node["partitions"]):
        listed = [TopicPartition(e["topic"], e["partition"]) for e in node["partitions"]]
        twice = [str(tp) for tp in partitions if listed.count(tp) > 1]
        raise AdminOperationError(
            f"Preferred replica election data contains duplicate partitions: {','.join(twice)}"
        )
    return partitions


def start(client: ZkClient, partitions: Iterable[TopicPartition]) -> None:
    """Hand those that exist to the controller. Raises AdminCommandFailedError."""
    listed = list(partitions)
    try:
        existing = admin.fetch_assignments(client, dict.fromkeys(tp.topic for tp in listed))
        for tp in listed:
            if tp not in existing:
                logger.error(
                    "Skipping preferred replica leader election for partition %s "
                    "since it doesn't exist",
                    tp,
                )
        _write(client, [tp for tp in listed if tp in existing])
    except Exception as error:
        raise AdminCommandFailedError("Admin command failed") from error


def _write(client: ZkClient, partitions: list[TopicPartition]) -> None:
    try:
        admin.start_preferred_election(client, partitions)
    except NodeExistsError:
        pending = admin.fetch_preferred_elections(client)
        raise AdminOperationError(
            "Preferred replica leader election currently in progress for "
            f"{scala_set(pending)}. Aborting operation"
        ) from None


def scala_set(partitions: Iterable[TopicPartition]) -> str:
    """The words of the JVM's messages."""
    return f"Set({', '.join(map(str, partitions))})"
