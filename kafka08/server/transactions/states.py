"""The states of a transactional id, and every legal transition.

Mirrors kafka.coordinator.transaction.TransactionState of later releases. In a prepared state the
outcome is decided: whichever coordinator finds it in the log tells it to all partitions.
"""

from __future__ import annotations

from enum import Enum


class TransactionState(Enum):
    """The value is the name that tools show."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"


EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD = (
    TransactionState
)

PREDECESSORS: dict[TransactionState, tuple[TransactionState, ...]] = {
    EMPTY: (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    ONGOING: (ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    PREPARE_COMMIT: (ONGOING,),
    PREPARE_ABORT: (ONGOING,),
    COMPLETE_COMMIT: (PREPARE_COMMIT,),
    COMPLETE_ABORT: (PREPARE_ABORT,),
    DEAD: (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
}

# As records of __transaction_state have them. 7, PrepareEpochFence, is never written.
NUMBERS: dict[TransactionState, int] = {state: number for number, state in enumerate(PREDECESSORS)}
BY_NUMBER = {number: state for state, number in NUMBERS.items()}
BY_NAME = {state.value: state for state in PREDECESSORS}

PREPARED = (PREPARE_COMMIT, PREPARE_ABORT)
COMPLETED = {PREPARE_COMMIT: COMPLETE_COMMIT, PREPARE_ABORT: COMPLETE_ABORT}
# A transactional id without a transaction, which may expire.
IDLE = (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)
