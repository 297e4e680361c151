"""kafka08.console.app."""

from __future__ import annotations

import re

import pytest
from werkzeug.datastructures import Headers

from kafka08.console.app import ROUTES, is_same_origin
from kafka08.security.users import User
from tests.console.scene import ConsoleScene

READER = {"r": "ann:reader"}


def test_every_answer_has_the_safe_headers() -> None:
    scene = ConsoleScene()
    scene.look()
    for path in ("/", "/none", "/static/console.js", "/metrics"):
        headers = scene.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.scenario("ops-53")
def test_pages_have_no_script_and_no_style_of_their_own() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.commit("g", "t", 0)
    scene.look()
    scene.runtime.clock.advance(60)
    scene.topic("u", [1])
    scene.look()
    lists = ("/", "/brokers", "/topics", "/groups", "/events")
    for path in (*lists, "/brokers/1", "/brokers/1/what-if", "/topics/t", "/group?name=g"):
        page = scene.get(path).text
        assert re.findall(r"<script(?! src=)", page) == []
        assert " style=" not in page
        assert re.findall(r"<[^>]* on\w+=", page) == []


def test_names_are_never_markup() -> None:
    scene = ConsoleScene()
    name = "<script>alert(1)</script>"
    scene.topic("t", [1])
    scene.commit(name.replace("/", "_"), "t", 0)
    scene.look()
    for path in ("/groups", "/topics/t", f"/topics?name={name}", f"/group?name={name}"):
        assert "<script>alert" not in scene.get(path).text


@pytest.mark.scenario("ops-57")
def test_no_page_changes_anything() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.commit("g", "t", 0)
    scene.look()
    writes = len(scene.server.writes)
    seen, left = set(), ["/"]
    while left:
        path = left.pop()
        if path in seen:
            continue
        seen.add(path)
        for method in (scene.client.get, scene.client.head):
            assert method(path).status_code in (200, 308), path
        left += re.findall(r'href="(/[^"]*)"', scene.get(path).text.replace("&amp;", "&"))
    assert len(seen) >= 8
    assert len(scene.server.writes) == writes


def test_methods_that_a_page_does_not_have() -> None:
    scene = ConsoleScene()
    scene.look()
    for route in ROUTES:
        if not route.changes and "<" not in route.path:
            assert scene.client.put(route.path).status_code == 405


def test_without_users_nobody_logs_in() -> None:
    scene = ConsoleScene()
    scene.look()
    assert scene.get("/").status_code == 200


@pytest.mark.scenario("ops-58")
def test_with_users_everybody_logs_in() -> None:
    scene = ConsoleScene(READER)
    scene.look()
    assert scene.get("/").status_code == 401
    assert scene.get("/", auth=("ann", "wrong")).status_code == 401
    assert scene.get("/", auth=("bob", "secret")).status_code == 401
    assert scene.get("/", auth=("ann", "secret")).status_code == 200
    assert scene.client.get("/metrics").status_code == 401
    assert scene.client.get("/health/live").status_code == 200


@pytest.mark.scenario("ops-58")
def test_failed_logins_are_slow_and_told(caplog: pytest.LogCaptureFixture) -> None:
    scene = ConsoleScene(READER)
    scene.get("/", auth=("ann", "hunter2"))
    assert scene.runtime.slept == [1.0]
    assert "'ann'" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.scenario("ops-56")
def test_the_badge_tells_of_a_read_only_console() -> None:
    scene = ConsoleScene()
    scene.look()
    assert 'id="read-only"' in scene.get("/").text


def test_an_error_of_our_own_shows_no_stack(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scene = ConsoleScene()
    scene.look()
    monkeypatch.setattr(scene.observer, "rates", None)
    response = scene.get("/topics")
    scene.topic("t", [1])
    scene.look()
    monkeypatch.setattr(scene.observer, "rates", None)
    response = scene.get("/topics")
    assert response.status_code == 500
    assert "Traceback" not in response.text
    assert "AttributeError" not in response.text
    assert "Traceback" in caplog.text


CHANGES = [route.path for route in ROUTES if route.changes]
FIELDS = {"name": "t", "partitions": 5, "factor": 1, "typed": "g", "partition": "0"}


def filled(path: str) -> str:
    """The path of a route about topic t or broker 1."""
    return path.replace("<name>", "t").replace("<int:broker_id>", "1")


def changeable(**settings: object) -> ConsoleScene:
    scene = ConsoleScene(**settings)  # type: ignore[arg-type]
    scene.topic("t", [1])
    scene.commit("g", "t", 0)
    scene.look()
    return scene


def test_there_are_changes() -> None:
    assert len(CHANGES) >= 9


@pytest.mark.scenario("ops-56")
@pytest.mark.parametrize("path", CHANGES)
def test_a_read_only_console_refuses_every_change(path: str) -> None:
    scene = changeable()
    writes = len(scene.server.writes)
    token = scene.site.tokens.of(User("", "admin"))
    answer = scene.post(filled(path), token=token, **FIELDS)
    assert answer.status_code == 403
    assert "read-only" in answer.text
    assert len(scene.server.writes) == writes
    assert scene.cluster.messages("t", 0) == []


@pytest.mark.scenario("ops-56")
def test_a_read_only_console_has_no_form_for_a_change() -> None:
    scene = changeable()
    for_all = {each.path for each in ROUTES if each.role is None}
    for route in ROUTES:
        path = filled(route.path)
        answer = scene.get(path + ("?name=g" if path.startswith("/group") else ""))
        assert 'method="post"' not in answer.text
        if route.path not in for_all:
            assert answer.status_code in (403, 405)


@pytest.mark.scenario("ops-57")
@pytest.mark.parametrize("path", CHANGES)
def test_a_change_needs_the_token_of_a_page(path: str) -> None:
    scene = changeable(read_only=False)
    writes = len(scene.server.writes)
    path = filled(path)
    token = scene.site.tokens.of(User("", "admin"))
    assert scene.client.post(path, data=FIELDS).status_code == 403
    assert scene.post(path, **{**FIELDS, "token": "x" * 64}).status_code == 403
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        data = {**FIELDS, "token": token}
        assert scene.client.post(path, data=data, headers=headers).status_code == 403
    assert scene.client.post(path, json={**FIELDS, "token": token}).status_code == 400
    assert scene.client.get(f"{path}?token={token}&typed=g").status_code in (200, 303, 404, 405)
    assert len(scene.server.writes) == writes
    assert scene.cluster.messages("t", 0) == []


@pytest.mark.scenario("ops-58")
@pytest.mark.parametrize("role", ["reader", "operator"])
def test_users_make_the_changes_of_their_role(role: str) -> None:
    scene = changeable(users={"a": f"ann:{role}"}, read_only=False)
    writes = len(scene.server.writes)
    token = scene.site.tokens.of(User("ann", role))
    for route in ROUTES:
        allowed = route.role == role == "operator"
        if route.changes and not allowed:
            path = filled(route.path)
            data = {**FIELDS, "token": token}
            answer = scene.client.post(path, data=data, auth=("ann", "secret"))
            assert answer.status_code == 403
    assert len(scene.server.writes) == writes
    page = scene.get("/topics/t", auth=("ann", "secret")).text
    assert ("/topics/t/send" in page) == (role == "operator")
    assert "/topics/t/change" not in page


@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        ({}, True),
        ({"Origin": "http://h:1"}, True),
        ({"Origin": "http://evil"}, False),
        ({"Origin": "null"}, False),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://h:1"}, False),
    ],
)
def test_where_a_form_comes_from(headers: dict[str, str], is_ours: bool) -> None:
    assert is_same_origin(Headers(headers), "http://h:1") is is_ours
