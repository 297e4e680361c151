"""The pages that a broker serves over HTTP: metrics, also under JMX names, health, and clients."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs

from kafka08.metrics import jmx
from kafka08.metrics.exposition import CONTENT_TYPES, OPEN, PLAIN, Exposition
from kafka08.metrics.registry import Registry
from kafka08.runtime import Runtime
from kafka08.server.monitoring.health import Health

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_OPEN_METRICS = "application/openmetrics-text"
_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
_LATE_SECONDS = 1.0
# Shorter answers are not compressed.
_LEAST_ZIPPED = 1024
_GZIP_WINDOW = 31


class Page(NamedTuple):
    status: str
    content_type: str
    body: bytes


_OK, _BAD, _UNKNOWN, _UNAVAILABLE = (
    "200 OK",
    "400 Bad Request",
    "404 Not Found",
    "503 Service Unavailable",
)


class Endpoints:
    """A WSGI application. Nothing can be changed by it. ``clients``: the text of ``/clients``."""

    def __init__(
        self,
        runtime: Runtime,
        registry: Registry,
        health: Health,
        exposition: Exposition,
        clients: Callable[[], bytes],
    ) -> None:
        self._runtime = runtime
        self._registry = registry
        self._health = health
        self._exposition = exposition
        self._clients = clients
        self._pages: dict[str, Callable[[WSGIEnvironment], Page]] = {
            "/metrics": self._metrics,
            "/health/live": self._live,
            "/health/ready": self._ready,
            "/jmx": self._jmx,
            "/clients": lambda _: Page(_OK, _JSON, self._clients()),
        }

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        page = self._pages.get(environ["PATH_INFO"])
        if page is None:
            answer = Page(_UNKNOWN, _TEXT, b"not found\n")
        elif environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            headers = [("Allow", "GET, HEAD"), ("Content-Length", "0")]
            start("405 Method Not Allowed", headers)
            return []
        else:
            answer = page(environ)
        body = answer.body
        headers = [
            ("Content-Type", answer.content_type),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        if len(body) >= _LEAST_ZIPPED and _takes_gzip(environ.get("HTTP_ACCEPT_ENCODING", "")):
            body = self._runtime.blocking(_zipped, body)
            headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
        start(answer.status, [*headers, ("Content-Length", str(len(body)))])
        return [body]

    def _metrics(self, environ: WSGIEnvironment) -> Page:
        form = OPEN if _OPEN_METRICS in environ.get("HTTP_ACCEPT", "") else PLAIN
        return Page(_OK, CONTENT_TYPES[form], self._exposition.text(form))

    def _live(self, environ: WSGIEnvironment) -> Page:
        """Whether the event loop comes round in time."""
        clock = self._runtime.clock
        began = clock.monotonic()
        self._runtime.sleep(0)
        if clock.monotonic() - began > _LATE_SECONDS:
            return _json(_UNAVAILABLE, {"status": "late"})
        return _json(_OK, {"status": "live"})

    def _ready(self, environ: WSGIEnvironment) -> Page:
        health = self._health
        state, reasons, details = health.state, health.reasons(), health.details()
        if reasons:
            found = {"status": "not ready", "broker_state": state, "reasons": reasons}
            return _json(_UNAVAILABLE, found | details)
        return _json(_OK, {"status": "ready", "broker_state": state} | details)

    def _jmx(self, environ: WSGIEnvironment) -> Page:
        asked = parse_qs(environ["QUERY_STRING"], keep_blank_values=True).get("qry", ["*:*"])[-1]
        try:
            pattern = jmx.bean_pattern(asked)
        except ValueError as error:
            return _json(_BAD, {"error": str(error)})
        registry, beans = self._registry, []
        for metric, piece in registry.pieces(pattern.may_fit):
            for series in piece:
                name = series.bean
                if pattern.fits(name):
                    bean = {"name": name, "modelerType": metric.kind}
                    beans.append(json.dumps(bean | jmx.attributes(series, registry.age)))
            self._runtime.sleep(0)
        return Page(_OK, _JSON, f'{{"beans":[{",".join(beans)}]}}\n'.encode())


def _json(status: str, value: dict[str, object]) -> Page:
    return Page(status, _JSON, json.dumps(value).encode() + b"\n")


def _takes_gzip(accepted: str) -> bool:
    for each in accepted.lower().split(","):
        coding, _, parameter = each.partition(";")
        if coding.strip() == "gzip":
            return parameter.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _zipped(body: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(body) + packer.flush()
