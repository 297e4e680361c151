"""The states of a coordinated group, every legal transition, and what each state answers.

Mirrors kafka.coordinator.group.GroupState of later releases.
"""

from __future__ import annotations

from enum import Enum

from kafka08.errors import NO_ERROR, ConsumerCoordinatorNotAvailableError

ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
INVALID_GROUP_ID = 24
UNKNOWN_MEMBER_ID = 25
INVALID_SESSION_TIMEOUT = 26
REBALANCE_IN_PROGRESS = 27
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
MEMBER_ID_REQUIRED = 79
GROUP_MAX_SIZE_REACHED = 81
FENCED_INSTANCE_ID = 82
GROUP_SUBSCRIBED_TO_TOPIC = 86


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
    EMPTY: UNKNOWN_MEMBER_ID,
    PREPARING: REBALANCE_IN_PROGRESS,
    COMPLETING: NO_ERROR,
    STABLE: NO_ERROR,
    DEAD: _MOVED,
}
COMMIT: dict[GroupState, int] = {
    EMPTY: NO_ERROR,
    PREPARING: NO_ERROR,
    COMPLETING: REBALANCE_IN_PROGRESS,
    STABLE: NO_ERROR,
    DEAD: _MOVED,
}
SYNC: dict[GroupState, int | None] = {
    EMPTY: UNKNOWN_MEMBER_ID,
    PREPARING: REBALANCE_IN_PROGRESS,
    COMPLETING: None,
    STABLE: None,
    DEAD: _MOVED,
}
