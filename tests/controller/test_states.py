"""The transition tables, against those of the original, every pair."""

from __future__ import annotations

import pytest

from kafka08.controller.states import (
    PARTITION_PREDECESSORS,
    REPLICA_PREDECESSORS,
    PartitionState,
    ReplicaState,
    StateChangeFailedError,
    check_transition,
)

P, R = PartitionState, ReplicaState
LEGAL_PARTITION = {
    (P.NON_EXISTENT, P.NEW),
    *((before, P.ONLINE) for before in (P.NEW, P.ONLINE, P.OFFLINE)),
    *((before, P.OFFLINE) for before in (P.NEW, P.ONLINE, P.OFFLINE)),
    (P.OFFLINE, P.NON_EXISTENT),
}
LEGAL_REPLICA = {
    (R.NON_EXISTENT, R.NEW),
    *((b, R.ONLINE) for b in (R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE)),
    *((b, R.OFFLINE) for b in (R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE)),
    (R.OFFLINE, R.DELETION_STARTED),
    (R.DELETION_STARTED, R.DELETION_SUCCESSFUL),
    (R.DELETION_STARTED, R.DELETION_INELIGIBLE),
    (R.DELETION_SUCCESSFUL, R.NON_EXISTENT),
}


@pytest.mark.parametrize("target", list(P))
@pytest.mark.parametrize("current", list(P))
def test_partition_transitions(current: P, target: P) -> None:
    if (current, target) in LEGAL_PARTITION:
        check_transition(PARTITION_PREDECESSORS, "Partition [t,0]", current, target)
    else:
        with pytest.raises(StateChangeFailedError):
            check_transition(PARTITION_PREDECESSORS, "Partition [t,0]", current, target)


@pytest.mark.parametrize("target", list(R))
@pytest.mark.parametrize("current", list(R))
def test_replica_transitions(current: R, target: R) -> None:
    if (current, target) in LEGAL_REPLICA:
        check_transition(REPLICA_PREDECESSORS, "Replica", current, target)
    else:
        with pytest.raises(StateChangeFailedError):
            check_transition(REPLICA_PREDECESSORS, "Replica", current, target)


def test_the_words_of_a_refusal() -> None:
    with pytest.raises(StateChangeFailedError) as refused:
        check_transition(PARTITION_PREDECESSORS, "Partition [t,0]", P.ONLINE, P.NON_EXISTENT)
    assert str(refused.value) == (
        "Partition [t,0] should be in the OfflinePartition states before moving to "
        "NonExistentPartition state. Instead it is in OnlinePartition state"
    )
