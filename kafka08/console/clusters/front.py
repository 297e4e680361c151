"""Several clusters in one console: a page that lists them, and the pages of each under /c/NAME.

The consoles of the clusters do not know of each other, nor where they are: SCRIPT_NAME tells them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.routing import Map, Rule
from werkzeug.utils import redirect
from werkzeug.wrappers import Request, Response

from kafka08.console.app import Console
from kafka08.console.clusters.summary import as_text, summary_of
from kafka08.console.pages import machine
from kafka08.console.pages.data import encoded
from kafka08.console.pages.guards import Login, failure, guarded, unauthorized
from kafka08.console.site import HTML, JSON, TEXT, Site, preferred, root_of, templates
from kafka08.network.http import Environ, StartResponse
from kafka08.security.users import User, Users

logger = logging.getLogger("kafka.console.Console")

_BELOW = re.compile(rf"{root_of('([^/]+)')}(/.*)?", re.DOTALL)
"""A path of a cluster's pages: its name, and the path within them."""


class Front:
    """A WSGI application. ``sites``: of the clusters, which have names, in the order of the list.
    ``users`` None: no login is needed. ``sleep(seconds)`` slows failed logins down."""

    def __init__(
        self, sites: Sequence[Site], users: Users | None, sleep: Callable[[float], object]
    ) -> None:
        self._sites = sites
        self._consoles = {site.name: Console(site, users, sleep) for site in sites}
        self._login = Login(users, sleep)
        self._templates = templates()
        pages: dict[str, Callable[..., Response]] = {
            "/": self._clusters,
            "/metrics": self._metrics,
            "/health/live": _live,
            "/health/ready": self._ready,
            "/static/<name>": _static,
            root_of("<name>"): self._overview,
            root_of("<name>/<path:path>"): self._overview,
            root_of("<name>/"): self._overview,
        }
        self._map = Map(
            [Rule(path, endpoint=page, methods=["GET"]) for path, page in pages.items()]
        )

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        below = _BELOW.fullmatch(environ["PATH_INFO"])
        console = self._consoles.get(below[1]) if below else None
        if below is None or console is None or not below[2]:
            return guarded(self._respond(Request(environ)))(environ, start_response)
        mounted = {**environ, "SCRIPT_NAME": root_of(below[1]), "PATH_INFO": below[2]}
        return console(mounted, start_response)

    def _respond(self, request: Request) -> Response:
        user = self._login.user(request)
        if user is None:
            return unauthorized()
        visit = _FrontVisit(request, user)
        try:
            page: Callable[..., Response]
            page, arguments = self._map.bind_to_environ(request.environ).match()
            return page(visit, **arguments)
        except HTTPException as error:
            if error.code is None or error.code < 400:
                return error.get_response(request.environ)
            return self._failure(visit, error.code, error.name, str(error.description))
        except Exception:
            logger.exception("Error while answering %s %s", request.method, request.path)
            return self._failure(visit, 500, "An error of the console", "The log has the details.")

    def _clusters(self, visit: _FrontVisit) -> Response:
        """As text for a terminal unless a browser asks. That has code 503 if a cluster loses data,
        or has not been seen yet."""
        rows = [summary_of(site) for site in self._sites]
        form = preferred(visit.request, TEXT, HTML, JSON)
        if form == JSON:
            response = Response(encoded({"clusters": [row.data for row in rows]}), mimetype=JSON)
        elif form == TEXT:
            code = 503 if any(row.is_lost for row in rows) else 200
            response = Response(as_text(rows), code, mimetype=TEXT)
        else:
            pauses = [site.config.refresh_ms // 1000 for site in self._sites]
            response = self._render(visit, "clusters.html", refresh=max(*pauses, 1), rows=rows)
        response.vary.add("Accept")
        return response

    def _metrics(self, visit: _FrontVisit) -> Response:
        return machine.exposed(visit.request, {site.name: site.observer for site in self._sites})

    def _ready(self, _: _FrontVisit) -> Response:
        """503 while no cluster can be seen: the pages of the others are wanted."""
        found = {site.name: machine.readiness(site.observer) for site in self._sites}
        is_ready = any(each["status"] == machine.READY for each in found.values())
        status = machine.READY if is_ready else machine.NOT_READY
        return machine.told({"status": status, "clusters": found}, 200 if is_ready else 503)

    def _overview(self, _: _FrontVisit, name: str, path: str = "") -> Response:
        """Of a cluster, whose path has no slash at its end."""
        if name not in self._consoles:
            raise NotFound(f"There is no cluster {name}.")
        return redirect(f"{root_of(name)}/", 308)

    def _failure(self, visit: _FrontVisit, code: int, heading: str, text: str) -> Response:
        form = preferred(visit.request, TEXT, HTML, JSON)
        if form == HTML:
            return self._render(visit, "front_message.html", code, heading=heading, text=text)
        return failure(form, code, heading, text)

    def _render(
        self, visit: _FrontVisit, template: str, status: int = 200, **values: object
    ) -> Response:
        common = {
            "cluster_name": "",
            "clusters": [(site.name, f"{root_of(site.name)}/") for site in self._sites],
            "now_ms": self._sites[0].clock.millis(),
            "refresh": 0,
            "root": "",
            "user": visit.user.name,
        }
        text = self._templates.get_template(template).render(common | values)
        return Response(text, status, mimetype=HTML)


class _FrontVisit(NamedTuple):
    request: Request
    user: User


def _live(_: _FrontVisit) -> Response:
    return machine.told(machine.LIVE)


def _static(_: _FrontVisit, name: str) -> Response:
    return machine.file_of(name)
