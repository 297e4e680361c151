"""A leader's view of a replica on another broker (kafka.cluster.Replica, the remote half)."""

from __future__ import annotations

from typing import Final

UNKNOWN_OFFSET: Final = -1


class RemoteReplica:
    """A follower as its leader sees it: its log end offset and when it last fetched.

    ``log_end_offset`` is the offset it last asked for, -1 until it has asked since leadership
    began; ``first_offset`` is the first one that it would serve, -1 until it has sent it;
    ``fetched_at`` is monotonic seconds.
    """

    __slots__ = ("fetched_at", "first_offset", "log_end_offset")

    def __init__(self, now: float) -> None:
        self.log_end_offset = UNKNOWN_OFFSET
        self.first_offset = UNKNOWN_OFFSET
        self.fetched_at = now
