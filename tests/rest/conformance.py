"""Requests and answers against the OpenAPI document of the proxy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.test import TestResponse

from kafka08.rest.calls import Route
from kafka08.rest.openapi.document import template

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
}
_BITS = {"int32": 31, "int64": 63}


class Conformance:
    """Raises AssertionError for what is not as ``document`` says. Fields that it does not name are
    errors."""

    def __init__(self, routes: Sequence[Route], document: Mapping[str, Any]) -> None:
        rules = [Rule(each.rule, methods=[each.method], endpoint=each) for each in routes]
        self._adapter = Map(rules, strict_slashes=False, merge_slashes=False).bind("rest")
        self._paths = document["paths"]
        self._schemas = document["components"]["schemas"]

    def check(self, response: TestResponse, sent: bytes | None) -> None:
        request = response.request
        try:
            route, _ = self._adapter.match(request.path, request.method)
        except HTTPException:
            return  # nothing is served there
        if request.method == "HEAD" and response.status_code == 405:
            return  # GET changes something there
        operation = self._paths[template(route.rule)][route.method.lower()]
        where = f"{request.method} {request.path} {response.status_code}"
        declared = operation["responses"].get(str(response.status_code))
        assert declared is not None, f"{where} is not declared"
        self._check_answer(declared, response, where)
        if sent and response.status_code < 300:
            assert "requestBody" in operation, f"{where} has no body"
            content = operation["requestBody"]["content"]
            assert request.mimetype in ("", "application/octet-stream", *content), where
            self._check_body(sent, next(iter(content.values()))["schema"], where)

    def _check_answer(
        self, declared: Mapping[str, Any], response: TestResponse, where: str
    ) -> None:
        content = declared.get("content")
        if not response.data:
            # A type that is not acceptable has an answer without content.
            is_empty = content is None or response.status_code == 406
            assert is_empty or response.request.method == "HEAD", where
            return
        assert content is not None, f"{where} has content"
        assert response.mimetype in content, f"{where}: {response.mimetype}"
        if "json" in response.mimetype:
            self._check_body(response.data, content[response.mimetype]["schema"], where)

    def _check_body(self, data: bytes, schema: Mapping[str, Any], where: str) -> None:
        found = [problem for value in values(data) for problem in self.problems(value, schema, "")]
        assert not found, f"{where}: {found}"

    def problems(self, value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
        """The parts of a value that are not as the schema says."""
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"].rpartition("/")[2]]
        if value is None and schema.get("nullable"):
            return
        for part in schema.get("allOf", ()):
            yield from self.problems(value, part, at)
        choices = schema.get("anyOf", ())
        if choices and all(list(self.problems(value, part, at)) for part in choices):
            yield f"{at}: {value!r} is none of {choices}"
        if value not in schema.get("enum", [value]):
            yield f"{at}: {value!r} is not in {schema['enum']}"
        kind = schema.get("type")
        if kind is None:
            return
        if not isinstance(value, _TYPES[kind]) or (kind == "integer" and value is True):
            yield f"{at}: {value!r} is not {kind}"
        elif kind == "integer":
            most = 2 ** _BITS[schema["format"]]
            if not schema.get("minimum", -most) <= value < most:
                yield f"{at}: {value} is out of range"
        elif kind == "array":
            if len(value) < schema.get("minItems", 0):
                yield f"{at} is empty"
            for index, each in enumerate(value):
                yield from self.problems(each, schema["items"], f"{at}[{index}]")
        elif kind == "object":
            yield from self._problems_of(value, schema, at)

    def _problems_of(self, value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at}.{name} is missing"
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", False)
        for name, each in value.items():
            if name in properties:
                yield from self.problems(each, properties[name], f"{at}.{name}")
            elif others is False:
                yield f"{at}.{name} is not declared"
            else:
                yield from self.problems(each, others, f"{at}.{name}")


def values(data: bytes) -> list[Any]:
    """The JSON of a body, or of each of its lines."""
    text = data.decode("utf-8-sig")
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
