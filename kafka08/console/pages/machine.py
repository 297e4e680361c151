"""Metrics and health for other programs, and the files of pages."""

from __future__ import annotations

import json
from importlib.resources import files

from prometheus_client.exposition import choose_encoder
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from kafka08.console.site import Visit
from kafka08.lag.exposition import families
from kafka08.metrics.exposition import texts

_STATIC = {"console.css": "text/css", "console.js": "text/javascript"}


def metrics(visit: Visit) -> Response:
    """Lag for Prometheus; 503 before the first collection, or if the last one failed."""
    observer = visit.site.observer
    if observer.lags is None or observer.lag_error:
        reason = observer.lag_error or "lag has not been collected yet"
        return Response(f"{reason}\n", 503, mimetype="text/plain")
    encode, content_type = choose_encoder(visit.request.headers.get("Accept", ""))
    # Other requests are answered while a large text is sent, family by family.
    pieces = texts(families(observer.lags), encode)
    return Response(pieces, content_type=content_type)


def live(visit: Visit) -> Response:
    return _told(200, status="live")


def ready(visit: Visit) -> Response:
    """503 while the cluster cannot be seen."""
    observer = visit.site.observer
    if observer.state is None or observer.error:
        return _told(503, status="not ready", reason=observer.error or "no data yet")
    return _told(200, status="ready")


def _told(code: int, **values: str) -> Response:
    return Response(json.dumps(values) + "\n", code, mimetype="application/json")


def static(visit: Visit, name: str) -> Response:
    if name not in _STATIC:
        raise NotFound("There is no such file.")
    data = (files("kafka08.console") / "static" / name).read_bytes()
    response = Response(data, mimetype=_STATIC[name])
    response.headers["Cache-Control"] = "max-age=300"
    return response
