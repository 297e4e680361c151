"""The states of a coordinated group, every legal transition, and what each state answers.

Mirrors kafka.coordinator.group.GroupState of later releases.
"""

from __future__ import annotations

from enum import Enum

from kafka08.errors import NO_ERROR, ConsumerCoordinatorNotAvailableError, LaterCode


class GroupState(Enum):
    """The value is the name that DescribeGroups shows."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

PREDECESSORS: dict[GroupState, tuple[GroupState, ...]] = {
    EMPTY: (PREPARING,),
    PREPARING: (EMPTY, COMPLETING, STABLE),
    COMPLETING: (PREPARING,),
    STABLE: (COMPLETING,),
    DEAD: (EMPTY, PREPARING, COMPLETING, STABLE),
}

_MOVED = ConsumerCoordinatorNotAvailableError.code

# The answers to requests that name a member and the current generation. The coordinator itself
# answers syncs where the table has None.
HEARTBEAT: dict[GroupState, int] = {
    EMPTY: LaterCode.UNKNOWN_MEMBER_ID,
    PREPARING: LaterCode.REBALANCE_IN_PROGRESS,
    COMPLETING: NO_ERROR,
    STABLE: NO_ERROR,
    DEAD: _MOVED,
}
COMMIT: dict[GroupState, int] = {
    EMPTY: NO_ERROR,
    PREPARING: NO_ERROR,
    COMPLETING: LaterCode.REBALANCE_IN_PROGRESS,
    STABLE: NO_ERROR,
    DEAD: _MOVED,
}
SYNC: dict[GroupState, int | None] = {
    EMPTY: LaterCode.UNKNOWN_MEMBER_ID,
    PREPARING: LaterCode.REBALANCE_IN_PROGRESS,
    COMPLETING: None,
    STABLE: None,
    DEAD: _MOVED,
}
