from __future__ import annotations

import re
from typing import Any

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from werkzeug.test import Client

from kafka08.rest.access import Access, Origins
from kafka08.rest.application import Application
from kafka08.rest.calls import Answer, Call, Route
from kafka08.rest.meters import RequestMeters
from kafka08.runtime import SystemClock
from tests.rest.test_access import USERS, basic
from tests.rest.world import BINARY_V1, PLAIN, V1, V2, RestWorld


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
        def handler(call: Call) -> Answer:
            called.append((route, dict(call.args)))
            return Answer({})

        return route._replace(handler=handler)

    routes = world.application.routes
    application = Application(
        [watched(route) for route in routes],
        Access(None, read_only=False),
        Origins(()),
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
    def fail(call: Call) -> Answer:
        raise LookupError("/etc/secret")

    def answer(debug: bool) -> Any:
        route = Route("GET", "/fail", "fail", fail, (1,))
        application = Application(
            [route],
            Access(None, read_only=False),
            Origins(()),
            SystemClock(),
            RequestMeters(int),
            debug=debug,
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
