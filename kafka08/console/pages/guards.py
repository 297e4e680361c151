"""The guards of every page: the login, and the headers that tell browsers what it may do."""

from __future__ import annotations

import logging
from collections.abc import Callable

from werkzeug.wrappers import Request, Response

from kafka08.console.pages.data import encoded
from kafka08.console.site import JSON, TEXT
from kafka08.security.users import ADMIN, User, Users

logger = logging.getLogger("kafka.console.Console")

_OPEN = ("/health/", "/static/")
"""Paths that need no login: they show nothing of the cluster."""

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_FAILED_LOGIN_S = 1.0


class Login:
    """``users`` None: no login is needed. ``sleep(seconds)`` slows failed logins down."""

    def __init__(self, users: Users | None, sleep: Callable[[float], object]) -> None:
        self._users = users
        self._sleep = sleep

    def user(self, request: Request) -> User | None:
        """None for a request that must log in first."""
        if self._users is None or request.path.startswith(_OPEN):
            return User("", ADMIN)
        given = request.authorization
        if given is None or given.type != "basic":
            return None
        name = given.username or ""
        role = self._users.role(name, given.password or "")
        if role is None:
            logger.warning("Login failed: user %r from %s", name[:100], request.remote_addr)
            self._sleep(_FAILED_LOGIN_S)
            return None
        return User(name, role)


def unauthorized() -> Response:
    """The answer that has a browser ask for name and password."""
    response = Response("Log in first.\n", 401, mimetype="text/plain")
    response.headers["WWW-Authenticate"] = 'Basic realm="kafka08 console", charset="UTF-8"'
    return response


def failure(form: str, code: int, heading: str, text: str) -> Response:
    """An error for programs as JSON, for others as a line."""
    if form == JSON:
        return Response(encoded({"error": heading, "reason": text}), code, mimetype=JSON)
    return Response(f"{heading}: {text}\n", code, mimetype=TEXT)


def guarded(response: Response) -> Response:
    """With the headers of every answer."""
    for name, value in _HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-store")
    return response
