"""The counts of a broker that produces and fetches add to."""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.common import TopicPartition
from kafka08.metrics.meters import Meter
from kafka08.metrics.topics import BrokerTopicStats


class Counts:
    """``topics``: by topic. The rest counts waits that ended because their time was over: produces
    with acks -1, of all partitions and of each one, and fetches."""

    def __init__(self) -> None:
        self.topics = BrokerTopicStats()
        self.consumer_expires = Meter()
        self.follower_expires = Meter()
        self.produce_expires = Meter()
        self.produce_expires_of: dict[TopicPartition, Meter] = {}

    def produce_expired(self, key: TopicPartition) -> None:
        self.produce_expires.mark()
        self.produce_expires_of.setdefault(key, Meter()).mark()

    def fetch_expired(self, is_follower: bool) -> None:
        (self.follower_expires if is_follower else self.consumer_expires).mark()

    def keep(self, partitions: Mapping[TopicPartition, object]) -> None:
        """Forget what is counted of others than these."""
        self.topics.keep({key.topic for key in partitions})
        for key in [each for each in self.produce_expires_of if each not in partitions]:
            del self.produce_expires_of[key]
