"""Decides who may call: no pages of other sites, and users by their roles."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from werkzeug.wrappers import Request

from kafka08.rest.calls import Route
from kafka08.rest.errors import RestError, plain
from kafka08.security.users import ROLES, Users

ANYBODY = "*"


class Refused(RestError):
    """401: a login is needed."""

    def __init__(self) -> None:
        super().__init__(401, 401, "HTTP 401 Unauthorized")


class Origins(NamedTuple):
    """The origins of pages that may call; ``*`` stands for all."""

    allowed: Collection[str]

    def answered(self, request: Request) -> str:
        """The value of Access-Control-Allow-Origin, "" for none."""
        origin = request.headers.get("Origin", "")
        if origin and ANYBODY in self.allowed:
            return ANYBODY
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


class Access:
    """``users`` None: everybody may do everything that is not ``read_only``."""

    def __init__(self, users: Users | None, *, read_only: bool) -> None:
        self._users = users
        self._read_only = read_only

    def check(self, request: Request, route: Route) -> None:
        """Raises RestError 401 or 403."""
        if self._users is not None:
            login = request.authorization
            if login is None or login.type != "basic":
                raise Refused()
            role = self._users.role(login.username or "", login.password or "")
            if role is None:
                raise Refused()
            if ROLES.index(role) < ROLES.index(route.role):
                raise plain(403, f"The role {role} may not do this.")
        if self._read_only and route.changes:
            raise plain(403, "The proxy is read-only (rest.read.only).")
