"""The cluster at one moment: brokers, the controller, topics with their partitions.

Assignments, brokers and the controller are read from ZooKeeper; leaders and isrs come with one
Metadata request, because a node of its own for each partition is too much to read every few
seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

from kafka08 import admin
from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import flatten
from kafka08.common import TopicPartition
from kafka08.console.topics.settings_reader import SettingsReader
from kafka08.errors import KafkaError
from kafka08.protocol import schemas
from kafka08.runtime import Clock
from zk import registry, znodes
from zk.client import ZkClient
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.console.ClusterState")

NO_LEADER = -1
# How long a broker that has gone is shown if it has no replicas.
_REMEMBERED_MS = 3_600_000
T = TypeVar("T")


class BrokerView(NamedTuple):
    """A broker that is registered (``is_live``), or was, or that only assignments name.

    ``addresses``: those of its last registration, none if that is unknown. ``is_ours`` None:
    unknown. ``since_ms``: when it registered, or was first missed; None if that is unknown.
    ``failed`` and ``full``: partitions whose data directory it reported as failed, or as full.
    """

    id: int
    is_live: bool = False
    addresses: tuple[str, ...] = ()
    since_ms: int | None = None
    is_ours: bool | None = None
    failed: tuple[TopicPartition, ...] = ()
    full: tuple[TopicPartition, ...] = ()

    @property
    def serves_later_apis(self) -> bool:
        """Whether it can be asked what 0.8.2.2 does not know."""
        return self.is_live and bool(self.is_ours)


class PartitionView(NamedTuple):
    """``replicas`` in the assigned order, the preferred leader first."""

    replicas: tuple[int, ...]
    leader: int = NO_LEADER
    isr: tuple[int, ...] = ()

    @property
    def is_offline(self) -> bool:
        return self.leader == NO_LEADER

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def is_preferred(self) -> bool:
        return self.replicas[:1] == (self.leader,)


class TopicView(NamedTuple):
    partitions: Mapping[int, PartitionView]
    is_deleting: bool = False

    @property
    def replication_factor(self) -> int:
        return max((len(each.replicas) for each in self.partitions.values()), default=0)

    @property
    def under_replicated(self) -> int:
        return sum(each.is_under_replicated for each in self.partitions.values())

    @property
    def offline(self) -> int:
        return sum(each.is_offline for each in self.partitions.values())

    @property
    def not_preferred(self) -> int:
        return sum(not each.is_preferred for each in self.partitions.values())


class ClusterState(NamedTuple):
    """``brokers`` by id, also dead ones. ``controller`` None: there is none. ``told``: false if no
    broker answered, so that leaders and isrs are unknown. ``settings``: topics' own ones."""

    time_ms: int
    brokers: Mapping[int, BrokerView]
    controller: int | None
    epoch: int | None
    topics: Mapping[str, TopicView]
    moves: Mapping[TopicPartition, tuple[int, ...]]
    elections: int
    told: bool
    settings: Mapping[str, Mapping[str, str]] = {}

    @property
    def live(self) -> list[BrokerView]:
        return [broker for broker in self.brokers.values() if broker.is_live]

    @property
    def asked(self) -> int | None:
        """The broker that is asked what 0.8.2.2 does not know: the controller, if it can be. None:
        no broker that is up can."""
        ids = [each.id for each in self.live if each.serves_later_apis]
        return self.controller if self.controller in ids else min(ids, default=None)

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionView]]:
        for topic, view in self.topics.items():
            for number, partition in view.partitions.items():
                yield TopicPartition(topic, number), partition

    def not_preferred(self) -> list[TopicPartition]:
        return [tp for tp, each in self.partitions() if not each.is_preferred]


@dataclass
class StateReader:
    """Reads states. One task at a time."""

    _zk: ZkClient
    _cluster: ClusterClient
    _clock: Clock
    _known: dict[int, BrokerView] = field(default_factory=dict)
    _settings: SettingsReader = field(init=False)

    def __post_init__(self) -> None:
        self._settings = SettingsReader(self._zk)

    def read(self) -> ClusterState:
        """Raises the errors of ZkClient."""
        metadata = self._metadata()
        deleting = set(self._zk.children_if_exists(znodes.DELETE_TOPICS))
        topics = {
            topic: self._topic(topic, metadata or {}, topic in deleting)
            for topic in admin.list_topics(self._zk)
        }
        return ClusterState(
            self._clock.millis(),
            self._brokers(topics),
            self._controller(),
            self._decoded(znodes.CONTROLLER_EPOCH, znodes.decode_int32),
            topics,
            _or_none(partial(admin.fetch_reassignments, self._zk)) or {},
            len(_or_none(partial(admin.fetch_preferred_elections, self._zk)) or ()),
            metadata is not None,
            self._settings.read(topics),
        )

    def _metadata(self) -> dict[TopicPartition, schemas.PartitionMetadata] | None:
        try:
            response = self._cluster.refresh()
        except (OSError, KafkaError) as error:
            logger.warning("No broker returned the state of partitions: %s", error)
            return None
        return flatten(response.topics)

    def _topic(
        self,
        topic: str,
        metadata: Mapping[TopicPartition, schemas.PartitionMetadata],
        is_deleting: bool,
    ) -> TopicView:
        assignment = _or_none(partial(admin.fetch_assignment, self._zk, topic)) or {}
        views = {}
        for number, replicas in sorted(assignment.items()):
            found = metadata.get(TopicPartition(topic, number))
            views[number] = (
                PartitionView(replicas)
                if found is None
                else PartitionView(replicas, found.leader, tuple(found.isr))
            )
        return TopicView(views, is_deleting)

    def _brokers(self, topics: Mapping[str, TopicView]) -> dict[int, BrokerView]:
        """Those that are registered, that have replicas, or that went not long ago."""
        live = self._live()
        assigned = {
            replica
            for view in topics.values()
            for partition in view.partitions.values()
            for replica in partition.replicas
        }
        now = self._clock.millis()
        found = dict(live)
        for id_ in (assigned | self._known.keys()) - live.keys():
            view = self._known.get(id_, BrokerView(id_))
            if view.is_live:
                view = view._replace(is_live=False, since_ms=now, failed=(), full=())
            if id_ in assigned or (view.since_ms or 0) > now - _REMEMBERED_MS:
                found[id_] = view
        self._known = dict(sorted(found.items()))
        return self._known

    def _live(self) -> dict[int, BrokerView]:
        found = {}
        for id_, registration in registry.registrations(self._zk).items():
            if registration is None:
                found[id_] = BrokerView(id_, True, ("a node that cannot be read",))
                continue
            since = registration.timestamp
            found[id_] = BrokerView(
                id_,
                True,
                tuple(map(str, registration.endpoints))
                or (f"{registration.host}:{registration.port}",),
                int(since) if since.isascii() and since.isdecimal() else None,
                registration.formats is not None,
                *self._offline(id_),
            )
        return found

    def _offline(self, broker_id: int) -> tuple[tuple[TopicPartition, ...], ...]:
        path = znodes.offline_replicas_path(broker_id)
        found = self._decoded(path, znodes.decode_offline_replicas)
        return ((), ()) if found is None else (tuple(found.failed), tuple(found.full))

    def _controller(self) -> int | None:
        found = self._decoded(znodes.CONTROLLER, znodes.decode_controller)
        return None if found is None else found.broker_id

    def _decoded(self, path: str, decode: Callable[[str, bytes], T]) -> T | None:
        """The value of a node; None if there is no such node, or it cannot be read."""
        return _or_none(partial(admin.read_node, self._zk, path, decode))


def _or_none(read: Callable[[], T]) -> T | None:
    """None with a warning for a node that cannot be read."""
    try:
        return read()
    except MalformedNodeError as error:
        logger.warning("%s", error)
        return None
