"""The topics of a cluster behind one face: through its ZooKeeper, or through its brokers alone.

Brokers of 0.8.2.2 list and describe topics, and create those with their own defaults. For the rest
BrokerTopics needs one broker that answers administrative requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kafka08 import admin
from kafka08.admin import Assignment
from kafka08.client.admin import AdminClient, AdminNotServedError
from kafka08.errors import ReplicaNotAvailableError, TopicExistsError
from kafka08.placement import InvalidPartitionsError, InvalidReplicationFactorError
from kafka08.protocol import schemas
from kafka08.protocol.admin_schemas import BROKER_DEFAULT
from kafka08.settings.settings import INT
from zk import registry, znodes
from zk.client import ZkClient
from zk.errors import NodeExistsError

MIN_ISR = "min.insync.replicas"
_MAX_REPLICATION_FACTOR = 32767


class PartitionDescription(NamedTuple):
    """``leader``: -1 is that of a partition whose replicas are all dead; None: not known."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    under_replicated: bool
    available: bool


class TopicDescription(NamedTuple):
    """``own``: the topic's own settings; ``settings``: those in force, as far as they are known."""

    partitions: list[PartitionDescription]
    own: Mapping[str, str]
    settings: Mapping[str, str]

    @property
    def min_isr(self) -> int:
        value: int = INT.parse(self.settings.get(MIN_ISR) or "1")
        return value


class ZooKeeperTopics:
    """Reads and writes the nodes; brokers act on the changes. Counts of partitions and replicas
    must be given. ``rack_aware``: replicas are placed with regard to racks and units.

    Calls raise AdminOperationError for what is refused, and the errors of the client.
    """

    def __init__(self, zk: ZkClient, *, rack_aware: bool = True) -> None:
        self._zk = zk
        self._rack_aware = rack_aware

    def names(self) -> list[str]:
        return admin.list_topics(self._zk)

    def marked_for_deletion(self) -> set[str]:
        """The topics that wait for their deletion, as far as they are known."""
        return set(self._zk.children_if_exists(znodes.DELETE_TOPICS))

    def create(
        self,
        topic: str,
        partitions: int | None,
        replication_factor: int | None,
        assignment: Assignment | None,
        config: Mapping[str, str],
    ) -> None:
        """With ``assignment``, or with counts. Raises TopicExistsError."""
        if assignment is None:
            counts = partitions or 0, replication_factor or 0
            admin.create_topic(self._zk, topic, *counts, config, rack_aware=self._rack_aware)
        else:
            admin.create_topic_with_assignment(self._zk, topic, assignment, config)

    def own_config(self, topic: str) -> dict[str, str]:
        return admin.fetch_topic_config(self._zk, topic)

    def change_config(self, topic: str, config: Mapping[str, str]) -> None:
        """Replace the topic's own settings."""
        admin.change_topic_config(self._zk, topic, config)

    def add_partitions(self, topic: str, total: int, assignment: Assignment | None) -> None:
        """Grow to ``total``; ``assignment`` is that of all partitions, the present ones too."""
        present = admin.fetch_assignment(self._zk, topic) or {}
        added = _added(assignment, len(present))
        admin.add_partitions(self._zk, topic, total, added, rack_aware=self._rack_aware)

    def delete(self, topics: Iterable[str]) -> Iterator[tuple[str, bool]]:
        """Each topic once its deletion is asked for; False if it was already."""
        for topic in topics:
            try:
                admin.delete_topic(self._zk, topic)
            except NodeExistsError:
                yield topic, False
            else:
                yield topic, True

    def describe(
        self, topics: Sequence[str], *, configs: bool
    ) -> Iterator[tuple[str, TopicDescription | None]]:
        """Each topic, None if it does not exist; its settings only with ``configs``."""
        live = set(registry.broker_ids(self._zk))
        for topic in topics:
            assignment = admin.fetch_assignment(self._zk, topic)
            if not assignment:
                yield topic, None
                continue
            # Brokers' own defaults are not in ZooKeeper, and do not count on 0.8.2.2 (KAFKA-2114).
            own = self.own_config(topic) if configs else {}
            views = [self._view(topic, *each, live) for each in assignment.items()]
            yield topic, TopicDescription(views, own, own)

    def _view(
        self, topic: str, partition: int, replicas: tuple[int, ...], live: set[int]
    ) -> PartitionDescription:
        state = admin.fetch_partition_state(self._zk, topic, partition)
        leader, isr = (None, ()) if state is None else (state.leader, state.isr)
        return PartitionDescription(
            partition, leader, replicas, isr, len(isr) < len(replicas), leader in live
        )


class BrokerTopics:
    """The same over brokers. Counts that are None are those of a broker's defaults.

    Calls that no broker serves raise AdminNotServedError.
    """

    def __init__(self, client: AdminClient) -> None:
        self._client = client

    def names(self) -> list[str]:
        return [each.topic for each in self._client.metadata().topics]

    def marked_for_deletion(self) -> set[str]:
        return set()

    def create(
        self,
        topic: str,
        partitions: int | None,
        replication_factor: int | None,
        assignment: Assignment | None,
        config: Mapping[str, str],
    ) -> None:
        if topic in self.names():
            raise TopicExistsError(f"Topic '{topic}' already exists.")
        if assignment is not None:
            self._client.create_topic(topic, assignment=assignment, config=config)
            return
        _check_counts(partitions, replication_factor)
        counts = (partitions or BROKER_DEFAULT, replication_factor or BROKER_DEFAULT)
        try:
            self._client.create_topic(topic, *counts, config=config)
        except AdminNotServedError:
            if partitions or replication_factor or config:
                raise
            # 0.8.2.2 creates topics like this at the first request for their metadata.
            self._client.create_by_metadata(topic)

    def own_config(self, topic: str) -> dict[str, str]:
        config = self._client.describe_configs([topic])[topic]
        return {name: each.value or "" for name, each in config.items() if not each.is_default}

    def change_config(self, topic: str, config: Mapping[str, str]) -> None:
        self._client.alter_config(topic, config)

    def add_partitions(self, topic: str, total: int, assignment: Assignment | None) -> None:
        present = next(each for each in self._client.metadata().topics if each.topic == topic)
        self._client.create_partitions(topic, total, _added(assignment, len(present.partitions)))

    def delete(self, topics: Iterable[str]) -> Iterator[tuple[str, bool]]:
        listed = list(topics)
        if listed:
            self._client.delete_topics(listed)
        return iter([(topic, True) for topic in listed])

    def describe(
        self, topics: Sequence[str], *, configs: bool
    ) -> Iterator[tuple[str, TopicDescription | None]]:
        metadata = self._client.metadata()
        live = {broker.node_id for broker in metadata.brokers}
        by_name = {each.topic: each.partitions for each in metadata.topics}
        in_force = self._client.describe_configs(topics) if configs and topics else {}
        views: list[tuple[str, TopicDescription | None]] = []
        for topic in topics:
            entries = in_force.get(topic, {})
            partitions = sorted(by_name.get(topic, []), key=lambda each: each.partition)
            view = TopicDescription(
                [_view(each, live) for each in partitions],
                {name: each.value or "" for name, each in entries.items() if not each.is_default},
                {name: each.value or "" for name, each in entries.items()},
            )
            views.append((topic, view))
        return iter(views)


Topics = ZooKeeperTopics | BrokerTopics


def _check_counts(partitions: int | None, replication_factor: int | None) -> None:
    if partitions is not None and partitions <= 0:
        raise InvalidPartitionsError("number of partitions must be larger than 0")
    if replication_factor is not None and replication_factor <= 0:
        raise InvalidReplicationFactorError("replication factor must be larger than 0")
    if replication_factor is not None and replication_factor > _MAX_REPLICATION_FACTOR:
        raise InvalidReplicationFactorError(
            "The replication factor's maximum value must be smaller or equal to "
            f"{_MAX_REPLICATION_FACTOR}"
        )


def _added(assignment: Assignment | None, present: int) -> list[Sequence[int]]:
    return [] if assignment is None else list(assignment.values())[present:]


def _view(partition: schemas.PartitionMetadata, live: set[int]) -> PartitionDescription:
    # Metadata leaves dead replicas out of both lists and says so by this code only.
    lacks_replicas = partition.error == ReplicaNotAvailableError.code
    return PartitionDescription(
        partition.partition,
        None if partition.leader < 0 else partition.leader,
        tuple(partition.replicas),
        tuple(partition.isr),
        lacks_replicas or len(partition.isr) < len(partition.replicas),
        partition.leader in live,
    )
