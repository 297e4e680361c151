"""Holds administrators to their rates (kafka.server.ControllerMutationQuotaManager).

Partitions that CreateTopics, CreatePartitions and DeleteTopics make or delete are counted. The
versions of these APIs that are served do not know the code of a refusal by quota
(THROTTLING_QUOTA_EXCEEDED). So a request over the rate is carried out, and the connection is
paused, as by other quotas and as Kafka does with these versions.
"""

from __future__ import annotations

from kafka08.protocol.schemas import RequestHeader
from kafka08.runtime import Clock
from kafka08.security.quota import SECONDS, Quota
from kafka08.server.quotas.throttle import paused, used_by_sender


class MutationQuota:
    """``seconds``: for so long an unused rate is saved."""

    def __init__(self, clock: Clock, seconds: float = SECONDS) -> None:
        self._quota = Quota(clock, seconds=seconds)
        self.limits = self._quota.limits

    def record(self, header: RequestHeader, partitions: int) -> int:
        """Count what the present request made or deleted; the pause in ms that it causes."""
        if not self.limits or not partitions:
            return 0
        return paused(used_by_sender(self._quota, header, partitions))
