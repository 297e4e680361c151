"""The part of a follower's fetch that throttled replicas may have (KIP-73)."""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.common import TopicPartition
from kafka08.protocol.schemas import FetchPartitionResponse
from kafka08.server.quotas.replication import ReplicationQuota
from kafka08.server.storage.replica_manager import ReplicaManager


class LeaderThrottle:
    """``follower``: the broker that fetches. Members of the isr are not held: producers wait for
    them."""

    def __init__(self, quota: ReplicationQuota, replicas: ReplicaManager, follower: int) -> None:
        self._quota = quota
        self._replicas = replicas
        self._follower = follower

    def holds(self, key: TopicPartition) -> bool:
        """Whether the follower gets nothing of this partition now."""
        partition = self._replicas.partitions.get(key)
        return (
            partition is not None
            and self._follower not in partition.isr
            and self._is_throttled(key)
            and self._quota.is_used_up()
        )

    def count(self, answers: Mapping[TopicPartition, FetchPartitionResponse]) -> None:
        """Count the bytes that are sent."""
        self._quota.count(
            sum(len(each.message_set) for key, each in answers.items() if self._is_throttled(key))
        )

    def _is_throttled(self, key: TopicPartition) -> bool:
        partition = self._replicas.partitions.get(key)
        if partition is None or partition.log is None:
            return False
        config = partition.log.config
        return config.throttles_leader(key.partition, self._replicas.broker_id)
