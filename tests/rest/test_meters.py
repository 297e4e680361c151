from __future__ import annotations

from prometheus_client import CollectorRegistry

from kafka08.rest.meters import RequestMeters


def test_counts_times_and_instances() -> None:
    meters = RequestMeters(lambda: 3)
    registry = CollectorRegistry()
    registry.register(meters)
    meters.count("topics.list", "GET", 200, 0.5)
    meters.count("topics.list", "GET", 200, 0.25)
    meters.count("none", "BREW", 405, 0.0)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"kafka_rest_{name}", labels)

    assert value("requests_total", endpoint="topics.list", method="GET", code="200") == 2
    assert value("requests_total", endpoint="none", method="other", code="405") == 1
    assert value("request_seconds_sum", endpoint="topics.list") == 0.75
    assert value("request_seconds_count", endpoint="topics.list") == 2
    assert value("consumer_instances") == 3
