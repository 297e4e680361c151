from __future__ import annotations

import pytest

from kafka08.metrics.topics import BrokerTopicStats


def counts(metrics: BrokerTopicStats, kind: str) -> dict[str, int]:
    return {tags[0]: meter.count for tags, meter in metrics.series(kind)}


def test_the_total_is_that_of_all_topics() -> None:
    metrics = BrokerTopicStats()
    metrics.of("a").bytes_in.mark(5)
    metrics.of("b").bytes_in.mark(7)
    assert metrics.of("a") is metrics.of("a")
    assert counts(metrics, "bytes_in") == {"": 12, "a": 5, "b": 7}
    assert counts(metrics, "bytes_out") == {"": 0, "a": 0, "b": 0}


@pytest.mark.scenario("ops-5")
def test_a_topic_that_is_gone_has_no_series_and_stays_in_the_total() -> None:
    metrics = BrokerTopicStats()
    metrics.of("a").messages_in.mark(5)
    metrics.of("b").messages_in.mark(7)
    metrics.keep({"b"})
    assert counts(metrics, "messages_in") == {"": 12, "b": 7}
    metrics.of("a").messages_in.mark(1)
    assert counts(metrics, "messages_in") == {"": 13, "b": 7, "a": 1}
