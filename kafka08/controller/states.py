"""The states of partitions and replicas, and every legal transition, as tables.

The controller acts only after ``check_transition``. Mirrors the assertions of
kafka.controller.PartitionStateMachine and ReplicaStateMachine. ``partitions`` and ``replicas``
carry out the transitions.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeVar

from kafka08.common import csv
from kafka08.errors import KafkaError


class StateChangeFailedError(KafkaError):
    """A transition that is not possible now; the rest of its batch continues."""

    java_class = "kafka.common.StateChangeFailedException"


class PartitionState(enum.Enum):
    """New: has replicas but never had a leader. Offline: its leader has failed."""

    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"
    NON_EXISTENT = "NonExistentPartition"

    def __str__(self) -> str:
        return self.value


class ReplicaState(enum.Enum):
    """DeletionIneligible means that the deletion must be retried."""

    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    NON_EXISTENT = "NonExistentReplica"

    def __str__(self) -> str:
        return self.value


PARTITION_PREDECESSORS: Mapping[PartitionState, tuple[PartitionState, ...]] = {
    PartitionState.NEW: (PartitionState.NON_EXISTENT,),
    PartitionState.ONLINE: (PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE),
    PartitionState.OFFLINE: (PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE),
    PartitionState.NON_EXISTENT: (PartitionState.OFFLINE,),
}

REPLICA_PREDECESSORS: Mapping[ReplicaState, tuple[ReplicaState, ...]] = {
    ReplicaState.NEW: (ReplicaState.NON_EXISTENT,),
    ReplicaState.ONLINE: (
        ReplicaState.NEW,
        ReplicaState.ONLINE,
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_INELIGIBLE,
    ),
    ReplicaState.OFFLINE: (
        ReplicaState.NEW,
        ReplicaState.ONLINE,
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_INELIGIBLE,
    ),
    ReplicaState.DELETION_STARTED: (ReplicaState.OFFLINE,),
    ReplicaState.DELETION_SUCCESSFUL: (ReplicaState.DELETION_STARTED,),
    ReplicaState.DELETION_INELIGIBLE: (ReplicaState.DELETION_STARTED,),
    ReplicaState.NON_EXISTENT: (ReplicaState.DELETION_SUCCESSFUL,),
}

S = TypeVar("S", PartitionState, ReplicaState)


def check_transition(
    predecessors: Mapping[S, tuple[S, ...]], subject: object, current: S, target: S
) -> None:
    """Raises StateChangeFailedError unless ``current`` may precede ``target``."""
    legal = predecessors[target]
    if current not in legal:
        raise StateChangeFailedError(
            f"{subject} should be in the {csv(legal)} states before moving to {target} state. "
            f"Instead it is in {current} state"
        )
