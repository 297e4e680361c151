"""The pages that a broker serves over HTTP: metrics, also under JMX names, health, and clients."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from kafka08.metrics import jmx
from kafka08.metrics.exposition import CONTENT_TYPES, OPEN, PLAIN, Exposition
from kafka08.metrics.registry import Registry
from kafka08.runtime import Runtime
from kafka08.server.monitoring.health import Health
from kafka08.server.monitoring.pages import BAD, JSON, OK, UNAVAILABLE, Page, Pages, json_page

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_OPEN_METRICS = "application/openmetrics-text"


class Endpoints(Pages):
    """A WSGI application. Nothing can be changed by it. ``clients``: the text of ``/clients``."""

    def __init__(
        self,
        runtime: Runtime,
        registry: Registry,
        health: Health,
        exposition: Exposition,
        clients: Callable[[], bytes],
    ) -> None:
        super().__init__(
            runtime,
            {
                "/metrics": self._metrics,
                "/health/live": self._live,
                "/health/ready": self._ready,
                "/jmx": self._jmx,
                "/clients": lambda _: Page(OK, JSON, clients()),
            },
        )
        self._registry = registry
        self._health = health
        self._exposition = exposition

    def _metrics(self, environ: WSGIEnvironment) -> Page:
        form = OPEN if _OPEN_METRICS in environ.get("HTTP_ACCEPT", "") else PLAIN
        return Page(OK, CONTENT_TYPES[form], self._exposition.text(form))

    def _live(self, environ: WSGIEnvironment) -> Page:
        if self.is_late():
            return json_page(UNAVAILABLE, {"status": "late"})
        return json_page(OK, {"status": "live"})

    def _ready(self, environ: WSGIEnvironment) -> Page:
        health = self._health
        state, reasons, details = health.state, health.reasons(), health.details()
        if reasons:
            found = {"status": "not ready", "broker_state": state, "reasons": reasons}
            return json_page(UNAVAILABLE, found | details)
        return json_page(OK, {"status": "ready", "broker_state": state} | details)

    def _jmx(self, environ: WSGIEnvironment) -> Page:
        asked = parse_qs(environ["QUERY_STRING"], keep_blank_values=True).get("qry", ["*:*"])[-1]
        try:
            pattern = jmx.bean_pattern(asked)
        except ValueError as error:
            return json_page(BAD, {"error": str(error)})
        registry, beans = self._registry, []
        for metric, piece in registry.pieces(pattern.may_fit):
            for series in piece:
                name = series.bean
                if pattern.fits(name):
                    bean = {"name": name, "modelerType": metric.kind}
                    beans.append(json.dumps(bean | jmx.attributes(series, registry.age)))
            self._runtime.sleep(0)
        return Page(OK, JSON, f'{{"beans":[{",".join(beans)}]}}\n'.encode())
