"""The events of the controller's queue.

Watch events do not carry data: the handler reads the whole node again and arms the watch again,
so merged and repeated events are harmless. ``term`` counts the elections this broker won; events
of an earlier term are dropped. The classes are not tuples: tuples of different classes can be
equal, and the events of lost watches are distinguished by equality. They are not dataclasses
either, whose code would be compiled at each start of a broker.
"""

from __future__ import annotations

from typing import Any

from kafka08.common import TopicPartition
from kafka08.controller.log_ends import Ends


class ControllerEvent:
    """Does not change; equal to events of the same class with the same values."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"


class TermEvent(ControllerEvent):
    """An event that only the term which asked for it handles."""

    def __init__(self, term: int) -> None:
        self.term = term


class Startup(ControllerEvent):
    """The loop has started: watch /controller and stand for election."""


class Stop(ControllerEvent):
    """The last event: resign and leave."""


class SessionExpired(ControllerEvent):
    """A new ZooKeeper session replaced one that ended; its ephemeral nodes are gone."""


class ControllerChanged(ControllerEvent):
    """/controller was created, changed or deleted."""


class ControlledShutdown(ControllerEvent):
    """A broker is about to stop. ``reply`` takes the answer."""

    def __init__(self, broker_id: int, reply: Any) -> None:
        self.broker_id = broker_id
        self.reply = reply


class BrokerIdsChanged(TermEvent):
    pass


class OfflineReplicasChanged(TermEvent):
    """A broker reported the replicas on its failed or full disks, or that they are back."""


class TopicsChanged(TermEvent):
    pass


class PartitionsChanged(TermEvent):
    """The node of a topic, which holds its assignment, changed or was deleted."""

    def __init__(self, term: int, topic: str) -> None:
        super().__init__(term)
        self.topic = topic


class DeleteTopicsChanged(TermEvent):
    pass


class ReassignmentChanged(TermEvent):
    pass


class PreferredElectionChanged(TermEvent):
    pass


class IsrChanged(TermEvent):
    """The state of a partition being reassigned changed."""

    def __init__(self, term: int, partition: TopicPartition) -> None:
        super().__init__(term)
        self.partition = partition


class IsrChangesAnnounced(TermEvent):
    """Leaders changed isrs and listed the partitions."""


class StopReplicaAnswered(TermEvent):
    """A broker answered a StopReplica request that deletes."""

    def __init__(
        self,
        term: int,
        broker_id: int,
        partitions: tuple[TopicPartition, ...],
        failed: tuple[TopicPartition, ...],
    ) -> None:
        super().__init__(term)
        self.broker_id = broker_id
        self.partitions = partitions
        self.failed = failed


class LogEndsFetched(TermEvent):
    """Replicas sent their log ends, or failed to: for unclean elections. ``number`` is that of the
    question."""

    def __init__(self, term: int, number: int, ends: Ends) -> None:
        super().__init__(term)
        self.number = number
        self.ends = ends


class LaterFormatsFetched(LogEndsFetched):
    """Leaders reported up to where their logs hold what 0.8.2.2 cannot read, or failed to."""


class RebalanceDue(TermEvent):
    """It is time to check for leaders that are not the preferred replicas."""
