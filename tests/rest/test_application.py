from __future__ import annotations

from typing import Any

import pytest
from werkzeug.test import Client

from kafka08.rest.access import Access, Origins
from kafka08.rest.application import Application
from kafka08.rest.calls import Answer, Call, Route
from kafka08.runtime import SystemClock
from tests.rest.world import BINARY_V1, PLAIN, V1, V2, RestWorld


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


def test_types_that_are_not_acceptable() -> None:
    response = RestWorld().send("GET", "/topics", Accept="text/plain")
    assert response.status_code == 406
    assert response.data == b""
    assert "Content-Type" not in response.headers


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


def test_every_path_may_end_with_a_slash() -> None:
    world = RestWorld()
    paths = {
        (route.method, route.rule.split("<", 1)[0].rstrip("/"))
        for route in world.application.routes
        if "<" not in route.rule
    }
    for method, path in paths:
        assert world.send(method, f"{path}/").status_code == 200


def test_unexpected_errors_tell_nothing_unless_debugging() -> None:
    def fail(call: Call) -> Answer:
        raise LookupError("/etc/secret")

    def answer(debug: bool) -> Any:
        route = Route("GET", "/fail", "fail", fail, (1,))
        application = Application(
            [route], Access(None, read_only=False), Origins(()), SystemClock(), debug=debug
        )
        return Client(application).get("/fail").json

    assert answer(False) == {"error_code": 500, "message": "Internal Server Error"}
    assert "/etc/secret" in answer(True)["message"]


def test_requests_are_counted_by_endpoint() -> None:
    world = RestWorld()
    world.send("GET", "/topics")
    world.send("GET", "/topics/none")
    world.send("GET", "/none")
    text = world.application.meters.text(0)
    assert 'kafka_rest_requests_total{endpoint="topics.list",method="GET",code="200"} 1' in text
    assert 'kafka_rest_requests_total{endpoint="topic.get",method="GET",code="404"} 1' in text
    assert 'kafka_rest_requests_total{endpoint="none",method="GET",code="404"} 1' in text


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
