"""The events of the controller's queue.

Watch events do not carry data: the handler reads the whole node again and arms the watch again,
so merged and repeated events are harmless. ``term`` counts the elections this broker won; events
of an earlier term are dropped. The classes are not tuples: tuples of different classes can be
equal, and the events of lost watches are distinguished by equality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka08.common import TopicPartition
from kafka08.controller.log_ends import Ends


@dataclass(frozen=True)
class Startup:
    """The loop has started: watch /controller and stand for election."""


@dataclass(frozen=True)
class Shutdown:
    """The last event: resign and leave."""


@dataclass(frozen=True)
class SessionExpired:
    """A new ZooKeeper session replaced one that ended; its ephemeral nodes are gone."""


@dataclass(frozen=True)
class ControllerChanged:
    """/controller was created, changed or deleted."""


@dataclass(frozen=True)
class BrokerIdsChanged:
    term: int


@dataclass(frozen=True)
class OfflineReplicasChanged:
    """A broker reported the replicas on its failed or full disks, or that they are back."""

    term: int


@dataclass(frozen=True)
class TopicsChanged:
    term: int


@dataclass(frozen=True)
class PartitionsChanged:
    """The node of a topic, which holds its assignment, changed or was deleted."""

    term: int
    topic: str


@dataclass(frozen=True)
class DeleteTopicsChanged:
    term: int


@dataclass(frozen=True)
class ReassignmentChanged:
    term: int


@dataclass(frozen=True)
class PreferredElectionChanged:
    term: int


@dataclass(frozen=True)
class IsrChanged:
    """The state of a partition being reassigned changed."""

    term: int
    partition: TopicPartition


@dataclass(frozen=True)
class IsrChangesAnnounced:
    """Leaders changed isrs and listed the partitions."""

    term: int


@dataclass(frozen=True)
class StopReplicaAnswered:
    """A broker answered a StopReplica request that deletes."""

    term: int
    broker_id: int
    partitions: tuple[TopicPartition, ...]
    failed: tuple[TopicPartition, ...]


@dataclass(frozen=True)
class LogEndsFetched:
    """Replicas told their log ends, or failed to: for unclean elections. ``number`` is that of the
    question."""

    term: int
    number: int
    ends: Ends


@dataclass(frozen=True)
class LaterFormatsFetched:
    """Leaders told up to where their logs hold what 0.8.2.2 cannot read, or failed to."""

    term: int
    number: int
    ends: Ends


@dataclass(frozen=True)
class RebalanceDue:
    """It is time to check for leaders that are not the preferred replicas."""

    term: int


@dataclass(frozen=True)
class ControlledShutdown:
    """A broker is about to stop. ``reply`` takes the answer."""

    broker_id: int
    reply: Any


TermEvent = (
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
    | LogEndsFetched
    | LaterFormatsFetched
    | RebalanceDue
)
