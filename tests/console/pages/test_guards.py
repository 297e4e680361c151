"""kafka08.console.pages.guards; the login is tested with the pages that it guards."""

from __future__ import annotations

import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request, Response

from kafka08.console.pages.guards import Login, failure, guarded, unauthorized
from kafka08.console.site import JSON, TEXT
from kafka08.security.users import User, Users, line_for


def request(path: str, auth: tuple[str, str] | None = None) -> Request:
    return Request(EnvironBuilder(path, auth=auth).get_environ())


@pytest.mark.parametrize(
    ("path", "auth", "name"),
    [
        ("/", None, None),
        ("/", ("ann", "secret"), "ann"),
        ("/", ("ann", "wrong"), None),
        ("/health/live", None, ""),
        ("/static/console.css", None, ""),
        ("/healthy", None, None),
    ],
)
def test_who_comes_in(path: str, auth: tuple[str, str] | None, name: str | None) -> None:
    slept: list[float] = []
    login = Login(Users([line_for("ann", "reader", "secret")], "users"), slept.append)
    user = login.user(request(path, auth))
    assert (user and user.name) == name
    assert slept == ([1.0] if auth and not user else [])


def test_without_users_everybody_is_an_admin() -> None:
    assert Login(None, lambda _: None).user(request("/")) == User("", "admin")


def test_a_browser_asks_for_the_password_after_401() -> None:
    answer = unauthorized()
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic realm=")


def test_an_answer_is_not_kept_unless_it_says_so() -> None:
    assert guarded(Response()).headers["Cache-Control"] == "no-store"
    kept = Response(headers={"Cache-Control": "max-age=300"})
    assert guarded(kept).headers["Cache-Control"] == "max-age=300"


def test_errors_for_programs_and_terminals() -> None:
    assert failure(JSON, 404, "Not Found", "why").json == {"error": "Not Found", "reason": "why"}
    assert failure(TEXT, 404, "Not Found", "why").get_data() == b"Not Found: why\n"
