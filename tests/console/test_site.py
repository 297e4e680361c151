"""kafka08.console.site."""

from __future__ import annotations

import pytest
from werkzeug.exceptions import Forbidden
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request, Response

from kafka08.console.site import PageRoute, Tokens, Visit
from kafka08.security.users import User
from tests.console.scene import ConsoleScene


def visit(scene: ConsoleScene, role: str = "admin") -> Visit:
    return Visit(scene.site, Request(EnvironBuilder().get_environ()), User("ann", role))


def page(_: Visit) -> Response:
    return Response()


def test_a_read_only_console_lets_nobody_change() -> None:
    found = visit(ConsoleScene())
    assert not found.may("reader")
    PageRoute("/x", page).check(found)
    with pytest.raises(Forbidden, match="read-only"):
        PageRoute("/x", page, "operator").check(found)


def test_a_change_needs_its_role() -> None:
    scene = ConsoleScene(read_only=False)
    PageRoute("/x", page, "operator").check(visit(scene, "operator"))
    with pytest.raises(Forbidden, match="admin"):
        PageRoute("/x", page, "admin").check(visit(scene, "operator"))
    assert visit(scene, "operator").may("operator")
    assert not visit(scene, "operator").may("admin")


def test_pages_of_a_read_only_console_have_no_token() -> None:
    scene = ConsoleScene()
    scene.look()
    assert scene.site.tokens.of(User("ann", "admin")) not in visit(scene).render(
        "message.html", heading="h", text="t"
    ).get_data(as_text=True)


def test_tokens_belong_to_a_user_and_a_console() -> None:
    tokens, ann = Tokens(), User("ann", "admin")
    assert tokens.fits(ann, tokens.of(ann))
    assert not tokens.fits(User("bob", "admin"), tokens.of(ann))
    assert not Tokens().fits(ann, tokens.of(ann))
    assert not tokens.fits(ann, "é")


def test_only_the_console_says_what_was_done() -> None:
    scene = ConsoleScene()
    scene.look()
    nobody = User("", "admin")
    done = visit(scene)._replace(user=nobody).done("/topics", "It was done.")
    mark = scene.site.tokens.of(nobody, "It was done.")
    assert done.headers["Location"].endswith(f"mark={mark}")
    assert "It was done." in scene.get(f"/topics?told=It+was+done.&mark={mark}").text
    for wrong in ("", "&mark=", f"&mark={mark}x", f"&mark={scene.site.tokens.of(nobody)}"):
        assert "It was done." not in scene.get(f"/topics?told=It+was+done.{wrong}").text
    assert "Send money" not in scene.get(f"/topics?told=Send+money&mark={mark}").text
