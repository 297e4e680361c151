from __future__ import annotations

from kafka08.rest.meters import RequestMeters


def test_the_text_has_counts_and_times() -> None:
    meters = RequestMeters()
    meters.count("topics.list", "GET", 200, 0.5)
    meters.count("topics.list", "GET", 200, 0.25)
    meters.count("none", "BREW", 405, 0.0)
    lines = meters.text(3).splitlines()
    assert 'kafka_rest_requests_total{endpoint="topics.list",method="GET",code="200"} 2' in lines
    assert 'kafka_rest_requests_total{endpoint="none",method="other",code="405"} 1' in lines
    assert 'kafka_rest_request_seconds_sum{endpoint="topics.list"} 0.75' in lines
    assert 'kafka_rest_request_seconds_count{endpoint="topics.list"} 2' in lines
    assert lines[-1] == "kafka_rest_consumer_instances 3"
