"""Moves of partitions between brokers: proposed, read from JSON, checked, asked of the controller.

The controller moves. Unlike the original, partitions are listed in order, and a request that names
no existing partition is refused (there it leaves a node that blocks every later one).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from kafka08 import admin
from kafka08.admin import AdminCommandFailedError
from kafka08.common import TopicPartition
from kafka08.placement import BrokerPlace, assign_replicas
from zk import znodes
from zk.client import ZkClient
from zk.errors import NodeExistsError
from zk.locations import NOWHERE
from zk.registry import registrations
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.admin.ReassignPartitionsCommand")

Moves = list[tuple[TopicPartition, tuple[int, ...]]]
"""Partitions with their new replicas, as a file lists them."""


def proposal(
    client: ZkClient, topics: Iterable[str], brokers: Sequence[int]
) -> dict[TopicPartition, Sequence[int]]:
    """All partitions of ``topics`` spread over ``brokers``, with regard to the racks and units of
    those that are live. Raises AdminOperationError."""
    live = registrations(client).items()
    known = {number: each.location for number, each in live if each is not None}
    places = [BrokerPlace(each, *known.get(each, NOWHERE)) for each in brokers]
    proposed: dict[TopicPartition, Sequence[int]] = {}
    for topic in sorted(topics):
        existing = admin.fetch_assignment(client, topic)
        if existing:
            factor = len(next(iter(existing.values())))
            spread = assign_replicas(places, len(existing), factor)
            proposed.update((TopicPartition(topic, p), spread[p]) for p in spread)
    return proposed


def start(client: ZkClient, moves: Moves) -> bool:
    """Create the controller's node; False if none of the partitions exists. Raises
    AdminCommandFailedError while others are being moved."""
    existing = admin.fetch_assignments(client, dict.fromkeys(tp.topic for tp, _ in moves))
    for tp, _ in moves:
        if tp not in existing:
            logger.error("Skipping reassignment of partition %s since it doesn't exist", tp)
    valid = {tp: replicas for tp, replicas in moves if tp in existing}
    if not valid:
        return False
    try:
        admin.start_reassignment(client, valid)
    except NodeExistsError:
        listed = ", ".join(
            f"{tp} -> ReassignedPartitionsContext({scala_list(replicas)},null)"
            for tp, replicas in admin.fetch_reassignments(client).items()
        )
        raise AdminCommandFailedError(
            f"Partition reassignment currently in progress for Map({listed}). Aborting operation"
        ) from None
    return True


def parse_topics(path: str, data: bytes) -> list[str]:
    """The topics of a --topics-to-move-json-file; none if it is not JSON."""
    return [_text(path, entry, "topic") for entry in _listed(path, data, "topics")]


def parse_moves(path: str, data: bytes) -> Moves:
    """The entries of a --reassignment-json-file, repeated ones too; none if it is not JSON.

    Raises MalformedNodeError for JSON of another shape.
    """
    moves: Moves = []
    for entry in _listed(path, data, "partitions"):
        # An entry at a time, because the decoder of the node keeps the last of equal ones.
        alone = znodes.encode_json({"partitions": [entry]})
        moves += znodes.decode_reassignment(path, alone).items()
    return moves


def _listed(path: str, data: bytes, key: str) -> list[object]:
    try:
        node = znodes.decode_json(path, data)
    except MalformedNodeError:
        return []
    if not isinstance(node, dict):
        raise MalformedNodeError(path, "not a JSON object")
    listed = node.get(key, [])
    if not isinstance(listed, list):
        raise MalformedNodeError(path, f"{key} is not a list")
    return listed


def _text(path: str, entry: object, key: str) -> str:
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, str):
        raise MalformedNodeError(path, f"{key} is missing or not a string")
    return value


def check_moves(moves: Moves) -> None:
    """Raises AdminCommandFailedError for a partition or a replica that is named twice."""
    refuse_duplicates(
        "Partition reassignment contains duplicate topic partitions: %s", [tp for tp, _ in moves]
    )
    repeated = [
        f"{tp} contains multiple entries for {','.join(map(str, twice))}"
        for tp, replicas in moves
        if (twice := _duplicates(replicas))
    ]
    if repeated:
        raise AdminCommandFailedError(
            f"Partition replica lists may not contain duplicate entries: {'. '.join(repeated)}"
        )


def _duplicates(values: Iterable[Hashable]) -> list[Hashable]:
    return [value for value, count in Counter(values).items() if count > 1]


def refuse_duplicates(message: str, values: Iterable[Hashable]) -> None:
    """Raises AdminCommandFailedError: ``message`` with those that occur twice in place of %s."""
    twice = _duplicates(values)
    if twice:
        raise AdminCommandFailedError(message % ",".join(map(str, twice)))


def scala_list(numbers: Iterable[int]) -> str:
    """The words of the JVM's messages."""
    return f"List({', '.join(map(str, numbers))})"
