"""Everything that can happen to the controller, as values for its one queue.

Watch events carry no data: whoever handles one reads the whole node again, arming the watch
anew, so coalesced and repeated events do no harm. ``reign`` is the count of elections this
broker won; events of an earlier reign are dropped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafka08.common import TopicPartition


class Startup(NamedTuple):
    """The loop has begun: watch /controller and try to be elected."""


class Shutdown(NamedTuple):
    """The last event: resign and leave."""


class SessionExpired(NamedTuple):
    """A new ZooKeeper session replaced one that ended with all its ephemeral nodes."""


class ControllerChanged(NamedTuple):
    """/controller was created, changed or deleted."""


class BrokerIdsChanged(NamedTuple):
    reign: int


class TopicsChanged(NamedTuple):
    reign: int


class PartitionsChanged(NamedTuple):
    """The node of a topic, which holds its assignment, changed or went."""

    reign: int
    topic: str


class DeleteTopicsChanged(NamedTuple):
    reign: int


class ReassignmentChanged(NamedTuple):
    reign: int


class PreferredElectionChanged(NamedTuple):
    reign: int


class IsrChanged(NamedTuple):
    """The state of a partition being reassigned changed."""

    reign: int
    partition: TopicPartition


class StopReplicaAnswered(NamedTuple):
    """A broker answered a StopReplica request that deletes."""

    reign: int
    broker_id: int
    partitions: tuple[TopicPartition, ...]
    failed: tuple[TopicPartition, ...]


class RebalanceDue(NamedTuple):
    """Time to look for leaders that are not the preferred ones."""

    reign: int


class ControlledShutdown(NamedTuple):
    """A broker is about to stop. ``reply`` takes the answer."""

    broker_id: int
    reply: Any


ReignEvent = (
    BrokerIdsChanged
    | TopicsChanged
    | PartitionsChanged
    | DeleteTopicsChanged
    | ReassignmentChanged
    | PreferredElectionChanged
    | IsrChanged
    | StopReplicaAnswered
    | RebalanceDue
)
