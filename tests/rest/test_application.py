from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from werkzeug.test import Client

from kafka08.protocol import admin_schemas
from kafka08.protocol.acl_schemas import DescribeAclsRequest, DescribeAclsResponse
from kafka08.rest.application import Application
from kafka08.rest.calls import Call, RestAnswer, Route
from kafka08.rest.config import RestConfig
from kafka08.rest.meters import RequestMeters
from kafka08.runtime import SystemClock
from kafka08.security.users import OPERATOR, Users, line_for
from tests.rest.world import BINARY_V1, PLAIN, V1, V2, RestWorld

USERS = Users([line_for("rita", "reader", "r"), line_for("olga", "operator", "o")], "users")


def basic(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


def filled(rule: str) -> str:
    """A path of the rule: names are ``t``, numbers 0."""
    rule = re.sub(r"<int[^>]*>", "0", rule).replace("<name>", "retention.ms")
    return re.sub(r"<\w+>", "t", rule)


@pytest.mark.scenario("ops-28")
def test_types_of_answers() -> None:
    world = RestWorld()
    world.topic("t")
    assert world.send("GET", "/topics").content_type == V1
    assert world.send("GET", "/topics", Accept="*/*").content_type == V1
    assert world.send("GET", "/topics", Accept=PLAIN).content_type == PLAIN
    messages = "/topics/t/partitions/0/messages"
    assert world.send("GET", messages).content_type == BINARY_V1
    quoted = f"{V1}; q=0.8, application/vnd.kafka+json; q=0.9, {PLAIN}; q=0.7"
    assert world.send("GET", "/topics", Accept=quoted).content_type == "application/vnd.kafka+json"
    response = world.send("GET", "/topics/none", Accept=V2)
    assert (response.status_code, response.content_type) == (404, V2)


@pytest.mark.scenario("ops-28")
def test_types_that_are_not_acceptable() -> None:
    response = RestWorld().send("GET", "/topics", Accept="text/plain")
    assert response.status_code == 406
    assert response.data == b""
    assert "Content-Type" not in response.headers


@pytest.mark.scenario("ops-28")
@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/vnd.kafka.avro.v1+json"],
)
def test_bodies_of_other_types(content_type: str) -> None:
    world = RestWorld()
    world.topic("t")
    body = {"records": [{"value": "YQ=="}]}
    assert world.code("POST", "/topics/t", body, content_type) == (415, 415)
    assert world.code("POST", "/consumers/g", {}, content_type) == (415, 415)


def test_paths_and_methods_that_are_not_served() -> None:
    world = RestWorld()
    expected = {"error_code": 404, "message": "HTTP 404 Not Found"}
    assert world.call("GET", "/none") == (404, expected)
    response = world.send("DELETE", "/topics")
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET, HEAD"
    assert response.json == {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}


@pytest.mark.scenario("ops-43")
def test_every_path_may_end_with_a_slash() -> None:
    world = RestWorld()
    called: list[tuple[Route, dict[str, Any]]] = []

    def watched(route: Route) -> Route:
        def handler(call: Call) -> RestAnswer:
            called.append((route, dict(call.args)))
            return RestAnswer({})

        return route._replace(handler=handler)

    routes = world.application.routes
    application = Application(
        [watched(route) for route in routes],
        RestConfig(),
        None,
        SystemClock(),
        RequestMeters(int),
    )
    client = Client(application)
    for route in routes:
        # A number is a name too.
        path = re.sub("<[^>]+>", "7", route.rule).rstrip("/")
        for asked in (path, f"{path}/"):
            assert client.open(asked, method=route.method).status_code == 200, asked
        with_slash, without = called.pop(), called.pop()
        assert with_slash == without
        assert with_slash[0] is route
        assert sorted(with_slash[1]) == sorted(re.findall(r"(\w+)>", route.rule))


def test_unexpected_errors_tell_nothing_unless_debugging() -> None:
    def fail(call: Call) -> RestAnswer:
        raise LookupError("/etc/secret")

    def answer(debug: bool) -> Any:
        route = Route("GET", "/fail", "fail", fail, (1,))
        application = Application(
            [route], RestConfig(debug=debug), None, SystemClock(), RequestMeters(int)
        )
        return Client(application).get("/fail").json

    assert answer(False) == {"error_code": 500, "message": "Internal Server Error"}
    assert "/etc/secret" in answer(True)["message"]


def test_requests_are_counted_by_endpoint() -> None:
    world = RestWorld()
    world.send("GET", "/topics")
    world.send("GET", "/topics/none")
    world.send("GET", "/none")
    counted = {
        (sample.labels["endpoint"], sample.labels["code"]): sample.value
        for family in shown(world)
        for sample in family.samples
        if sample.name == "kafka_rest_requests_total"
    }
    assert counted == {("topics.list", "200"): 1, ("topic.get", "404"): 1, ("none", "404"): 1}


def shown(world: RestWorld) -> list[Metric]:
    """The families of /metrics."""
    text = world.send("GET", "/metrics").get_data(as_text=True)
    return list(text_string_to_metric_families(text))


def test_metrics_are_for_readers_in_the_format_that_they_accept() -> None:
    world = RestWorld()
    world.create("g")
    (instances,) = [each for each in shown(world) if each.name == "kafka_rest_consumer_instances"]
    assert [each.value for each in instances.samples] == [1]
    response = world.send("GET", "/metrics", Accept="text/html")
    assert response.content_type.startswith("text/plain; version=")
    response = world.send("GET", "/metrics", Accept="application/openmetrics-text;version=1.0.0")
    assert response.content_type.startswith("application/openmetrics-text")
    assert response.data.count(b"# EOF\n") == 1 and response.data.endswith(b"# EOF\n")
    assert RestWorld(USERS).send("GET", "/metrics").status_code == 401
    login = {"Authorization": basic("rita", "r")}
    assert RestWorld(USERS).send("GET", "/metrics", **login).status_code == 200


def test_pages_that_may_call_ask_first() -> None:
    world = RestWorld(access__control__allow__origin="http://ui:8000")
    asked = {"Origin": "http://ui:8000", "Access_Control_Request_Headers": "content-type"}
    response = world.send("OPTIONS", "/topics", **asked)
    assert response.status_code == 200
    assert response.headers["Access-Control-Allow-Origin"] == "http://ui:8000"
    assert response.headers["Access-Control-Allow-Headers"] == "content-type"
    assert response.headers["Access-Control-Allow-Methods"] == "GET, HEAD"
    assert world.send("GET", "/topics", Origin="http://ui:8000").status_code == 200
    response = world.send("OPTIONS", "/topics", Origin="http://other")
    assert "Access-Control-Allow-Origin" not in response.headers
    assert world.send("OPTIONS", "/none").status_code == 404


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


def administered(port: int, request: Any) -> Any:
    """The answers of a broker with an authorizer, no access rules and one setting."""
    if isinstance(request, DescribeAclsRequest):
        return DescribeAclsResponse(0, 0, None, [])
    if isinstance(request, admin_schemas.DescribeConfigsRequest):
        entry = admin_schemas.ConfigEntry("retention.ms", "1", True)
        found = [
            admin_schemas.ResourceConfig(0, None, asked.resource_type, asked.resource_name, [entry])
            for asked in request.resources
        ]
        return admin_schemas.DescribeConfigsResponse(0, found)
    return None


@pytest.mark.scenario("ops-57")
def test_reading_routes_change_nothing_in_zookeeper() -> None:
    world = RestWorld(rest__cluster__id="t")
    world.topic("t")
    world.ensemble.put("/consumers/t/offsets/t/0", b"0")
    world.brokers.script = administered
    before = len(world.ensemble.writes)
    reading = [route for route in world.application.routes if not route.changes]
    for route in reading:
        path = filled(route.rule)
        missing = route.name in (
            "v3.reassignments.get", "v3.consumers.get", "v3.consumers.assignments"
        )  # fmt: skip
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
