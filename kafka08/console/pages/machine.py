"""Metrics and health for other programs, and the files of pages."""

from __future__ import annotations

import json
from importlib.resources import files

from prometheus_client.exposition import choose_encoder
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from kafka08.console.cluster_state import ClusterState
from kafka08.console.exposition import families
from kafka08.console.observer import Observer
from kafka08.console.site import Visit
from kafka08.metrics.exposition import texts

_STATIC = {"console.css": "text/css", "console.js": "text/javascript"}


def metrics(visit: Visit) -> Response:
    """Brokers and lag for Prometheus; 503 before the first look. A scrape does not fail with the
    cluster: alerts on what is known must not end then."""
    observer = visit.site.observer
    if not observer.has_looked:
        return Response("the cluster has not been read yet\n", 503, mimetype="text/plain")
    encode, content_type = choose_encoder(visit.request.headers.get("Accept", ""))
    # Other requests are answered while a large text is sent, family by family.
    pieces = texts(families(observer), encode)
    return Response(pieces, content_type=content_type)


def live(visit: Visit) -> Response:
    return _told(200, status="live")


def ready(visit: Visit) -> Response:
    """503 while the cluster cannot be seen. The pages of a cluster without brokers are wanted more
    than ever: it is ready then, with ``warnings``."""
    observer = visit.site.observer
    if observer.state is None or observer.error:
        return _told(503, status="not ready", reason=observer.error or "no data yet")
    warnings = _warnings(observer, observer.state)
    return _told(200, status="ready", **({"warnings": warnings} if warnings else {}))


def _warnings(observer: Observer, state: ClusterState) -> list[str]:
    warnings = []
    down = [str(id_) for id_, broker in state.brokers.items() if not broker.is_live]
    if not state.live:
        warnings.append("no broker is registered")
    elif down:
        warnings.append(f"brokers are down: {', '.join(down)}")
    if state.live and not state.told:
        warnings.append("no broker answers")
    if observer.lag_error:
        warnings.append(f"lag cannot be collected: {observer.lag_error}")
    return warnings


def _told(code: int, **values: str | list[str]) -> Response:
    return Response(json.dumps(values) + "\n", code, mimetype="application/json")


def static(visit: Visit, name: str) -> Response:
    if name not in _STATIC:
        raise NotFound("There is no such file.")
    data = (files("kafka08.console") / "static" / name).read_bytes()
    response = Response(data, mimetype=_STATIC[name])
    response.headers["Cache-Control"] = "max-age=300"
    return response
