"""A consumer's figures under the names of the original's beans."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafka08.common import TopicPartition
from kafka08.consumer.metrics import ConsumerMetrics
from tests.fakes.runtime import FakeClock


def numbers(messages: int = 0, queued: int = 0, **lags: int) -> dict[str, float]:
    metrics = ConsumerMetrics(FakeClock().monotonic)
    metrics.messages.mark("t", 3)
    streams: Any = [SimpleNamespace(messages=messages, queued=queued)] * 2
    positions: Any = [
        SimpleNamespace(tp=TopicPartition(key[0], int(key[1:])), lag=lag)
        for key, lag in lags.items()
    ]
    return metrics.numbers(iter(streams), iter(positions))


def test_lags_by_partition_and_the_largest() -> None:
    found = numbers(t0=4, t1=-1, u0=17)
    assert {key: value for key, value in found.items() if key.startswith("ConsumerLag.")} == {
        "ConsumerLag.t.0": 4,
        "ConsumerLag.t.1": -1,
        "ConsumerLag.u.0": 17,
    }
    assert (found["MaxLag"], found["OwnedPartitionsCount"]) == (17, 3)


def test_a_member_without_partitions() -> None:
    found = numbers()
    assert (found["MaxLag"], found["OwnedPartitionsCount"], found["FetchQueueSize"]) == (0, 0, 0)


def test_messages_are_counted_by_the_streams() -> None:
    """The meter is behind them, as it counts by chunk."""
    found = numbers(messages=50, queued=2)
    assert found["MessagesPerSec.Count"] == 100
    assert found["FetchQueueSize"] == 4
