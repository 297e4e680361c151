"""Computes how many of the waiting messages a batch reads. Pure arithmetic on offsets.

Mirrors the rate limit of Spark's DirectKafkaInputDStream and of its Kafka source: a total is
split by lag, in doubles, and a partition that lags never gets nothing (where the originals
could round its share down to zero, which for them means no limit at all).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from kafka08.common import TopicPartition

Offsets = Mapping[TopicPartition, int]


class Range(NamedTuple):
    """Offsets from ``start`` up to but not including ``end``."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """An upper bound of the number of messages; compaction and truncation leave gaps."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"


def lags(start: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    """Messages waiting by partition; never negative."""
    return {tp: max(latest[tp] - start[tp], 0) for tp in start if tp in latest}


def split_total(total: int, start: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    """Ends that take about ``total`` messages, split by lag; each lagging partition moves."""
    waiting = lags(start, latest)
    everything = sum(waiting.values())
    if everything <= total:
        return {tp: start[tp] + lag for tp, lag in waiting.items()}
    shares = {tp: total * lag / everything for tp, lag in waiting.items()}
    return {tp: start[tp] + min(lag, _at_least_one(shares[tp])) for tp, lag in waiting.items()}


def cap_each(
    start: Offsets, latest: Offsets, limits: Mapping[TopicPartition, float] | None
) -> dict[TopicPartition, int]:
    """Ends that take at most ``limits`` messages of each partition (None: all that wait)."""
    waiting = lags(start, latest)
    if limits is None:
        return {tp: start[tp] + lag for tp, lag in waiting.items()}
    return {
        tp: start[tp] + min(lag, _at_least_one(limits.get(tp, float("inf"))))
        for tp, lag in waiting.items()
    }


def rate_limits(
    start: Offsets,
    latest: Offsets,
    *,
    batch_seconds: float,
    max_rate_per_partition: float = 0,
    estimated_rate: float | None = None,
) -> dict[TopicPartition, float] | None:
    """Messages a batch may take of each partition; None for no limit.

    ``max_rate_per_partition`` and ``estimated_rate`` (of all partitions together, split by lag)
    are in messages a second; 0 and None mean that there is none.
    """
    if estimated_rate is not None and estimated_rate > 0:
        waiting = lags(start, latest)
        everything = sum(waiting.values()) or 1
        rates = {tp: estimated_rate * lag / everything for tp, lag in waiting.items()}
        if max_rate_per_partition > 0:
            rates = {tp: min(rate, max_rate_per_partition) for tp, rate in rates.items()}
    elif max_rate_per_partition > 0:
        rates = dict.fromkeys(start, max_rate_per_partition)
    else:
        return None
    return {tp: rate * batch_seconds for tp, rate in rates.items()}


def split_ranges(
    ranges: list[Range], *, min_partitions: int = 0, max_records: int = 0
) -> list[Range]:
    """Cut large ranges so that there are about ``min_partitions`` of them, none above
    ``max_records``; empty ones are left out. Order and coverage are kept."""
    found = [each for each in ranges if each.size > 0]
    total = sum(each.size for each in found)
    result: list[Range] = []
    for each in found:
        parts = 1
        if max_records:
            parts = -(-each.size // max_records)
        if min_partitions > len(found):
            parts = max(parts, round(each.size / total * min_partitions))
        parts = max(1, min(parts, each.size))
        bounds = [each.start + each.size * number // parts for number in range(parts + 1)]
        result += [each._replace(start=low, end=high) for low, high in pairwise(bounds)]
    return result


def _at_least_one(share: float) -> int:
    if share == float("inf"):
        return 1 << 62
    return max(int(share), 1)
