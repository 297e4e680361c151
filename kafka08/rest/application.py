"""The WSGI application: finds the handler of a request, decides who may call it (no pages of other
sites, and users by their roles), and turns its answer or error into HTTP."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from kafka08.errors import KafkaError
from kafka08.network.http import Environ, StartResponse
from kafka08.rest.calls import Call, Handler, RestAnswer, Route
from kafka08.rest.config import RestConfig
from kafka08.rest.errors import RestError, bad_entity, kafka_error, plain
from kafka08.rest.media import PLAIN_JSON, UNTYPED, Media, chosen, offers, request_media
from kafka08.rest.meters import RequestMeters
from kafka08.runtime import Clock
from kafka08.security.users import User, Users

logger = logging.getLogger("io.confluent.kafkarest.KafkaRestApplication")
request_logger = logging.getLogger("io.confluent.rest-utils.requests")
_ANYBODY = "*"
_NONE = "none"


_refused = partial(
    RestError,
    401,
    401,
    "HTTP 401 Unauthorized",
    {"WWW-Authenticate": 'Basic realm="kafka-rest", charset="UTF-8"'},
)


class Origins(NamedTuple):
    """The origins of pages that may call; ``*`` stands for all."""

    allowed: Collection[str]

    def answered(self, request: Request) -> str:
        """The value of Access-Control-Allow-Origin, "" for none."""
        origin = request.headers.get("Origin", "")
        if origin and _ANYBODY in self.allowed:
            return _ANYBODY
        return origin if origin in self.allowed else ""

    def check(self, request: Request) -> None:
        """Raises RestError 403 for a request that a page of another site made.

        Such a page cannot read the answer, but a request may have an effect.
        """
        origin = request.headers.get("Origin")
        if self.answered(request) or origin == f"{request.scheme}://{request.host}":
            return
        if origin is not None or request.headers.get("Sec-Fetch-Site") == "cross-site":
            raise plain(403, "Pages of other origins may not call (access.control.allow.origin).")


class UserAccess(NamedTuple):
    """``users`` None: everybody may do everything that is not ``read_only``."""

    users: Users | None
    read_only: bool

    def check(self, request: Request, route: Route) -> None:
        """Raises RestError 401 or 403."""
        if self.users is not None:
            login = request.authorization
            if login is None or login.type != "basic":
                raise _refused()
            role = self.users.role(login.username or "", login.password or "")
            if role is None:
                raise _refused()
            if not User(login.username or "", role).may(route.role):
                raise plain(403, f"The role {role} may not do this.")
        if self.read_only and route.changes:
            raise plain(403, "The proxy is read-only (rest.read.only).")


class Application:
    """``routes`` in any order. ``users`` None: no login is needed."""

    def __init__(
        self,
        routes: Sequence[Route],
        config: RestConfig,
        users: Users | None,
        clock: Clock,
        meters: RequestMeters,
    ) -> None:
        self.routes = routes
        self._access = UserAccess(users, config.read_only)
        self._origins = Origins(config.access_control_allow_origin)
        self._clock = clock
        self._meters = meters
        self._methods = config.access_control_allow_methods
        self._debug = config.debug
        self._map = Map(
            [Rule(each.rule, methods=[each.method], endpoint=each) for each in routes],
            strict_slashes=False,
            merge_slashes=False,
        )

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        begin = self._clock.monotonic()
        request = Request(environ)
        name, response = self._respond(request)
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-store"
        origin = self._origins.answered(request)
        if origin:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Vary"] = "Origin"
        seconds = self._clock.monotonic() - begin
        self._meters.count(name, request.method, response.status_code, seconds)
        request_logger.info(
            '%s "%s %s" %d', request.remote_addr, request.method, request.path, response.status_code
        )
        return response(environ, start_response)

    def _respond(self, request: Request) -> tuple[str, Response]:
        """The endpoint's name, and the answer."""
        accept = Media(PLAIN_JSON)
        name = _NONE
        try:
            if request.method == "OPTIONS":
                return name, self._preflight(request)
            route, args = self._match(request)
            name = route.name
            self._origins.check(request)
            self._access.check(request, route)
            media = _body_type(request, route)
            found = _answer_type(request, route, media)
            if found is None:
                return name, _without_type(406)
            accept = found
            answer = self._called(route.handler, Call(request, args, media, accept))
        except RestError as error:
            return name, _error(error, accept.name)
        return name, _response(answer, accept.name)

    def _match(self, request: Request) -> tuple[Route, Mapping[str, object]]:
        # The name of the server does not matter to the rules.
        adapter = self._map.bind("rest")
        try:
            route, args = adapter.match(request.path, request.method)
        except NotFound:
            raise plain(404, "HTTP 404 Not Found") from None
        except MethodNotAllowed as error:
            raise _method_error(error.valid_methods or ()) from None
        except HTTPException as error:
            raise plain(error.code or 400, f"HTTP {error.code} {error.name}") from None
        if request.method == "HEAD" and route.changes:
            raise _method_error([route.method])
        return route, args

    def _called(self, handler: Handler, call: Call) -> RestAnswer:
        try:
            return handler(call)
        except RestError:
            raise
        except (KafkaError, OSError) as error:
            raise kafka_error(error) from error
        except Exception as error:
            logger.exception("Unexpected error in %s", call.request.base_url)
            text = f"Internal Server Error: {error!r}" if self._debug else "Internal Server Error"
            raise plain(500, text) from error

    def _preflight(self, request: Request) -> Response:
        """The answer to OPTIONS, which browsers ask before a page's request."""
        response = _without_type(200)
        methods = self._map.bind("rest").allowed_methods(request.path)
        if not methods:
            return _error(plain(404, "HTTP 404 Not Found"), PLAIN_JSON)
        response.headers["Allow"] = ", ".join(sorted({*methods, "OPTIONS"}))
        if self._origins.answered(request):
            wanted = request.headers.get("Access-Control-Request-Headers", "")
            allowed = self._methods or ", ".join(sorted(methods))
            response.headers["Access-Control-Allow-Methods"] = allowed
            response.headers["Access-Control-Allow-Headers"] = wanted
        return response


def _method_error(allowed: Iterable[str]) -> RestError:
    headers = {"Allow": ", ".join(sorted(allowed))}
    return RestError(405, 405, "HTTP 405 Method Not Allowed", headers)


def _body_type(request: Request, route: Route) -> Media:
    given = request.headers.get("Content-Type", "")
    if request.method not in ("POST", "PUT", "PATCH") and not request.get_data():
        return Media("")
    media = request_media(given, route.versions)
    if route.versions == (3,) and request.get_data() and media.name in ("", UNTYPED):
        raise plain(415, "HTTP 415 Unsupported Media Type")
    return media


def _answer_type(request: Request, route: Route, media: Media) -> Media | None:
    """The type of the answer: of equals, the version of the request's body."""
    if not route.versions:
        return Media(PLAIN_JSON)
    versions = sorted(route.versions, key=lambda version: version != media.version)
    return chosen(request.headers.get("Accept"), offers(versions, route.formats))


def _without_type(status: int) -> Response:
    response = Response(status=status)
    response.headers.pop("Content-Type", None)
    return response


def _response(answer: RestAnswer, media: str) -> Response:
    response = _shown(answer, media)
    response.headers.update(answer.headers)
    return response


def _shown(answer: RestAnswer, media: str) -> Response:
    if answer.body is None:
        return _without_type(answer.status)
    if isinstance(answer.body, bytes):
        return Response(answer.body, answer.status, content_type=answer.media or media)
    try:
        text = json.dumps(answer.body, separators=(",", ":"))
    except (ValueError, RecursionError) as error:
        return _error(bad_entity(f"The answer cannot be shown as JSON: {error}"), media)
    return Response(text, answer.status, content_type=answer.media or media)


def _error(error: RestError, media: str) -> Response:
    text = json.dumps(error.body, separators=(",", ":"))
    response = Response(text, error.status, content_type=media)
    response.headers.update(error.headers)
    return response
