"""The metrics of a consumer under the names of the original's beans.

Mirrors kafka.consumer.ConsumerTopicStats, FetchRequestAndResponseStats and the gauges of
ZookeeperConsumerConnector and ConsumerFetcherManager. Other modules receive the meters and record
with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafka08.client.meters import Now, Requests, Ticker, TopicMeters
from kafka08.consumer.stream import KafkaStream, PartitionPosition
from kafka08.metrics import client_names as names
from kafka08.metrics.clients import Count
from kafka08.metrics.meters import Meter, Timer
from kafka08.metrics.names import (
    FETCH_SIZES,
    FETCH_TIMES,
    FETCHER_BYTES,
    FETCHER_LAG,
    FETCHER_REQUESTS,
)
from kafka08.metrics.registry import Series, series


class NamedStream(NamedTuple):
    """A stream with the id of its thread, and its topic if it is not a filter's."""

    thread: str
    topic: str
    stream: KafkaStream


class ConsumerMetrics:
    """``now`` gives monotonic seconds."""

    def __init__(self, now: Now) -> None:
        self._ticker = ticker = Ticker(now)
        self.messages = TopicMeters(ticker)
        self.bytes = TopicMeters(ticker)
        self.rebalances = ticker.add(Timer())
        self.kafka_commits = ticker.add(Meter())
        self.zookeeper_commits = ticker.add(Meter())
        self.fetches = Requests(ticker)

    def numbers(
        self, streams: Iterable[KafkaStream], positions: Iterable[PartitionPosition]
    ) -> dict[str, float]:
        """Rates per second, times in ms, lags in messages; -1 while a lag is unknown."""
        streams = list(streams)
        numbers = self._ticker.numbers
        lags = {
            f"ConsumerLag.{position.tp.topic}.{position.tp.partition}": position.lag
            for position in positions
        }
        return {
            **self.messages.numbers("MessagesPerSec"),
            # The meter counts by chunk and lags behind.
            "MessagesPerSec.Count": sum(stream.messages for stream in streams),
            **self.bytes.numbers("BytesPerSec"),
            **numbers("RebalanceRateAndTime", self.rebalances),
            **numbers("KafkaCommitsPerSec", self.kafka_commits),
            **numbers("ZooKeeperCommitsPerSec", self.zookeeper_commits),
            "FetchQueueSize": sum(stream.queued for stream in streams),
            "OwnedPartitionsCount": len(lags),
            "MaxLag": max(lags.values(), default=0),
            **lags,
        }

    def series(
        self,
        client_id: str,
        group: str,
        sources: Iterable[NamedStream],
        positions: Iterable[PartitionPosition],
        fetching: set[tuple[str, int]],
    ) -> Iterator[Series]:
        """For prometheus-client. A lag that is not known yet has no series. ``fetching``: host and
        port of the brokers that are fetched from now."""
        sources, positions = list(sources), list(positions)
        self._ticker.tick()
        yield from self._messages(client_id, [each.stream for each in sources])
        yield from self.bytes.series(names.BYTES_READ, client_id)
        yield series(names.REBALANCES, self.rebalances, client_id)
        yield series(names.KAFKA_COMMITS, self.kafka_commits, client_id)
        yield series(names.ZOOKEEPER_COMMITS, self.zookeeper_commits, client_id)
        for thread, topic, stream in sources:
            yield series(names.FETCH_QUEUE, stream.queued, client_id, topic, thread)
        yield series(names.OWNED_PARTITIONS, len(positions), client_id, group)
        for topic, count in Counter(each.tp.topic for each in positions).items():
            yield series(names.OWNED_PARTITIONS, count, client_id, group, topic)
        known = [each for each in positions if each.lag >= 0]
        for position in known:
            topic, partition = position.tp
            yield series(FETCHER_LAG, position.lag, client_id, topic, str(partition))
        if known:
            yield series(names.MAX_LAG, max(each.lag for each in known), client_id)
        yield from fetch_series(self.fetches, client_id)
        rates = [
            times.meter.rate
            for address, (times, _) in self.fetches.by_broker()
            if address in fetching
        ]
        yield series(names.MIN_FETCH_RATE, min(rates, default=0.0), client_id)

    def _messages(self, client_id: str, streams: list[KafkaStream]) -> Iterator[Series]:
        counts = Counter(self.messages.counts())
        for stream in streams:
            topic, count = stream.unmetered
            counts[topic] += count
        everything = sum(stream.messages for stream in streams)
        yield series(names.MESSAGES_READ, Count(everything), client_id)
        for topic, count in counts.items():
            if topic:
                yield series(names.MESSAGES_READ, Count(count), client_id, topic)


def fetch_series(fetches: Requests, client_id: str) -> Iterator[Series]:
    """Those of all that fetches."""
    yield from fetches.series(FETCH_TIMES, FETCH_SIZES, client_id)
    for (host, port), (times, sizes) in fetches.by_broker():
        tags = (client_id, host, str(port))
        yield series(FETCHER_REQUESTS, Count(times.times.count), *tags)
        yield series(FETCHER_BYTES, Count(sizes.sum), *tags)
