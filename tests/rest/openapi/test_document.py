"""The OpenAPI document: its structure, and that it is what is served."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.rest.calls import Call, RestAnswer, Route
from kafka08.rest.openapi.document import OpenApi, template
from kafka08.security.users import Users, line_for
from tests.rest.test_application import basic
from tests.rest.world import RestWorld

METHODS = {"get", "post", "put", "delete", "patch"}
KEYWORDS = {
    "$ref", "type", "format", "nullable", "enum", "items", "minItems", "minimum", "properties",
    "required", "additionalProperties", "allOf", "anyOf", "description",
}  # fmt: skip
TYPES = {"string", "integer", "boolean", "array", "object"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = RestWorld().send("GET", "/openapi.json").get_json()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def schemas_in(value: Any) -> Iterator[dict[str, Any]]:
    """The schemas of a part of the document that is not one."""
    if isinstance(value, list):
        for each in value:
            yield from schemas_in(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name == "schema":
                yield each
            else:
                yield from schemas_in(each)


def check_schema(schema: dict[str, Any], names: set[str]) -> None:
    assert isinstance(schema, dict) and schema.keys() <= KEYWORDS, schema
    if "$ref" in schema:
        assert schema.keys() == {"$ref"}
        assert schema["$ref"].removeprefix("#/components/schemas/") in names, schema
    assert schema.get("type", "string") in TYPES, schema
    assert ("items" in schema) == (schema.get("type") == "array"), schema
    assert set(schema.get("required", ())) <= schema.get("properties", {}).keys(), schema
    assert schema.get("required") != [], schema
    inner = [*schema.get("properties", {}).values(), *schema.get("allOf", ())]
    inner += schema.get("anyOf", ())
    inner += [schema[name] for name in ("items",) if name in schema]
    others = schema.get("additionalProperties", False)
    for each in inner if isinstance(others, bool) else [*inner, others]:
        check_schema(each, names)


def test_its_structure_is_that_of_openapi_3_0(document: dict[str, Any]) -> None:
    assert document.keys() == {"openapi", "info", "paths", "components"}
    assert re.fullmatch(r"3\.0\.\d", document["openapi"])
    assert document["info"].keys() == {"title", "version"}
    names = set(document["components"]["schemas"])
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names)
    for schema in document["components"]["schemas"].values():
        check_schema(schema, names)
    for schema in schemas_in(document["paths"]):
        check_schema(schema, names)


def test_each_operation_is_whole(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    for path, method, operation in operations(document):
        assert path.startswith("/") and "<" not in path
        assert method in METHODS
        assert operation["summary"].endswith(".") and operation["tags"]
        parameters = operation.get("parameters", [])
        assert all({"name", "in", "required", "schema"} <= each.keys() for each in parameters)
        in_path = [each["name"] for each in parameters if each["in"] == "path"]
        assert in_path == re.findall(r"{(\w+)}", path)
        assert all(each["required"] for each in parameters if each["in"] == "path")
        assert {each["in"] for each in parameters} <= {"path", "query"}
        statuses = list(operation["responses"])
        assert [each for each in statuses if each < "300"] == statuses[:1]
        for response in operation["responses"].values():
            assert response["description"]
            assert response.get("content") != {}
        if "requestBody" in operation:
            assert operation["requestBody"]["content"]
            assert "415" in statuses


def test_every_schema_is_used(document: dict[str, Any]) -> None:
    used = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert used == set(document["components"]["schemas"])


def test_every_route_is_in_it_and_every_path_is_routed(document: dict[str, Any]) -> None:
    world = RestWorld()
    routed = {(template(each.rule), each.method.lower()) for each in world.application.routes}
    assert routed == {(path, method) for path, method, _ in operations(document)}
    assert len(routed) == len(world.application.routes)
    for path, method, _ in operations(document):
        asked = path.replace("{partition}", "0").replace("{broker}", "0")
        allowed = world.send("OPTIONS", re.sub(r"{\w+}", "t", asked)).headers["Allow"]
        assert method.upper() in allowed.split(", ")


def test_types_are_those_that_are_negotiated(document: dict[str, Any]) -> None:
    produce = document["paths"]["/topics/{topic}"]["post"]
    assert set(produce["requestBody"]["content"]) == {
        "application/json",
        "application/vnd.kafka+json",
        *(f"application/vnd.kafka.{word}+json" for word in ("v1", "binary.v1", "json.v1")),
        *(f"application/vnd.kafka.{word}+json" for word in ("v2", "binary.v2", "json.v2")),
    }
    topics = document["paths"]["/v3/clusters/{cluster}/topics"]
    assert list(topics["post"]["requestBody"]["content"]) == ["application/json"]
    assert list(topics["post"]["responses"]["201"]["content"]) == ["application/json"]
    assert topics["post"]["tags"] == ["v3"]
    assert list(document["paths"]["/metrics"]["get"]["responses"]["200"]["content"]) == [
        "text/plain",
        "application/openmetrics-text",
    ]


def test_logins_are_in_it_where_they_are_needed(document: dict[str, Any]) -> None:
    users = Users([line_for("rita", "reader", "r")], "users")
    world = RestWorld(users)
    assert world.send("GET", "/openapi.json").status_code == 401
    found = world.send("GET", "/openapi.json", Authorization=basic("rita", "r")).get_json()
    assert found["security"] == [{"basic": []}]
    assert found["components"]["securitySchemes"] == {"basic": {"type": "http", "scheme": "basic"}}
    assert all("401" in operation["responses"] for _, _, operation in operations(found))
    assert not any("401" in operation["responses"] for _, _, operation in operations(document))


def test_a_route_that_nothing_describes_is_an_error() -> None:
    route = Route("GET", "/x", "no.such", lambda call: RestAnswer(), (1,))
    with pytest.raises(KeyError, match=r"no\.such"):
        OpenApi([route])


def made(schema: dict[str, Any], document: dict[str, Any]) -> Any:
    """A value that has all fields of a schema."""
    if "$ref" in schema:
        return made(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    for choices in ("allOf", "anyOf"):
        if choices in schema:
            return made(schema[choices][0], document)
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: made(each, document) for name, each in schema["properties"].items()}
    if schema.get("type") == "array":
        return [made(schema["items"], document)]
    return {"integer": 0, "boolean": True}.get(schema.get("type", ""), "t")


def with_body(world: RestWorld) -> list[Route]:
    """The routes that read a body."""
    return [
        route
        for route in world.application.routes
        if "requestBody" in world.document["paths"][template(route.rule)][route.method.lower()]
        and route.name != "root.post"
    ]


def test_bodies_have_the_fields_that_are_declared_and_no_others() -> None:
    world = RestWorld(rest__cluster__id="t")
    world.topic("t")
    world.create("t", "application/vnd.kafka.v2+json", name="t")
    routes = with_body(world)
    assert len(routes) > 15
    for route in routes:
        operation: Any = world.document["paths"][template(route.rule)][route.method.lower()]
        path = re.sub(r"{\w+}", "t", re.sub(r"{(partition|broker)}", "0", template(route.rule)))
        path = path.replace("configs/t", "configs/retention.ms")
        types = list(operation["requestBody"]["content"])
        content_type = next((each for each in types if each.endswith("v2+json")), types[0])
        body = made(operation["requestBody"]["content"][content_type]["schema"], world.document)
        _, found = world.call(route.method, path, body, content_type)
        assert "Unrecognized field" not in str(found), (route.name, found)
        status, found = world.call(route.method, path, {**body, "zzz": 1}, content_type)
        assert (status, found["message"]) == (422, "Unrecognized field: zzz"), route.name


def test_the_page_is_the_document() -> None:
    given = OpenApi([])
    assert [route.rule for route in given.routes] == ["/openapi.json"]
    call: Any = None
    answer = given.routes[0].handler(call)
    assert isinstance(answer.body, bytes) and answer.media == "application/json"
    assert isinstance(call, Call | None)
