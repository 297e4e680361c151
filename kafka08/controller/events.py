"""Everything that can happen to the controller, as values for its one queue.

Watch events carry no data: whoever handles one reads the whole node again, arming the watch
anew, so coalesced and repeated events do no harm. ``reign`` is the count of elections this
broker won; events of an earlier reign are dropped. These are no tuples, because those of
different classes could be equal, and what lost watches had to post is told apart by equality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka08.common import TopicPartition


@dataclass(frozen=True)
class Startup:
    """The loop has begun: watch /controller and try to be elected."""


@dataclass(frozen=True)
class Shutdown:
    """The last event: resign and leave."""


@dataclass(frozen=True)
class SessionExpired:
    """A new ZooKeeper session replaced one that ended with all its ephemeral nodes."""


@dataclass(frozen=True)
class ControllerChanged:
    """/controller was created, changed or deleted."""


@dataclass(frozen=True)
class BrokerIdsChanged:
    reign: int


@dataclass(frozen=True)
class OfflineReplicasChanged:
    """A broker told which of its replicas its failed disks held, or came back with them."""

    reign: int


@dataclass(frozen=True)
class TopicsChanged:
    reign: int


@dataclass(frozen=True)
class PartitionsChanged:
    """The node of a topic, which holds its assignment, changed or went."""

    reign: int
    topic: str


@dataclass(frozen=True)
class DeleteTopicsChanged:
    reign: int


@dataclass(frozen=True)
class ReassignmentChanged:
    reign: int


@dataclass(frozen=True)
class PreferredElectionChanged:
    reign: int


@dataclass(frozen=True)
class IsrChanged:
    """The state of a partition being reassigned changed."""

    reign: int
    partition: TopicPartition


@dataclass(frozen=True)
class IsrChangesAnnounced:
    """A leader changed isrs itself and lists the partitions."""

    reign: int


@dataclass(frozen=True)
class StopReplicaAnswered:
    """A broker answered a StopReplica request that deletes."""

    reign: int
    broker_id: int
    partitions: tuple[TopicPartition, ...]
    failed: tuple[TopicPartition, ...]


@dataclass(frozen=True)
class RebalanceDue:
    """Time to look for leaders that are not the preferred ones."""

    reign: int


@dataclass(frozen=True)
class ControlledShutdown:
    """A broker is about to stop. ``reply`` takes the answer."""

    broker_id: int
    reply: Any


ReignEvent = (
    BrokerIdsChanged
    | OfflineReplicasChanged
    | TopicsChanged
    | PartitionsChanged
    | DeleteTopicsChanged
    | ReassignmentChanged
    | PreferredElectionChanged
    | IsrChanged
    | IsrChangesAnnounced
    | StopReplicaAnswered
    | RebalanceDue
)
