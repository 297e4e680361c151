"""Pages over HTTP that show something and change nothing."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafka08.runtime import Runtime

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

OK, BAD, UNAVAILABLE = "200 OK", "400 Bad Request", "503 Service Unavailable"
JSON = "application/json"
_UNKNOWN = "404 Not Found"
_TEXT = "text/plain; charset=utf-8"
_LATE_SECONDS = 1.0
# Shorter answers are not compressed.
_LEAST_ZIPPED = 1024
_GZIP_WINDOW = 31


class Page(NamedTuple):
    status: str
    content_type: str
    body: bytes


class Pages:
    """A WSGI application. ``pages``: by path, the function that makes the page of a request."""

    def __init__(
        self, runtime: Runtime, pages: Mapping[str, Callable[[WSGIEnvironment], Page]]
    ) -> None:
        self._runtime = runtime
        self._pages = pages

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

    def is_late(self) -> bool:
        """Whether the event loop does not come round in time."""
        clock = self._runtime.clock
        began = clock.monotonic()
        self._runtime.sleep(0)
        return clock.monotonic() - began > _LATE_SECONDS


def json_page(status: str, value: Mapping[str, object]) -> Page:
    return Page(status, JSON, json.dumps(value).encode() + b"\n")


def _takes_gzip(accepted: str) -> bool:
    for each in accepted.lower().split(","):
        coding, _, parameter = each.partition(";")
        if coding.strip() == "gzip":
            return parameter.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _zipped(body: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(body) + packer.flush()
