from __future__ import annotations

import re
from base64 import b64encode

import pytest

from kafka08.rest.calls import OPERATOR
from kafka08.security.users import Users, line_for
from tests.rest.world import V1, RestWorld

USERS = Users([line_for("rita", "reader", "r"), line_for("olga", "operator", "o")], "users")


def basic(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


def filled(rule: str) -> str:
    """A path of the rule: names are ``t``, numbers 0."""
    rule = re.sub(r"<int[^>]*>", "0", rule).replace("<name>", "retention.ms")
    return re.sub(r"<\w+>", "t", rule)


@pytest.mark.scenario("ops-57")
def test_pages_of_other_sites_may_not_call() -> None:
    world = RestWorld()
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Origin": "https://localhost"},
    ):
        assert world.code("POST", "/consumers/g", **headers) == (403, 403)
        assert world.code("GET", "/topics", **headers) == (403, 403)
    assert len(world.instances) == 0
    assert world.call("POST", "/consumers/g", Origin="http://localhost")[0] == 200
    assert world.call("POST", "/consumers/g", Sec_Fetch_Site="same-origin")[0] == 200


@pytest.mark.scenario("ops-56")
def test_a_read_only_proxy_refuses_every_change() -> None:
    world = RestWorld(rest__read__only="true")
    world.topic("t")
    before = len(world.ensemble.writes)
    changing = [route for route in world.application.routes if route.changes]
    assert len(changing) > 10
    for route in changing:
        assert world.code(route.method, filled(route.rule)) == (403, 403), route.rule
    assert world.call("GET", "/topics") == (200, ["t"])
    assert world.call("GET", "/topics/t/partitions/0/messages") == (200, [])
    assert len(world.ensemble.writes) == before


@pytest.mark.scenario("ops-57")
def test_reading_routes_change_nothing_in_zookeeper() -> None:
    world = RestWorld(rest__cluster__id="t")
    world.topic("t")
    world.ensemble.put("/consumers/t/offsets/t/0", b"0")
    before = len(world.ensemble.writes)
    reading = [route for route in world.application.routes if not route.changes]
    for route in reading:
        path = filled(route.rule)
        missing = route.name in ("v3.reassignments.get", "v3.consumers.get")
        for method in ("GET", "HEAD"):
            assert world.send(method, path).status_code == (404 if missing else 200), route.rule
    assert len(world.ensemble.writes) == before
    assert {route.method for route in world.application.routes if not route.changes} == {
        "GET",
        "POST",  # of /, which does nothing
    }


@pytest.mark.scenario("ops-58")
@pytest.mark.parametrize(
    ("login", "get", "post"),
    [
        (None, 401, 401),
        ("Bearer x", 401, 401),
        (basic("rita", "wrong"), 401, 401),
        (basic("nobody", "r"), 401, 401),
        (basic("rita", "r"), 200, 403),
        (basic("olga", "o"), 200, 200),
    ],
)
def test_users_and_their_roles(login: str | None, get: int, post: int) -> None:
    world = RestWorld(USERS)
    headers = {} if login is None else {"Authorization": login}
    response = world.send("GET", "/topics", **headers)
    assert response.status_code == get
    if get == 401:
        assert response.headers["WWW-Authenticate"].startswith("Basic realm=")
    assert world.send("POST", "/consumers/g", {}, V1, **headers).status_code == post


def test_reading_from_a_group_is_an_operators_work() -> None:
    routes = RestWorld().application.routes
    assert {each.role for each in routes if each.rule.startswith("/consumers")} == {OPERATOR}
