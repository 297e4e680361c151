"""Counts and times of requests by endpoint, in Prometheus' text format. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

_REQUESTS = "kafka_rest_requests_total"
_SECONDS = "kafka_rest_request_seconds"
_INSTANCES = "kafka_rest_consumer_instances"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = {"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"}


class RequestMeters:
    """Requests since the start."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def count(self, endpoint: str, method: str, code: int, seconds: float) -> None:
        known = method if method in _METHODS else "other"
        self._requests[endpoint, known, code] += 1
        self._seconds[endpoint] += seconds  # type: ignore[assignment]
        self._counts[endpoint] += 1

    def text(self, instances: int) -> str:
        return "".join(f"{line}\n" for line in self._lines(instances))

    def _lines(self, instances: int) -> Iterator[str]:
        yield f"# HELP {_REQUESTS} Requests answered."
        yield f"# TYPE {_REQUESTS} counter"
        for (endpoint, method, code), count in sorted(self._requests.items()):
            labels = f'endpoint="{endpoint}",method="{method}",code="{code}"'
            yield f"{_REQUESTS}{{{labels}}} {count}"
        yield f"# HELP {_SECONDS} Time until requests were answered."
        yield f"# TYPE {_SECONDS} summary"
        for endpoint in sorted(self._counts):
            yield f'{_SECONDS}_count{{endpoint="{endpoint}"}} {self._counts[endpoint]}'
            yield f'{_SECONDS}_sum{{endpoint="{endpoint}"}} {self._seconds[endpoint]}'
        yield f"# HELP {_INSTANCES} Consumer instances."
        yield f"# TYPE {_INSTANCES} gauge"
        yield f"{_INSTANCES} {instances}"
