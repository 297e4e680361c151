"""The counts of a broker by topic (kafka.server.BrokerTopicStats)."""

from __future__ import annotations

from collections.abc import Container
from operator import attrgetter

from kafka08.metrics.meters import Meter

KINDS = (
    "messages_in",
    "bytes_in",
    "bytes_out",
    "replication_bytes_out",
    "bytes_rejected",
    "total_produce_requests",
    "total_fetch_requests",
    "failed_produce_requests",
    "failed_fetch_requests",
)


class BrokerTopicMetrics:
    """``bytes_out`` has what consumers were sent, ``replication_bytes_out`` what followers were."""

    __slots__ = KINDS

    def __init__(self) -> None:
        self.messages_in = Meter()
        self.bytes_in = Meter()
        self.bytes_out = Meter()
        self.replication_bytes_out = Meter()
        self.bytes_rejected = Meter()
        self.total_produce_requests = Meter()
        self.total_fetch_requests = Meter()
        self.failed_produce_requests = Meter()
        self.failed_fetch_requests = Meter()


class BrokerTopicStats:
    """The counts by topic. The totals go on counting what topics had that are gone."""

    def __init__(self) -> None:
        self._by_topic: dict[str, BrokerTopicMetrics] = {}
        self._gone = BrokerTopicMetrics()
        self._totals = BrokerTopicMetrics()

    def of(self, topic: str) -> BrokerTopicMetrics:
        meters = self._by_topic.get(topic)
        if meters is None:
            meters = self._by_topic[topic] = BrokerTopicMetrics()
        return meters

    def keep(self, topics: Container[str]) -> None:
        """Forget all other topics."""
        for topic in [each for each in self._by_topic if each not in topics]:
            meters = self._by_topic.pop(topic)
            for kind in KINDS:
                getattr(self._gone, kind).count += getattr(meters, kind).count

    def series(self, kind: str) -> list[tuple[tuple[str], Meter]]:
        """The total, without a topic, and the meter of each topic."""
        get = attrgetter(kind)
        meters = [(topic, get(each)) for topic, each in self._by_topic.items()]
        total: Meter = get(self._totals)
        total.count = get(self._gone).count + sum(meter.count for _, meter in meters)
        return [(("",), total), *(((topic,), meter) for topic, meter in meters)]
