"""Counts and times of requests by endpoint, and the page that shows them to Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client import REGISTRY
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import choose_encoder

from kafka08.metrics.exposition import texts
from kafka08.rest.calls import Call, RestAnswer, Route

_METHODS = {"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"}


class RequestMeters:
    """Requests since the start, a collector for prometheus-client. ``instances`` says how many
    consumer instances there are."""

    def __init__(self, instances: Callable[[], int]) -> None:
        self._instances = instances
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, float] = {}
        self._counts: Counter[str] = Counter()

    def count(self, endpoint: str, method: str, code: int, seconds: float) -> None:
        known = method if method in _METHODS else "other"
        self._requests[endpoint, known, code] += 1
        self._seconds[endpoint] = self._seconds.get(endpoint, 0.0) + seconds
        self._counts[endpoint] += 1

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "kafka_rest_requests", "Requests answered", labels=("endpoint", "method", "code")
        )
        for (endpoint, method, code), count in sorted(self._requests.items()):
            requests.add_metric((endpoint, method, str(code)), count)
        yield requests
        seconds = SummaryMetricFamily(
            "kafka_rest_request_seconds", "Time until requests were answered", labels=("endpoint",)
        )
        for endpoint, count in sorted(self._counts.items()):
            seconds.add_metric((endpoint,), count, self._seconds[endpoint])
        yield seconds
        yield GaugeMetricFamily(
            "kafka_rest_consumer_instances", "Consumer instances", self._instances()
        )

    def route(self) -> Route:
        return Route("GET", "/metrics", "metrics", self._page, versions=())

    def _page(self, call: Call) -> RestAnswer:
        encode, content_type = choose_encoder(call.request.headers.get("Accept", ""))
        families = (*self.collect(), *REGISTRY.collect())
        return RestAnswer(b"".join(texts(families, encode)), media=content_type)
