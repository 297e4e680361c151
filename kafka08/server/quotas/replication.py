"""Holds the copying of replicas to the rates of brokers (kafka.server.ReplicationQuotaManager).

A topic names the replicas that are held (``leader.replication.throttled.replicas``,
``follower.replication.throttled.replicas``), a broker its rates. Both sides hold only what is
behind: a leader sends nothing to a follower outside the isr while its rate is used up, a follower
leaves out partitions that are behind. The bytes of all partitions that are named count.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafka08.common import TopicPartition
from kafka08.protocol.schemas import FetchPartitionResponse
from kafka08.runtime import Clock
from kafka08.security.rates import Bucket
from kafka08.server.quotas.quota_nodes import fetched, rate_of
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.settings.dynamic import DynamicBrokerSettings
from zk import entities
from zk.client import ZkClient

DEFAULT_BROKER = f"{entities.BROKERS}/{entities.DEFAULT}"

logger = logging.getLogger("kafka.server.ReplicationQuotaManager")


class ReplicationQuota:
    """The rate of one side in bytes a second; ``is_on`` is false while there is none, and nothing
    else needs to be called then. ``seconds``: for so long an unused rate is saved."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self.rate: float | None = None
        self._bucket: Bucket | None = None

    @property
    def is_on(self) -> bool:
        return self._bucket is not None

    def set_rate(self, rate: float | None) -> None:
        self.rate = rate
        if rate is None:
            self._bucket = None
        elif self._bucket is None:
            self._bucket = Bucket(rate, self._seconds, self._clock.monotonic())

    def count(self, size: int) -> float:
        """Count bytes of a replica that is held; the seconds until nothing is owed."""
        if self._bucket is None or self.rate is None:
            return 0.0
        return self._bucket.use(size, self.rate, self._seconds, self._clock.monotonic())

    def is_used_up(self) -> bool:
        return self.count(0) > 0


class LeaderThrottle:
    """The part of a follower's fetch that throttled replicas may have (KIP-73).

    ``follower``: the broker that fetches. Members of the isr are not held: producers wait for them.
    """

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


class ReplicationQuotas:
    """The rates of both sides, as ZooKeeper has them for the broker or for all brokers."""

    def __init__(self, zk: ZkClient, clock: Clock, broker_id: int, seconds: float) -> None:
        self.leader = ReplicationQuota(clock, seconds)
        self.follower = ReplicationQuota(clock, seconds)
        self._zk = zk
        self._own = f"{entities.BROKERS}/{broker_id}"

    def load(self) -> None:
        """Read the rates. Raises ZkError."""
        own = fetched(self._zk, self._own, "settings", logger)
        common = fetched(self._zk, DEFAULT_BROKER, "settings", logger)
        for attribute, quota in (
            ("leader_replication_throttled_rate", self.leader),
            ("follower_replication_throttled_rate", self.follower),
        ):
            name = DynamicBrokerSettings.settings()[attribute].key
            rate = rate_of(self._own, own, name)
            quota.set_rate(rate_of(DEFAULT_BROKER, common, name) if rate is None else rate)

    def changed(self, path: str) -> None:
        """The settings of ``brokers/B`` have changed. Raises ZkError."""
        if path in (self._own, DEFAULT_BROKER):
            self.load()
            logger.info(
                "Rates of replication: %s bytes/s as leader, %s bytes/s as follower",
                self.leader.rate or "no", self.follower.rate or "no",
            )  # fmt: skip
