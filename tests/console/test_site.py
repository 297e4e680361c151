"""kafka08.console.site."""

from __future__ import annotations

import pytest
from werkzeug.exceptions import Forbidden
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request, Response

from kafka08.console.access import User
from kafka08.console.site import Route, Visit, whole
from tests.console.scene import Scene


def visit(scene: Scene, role: str = "admin") -> Visit:
    return Visit(scene.site, Request(EnvironBuilder().get_environ()), User("ann", role))


def page(_: Visit) -> Response:
    return Response()


def test_a_read_only_console_lets_nobody_change() -> None:
    found = visit(Scene())
    assert not found.may("reader")
    Route("/x", page).check(found)
    with pytest.raises(Forbidden, match="read-only"):
        Route("/x", page, "operator").check(found)


def test_a_change_needs_its_role() -> None:
    scene = Scene(read_only=False)
    Route("/x", page, "operator").check(visit(scene, "operator"))
    with pytest.raises(Forbidden, match="admin"):
        Route("/x", page, "admin").check(visit(scene, "operator"))
    assert visit(scene, "operator").may("operator")
    assert not visit(scene, "operator").may("admin")


def test_pages_of_a_read_only_console_have_no_token() -> None:
    scene = Scene()
    scene.look()
    assert scene.site.tokens.of(User("ann", "admin")) not in visit(scene).render(
        "message.html", heading="h", text="t", back="/"
    ).get_data(as_text=True)


def test_numbers_of_forms() -> None:
    assert whole(" 12 ", "offset") == 12
    for text in ("", "x", "1.5", "-1", str(1 << 63)):
        with pytest.raises(ValueError, match="offset"):
            whole(text, "offset")
