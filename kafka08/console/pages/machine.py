"""Metrics and health for other programs, and the files of pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

from prometheus_client.exposition import choose_encoder
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Request, Response

from kafka08.console.cluster_state import ClusterState
from kafka08.console.exposition import families
from kafka08.console.observer import Observer
from kafka08.console.site import Visit
from kafka08.metrics.exposition import texts

LIVE = {"status": "live"}
READY, NOT_READY = "ready", "not ready"
_STATIC = {"console.css": "text/css", "console.js": "text/javascript"}


def metrics(visit: Visit) -> Response:
    return exposed(visit.request, {visit.site.name: visit.site.observer})


def exposed(request: Request, observers: Mapping[str, Observer]) -> Response:
    """Brokers and lag for Prometheus, of clusters by their names; 503 before the first look. A
    scrape does not fail with a cluster: alerts on what is known must not end then."""
    looked = {name: each for name, each in observers.items() if each.has_looked}
    if not looked:
        return Response("the cluster has not been read yet\n", 503, mimetype="text/plain")
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    # Other requests are answered while a large text is sent, family by family.
    pieces = texts(families(looked), encode)
    return Response(pieces, content_type=content_type)


def live(_: Visit) -> Response:
    return told(LIVE)


def ready(visit: Visit) -> Response:
    """503 while the cluster cannot be seen."""
    found = readiness(visit.site.observer)
    return told(found, 200 if found["status"] == READY else 503)


def readiness(observer: Observer) -> Mapping[str, object]:
    """Not ready while the cluster cannot be seen. The pages of a cluster without brokers are wanted
    more than ever: it is ready then, with ``warnings``."""
    if observer.state is None or observer.error:
        return {"status": NOT_READY, "reason": observer.error or "no data yet"}
    warnings = _warnings(observer, observer.state)
    return {"status": READY, **({"warnings": warnings} if warnings else {})}


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


def told(values: Mapping[str, object], code: int = 200) -> Response:
    """The answer to a supervisor."""
    return Response(json.dumps(values) + "\n", code, mimetype="application/json")


def static(_: Visit, name: str) -> Response:
    return file_of(name)


def file_of(name: str) -> Response:
    """Raises NotFound."""
    if name not in _STATIC:
        raise NotFound("There is no such file.")
    data = (files("kafka08.console") / "static" / name).read_bytes()
    response = Response(data, mimetype=_STATIC[name])
    response.headers["Cache-Control"] = "max-age=300"
    return response
