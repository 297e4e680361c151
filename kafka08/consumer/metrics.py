"""The metrics of a consumer under the names of the original's beans.

Mirrors kafka.consumer.ConsumerTopicStats and the gauges of ZookeeperConsumerConnector and
ConsumerFetcherManager. Other modules receive the meters and record with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka08.client.meters import Meter, Timer
from kafka08.consumer.stream import KafkaStream, PartitionPosition


class ConsumerMetrics:
    """``now`` gives monotonic seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.messages = Meter(now)
        self.bytes = Meter(now)
        self.rebalances = Timer(now)
        self.kafka_commits = Meter(now)
        self.zookeeper_commits = Meter(now)

    def numbers(
        self, streams: Iterable[KafkaStream], positions: Iterable[PartitionPosition]
    ) -> dict[str, float]:
        """Rates per second, times in ms, lags in messages; -1 while a lag is unknown."""
        streams = list(streams)
        lags = {
            f"ConsumerLag.{position.tp.topic}.{position.tp.partition}": position.lag
            for position in positions
        }
        return {
            **self.messages.numbers("MessagesPerSec"),
            # The meter counts by chunk and lags behind.
            "MessagesPerSec.Count": sum(stream.messages for stream in streams),
            **self.bytes.numbers("BytesPerSec"),
            **self.rebalances.numbers("RebalanceRateAndTime"),
            **self.kafka_commits.numbers("KafkaCommitsPerSec"),
            **self.zookeeper_commits.numbers("ZooKeeperCommitsPerSec"),
            "FetchQueueSize": sum(stream.queued for stream in streams),
            "OwnedPartitionsCount": len(lags),
            "MaxLag": max(lags.values(), default=0),
            **lags,
        }
