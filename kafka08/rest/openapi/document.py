"""The OpenAPI document of the routes, served at /openapi.json.

Paths, methods and types of content are those of the routes; ``operations`` say what is in bodies
and queries, and a route without an operation is an error at the start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus

from kafka08.rest.calls import Call, RestAnswer, Route, Row
from kafka08.rest.media import PLAIN_JSON, offers
from kafka08.rest.openapi.operations import OPERATIONS, SCHEMAS, ApiOperation
from kafka08.rest.openapi.operations_v3 import OPERATIONS_V3, SCHEMAS_V3
from kafka08.rest.openapi.schemas import INT, TEXT, Schema, ref

_PATH = "/openapi.json"
_VERSION = "3.0.3"
_ARGUMENT = re.compile(r"<(?:(?P<converter>\w+)(?:\((?P<options>[^)]*)\))?:)?(?P<name>\w+)>")
_WITH_BODY = ("POST", "PUT", "PATCH")
_ALL = {**OPERATIONS, **OPERATIONS_V3}


class OpenApi:
    """``routes``: those given, and that of the document itself. ``has_login``: calls need a user.
    Raises KeyError for a route that no operation describes."""

    def __init__(self, routes: Iterable[Route], *, has_login: bool = False) -> None:
        own = Route("GET", _PATH, "openapi", self._page, versions=())
        self.routes = [*routes, own]
        self.document = _document(self.routes, has_login)
        self._text = json.dumps(self.document).encode()

    def _page(self, call: Call) -> RestAnswer:
        return RestAnswer(self._text, media=PLAIN_JSON)


def template(rule: str) -> str:
    """The path of a route as OpenAPI has it: ``/topics/{topic}``."""
    return _ARGUMENT.sub(r"{\g<name>}", rule)


def _document(routes: Sequence[Route], has_login: bool) -> Row:
    paths: dict[str, Row] = {}
    for route in routes:
        operation = _shown(route, _ALL[route.name], has_login)
        paths.setdefault(template(route.rule), {})[route.method.lower()] = operation
    components: Row = {"schemas": {**SCHEMAS, **SCHEMAS_V3}}
    if has_login:
        components["securitySchemes"] = {"basic": {"type": "http", "scheme": "basic"}}
    return {
        "openapi": _VERSION,
        "info": {"title": "REST proxy", "version": "3"},
        "paths": paths,
        "components": components,
        **({"security": [{"basic": []}]} if has_login else {}),
    }


def _shown(route: Route, operation: ApiOperation, has_login: bool) -> Row:
    parameters = [*_path_parameters(route.rule), *_query_parameters(operation)]
    shown: Row = {
        "operationId": route.name,
        "summary": operation.about,
        "tags": [f"v{version}" for version in route.versions] or ["proxy"],
        "responses": dict(_responses(route, operation, has_login)),
    }
    if parameters:
        shown["parameters"] = parameters
    if operation.body is not None:
        types = [each.name for each in offers(route.versions, operation.formats)]
        content = _content(types, operation.body)
        shown["requestBody"] = {"required": operation.needs_body, "content": content}
    return shown


def _path_parameters(rule: str) -> Iterator[Row]:
    for found in _ARGUMENT.finditer(rule):
        schema: Schema = TEXT
        if found["converter"] == "int":
            is_signed = "signed=True" in (found["options"] or "")
            schema = INT if is_signed else {**INT, "minimum": 0}
        yield {"name": found["name"], "in": "path", "required": True, "schema": schema}


def _query_parameters(operation: ApiOperation) -> Iterator[Row]:
    for name, schema, about, needed in operation.query:
        yield {
            "name": name,
            "in": "query",
            "description": about,
            "required": needed,
            "schema": schema,
        }


def _responses(route: Route, operation: ApiOperation, has_login: bool) -> Iterator[tuple[str, Row]]:
    offered = [each.name for each in offers(route.versions, route.formats)]
    success: Row = {"description": HTTPStatus(operation.status).phrase}
    if operation.answer is not None:
        success["content"] = _content(operation.media or offered, operation.answer)
    yield str(operation.status), success
    for status in sorted(_errors(route, operation, has_login)):
        content = _content(offered, ref("Error"))
        yield str(status), {"description": HTTPStatus(status).phrase, "content": content}


def _errors(route: Route, operation: ApiOperation, has_login: bool) -> set[int]:
    """The statuses of errors, beside those of heads that the server refuses by itself."""
    found = {403, 500, *operation.statuses}
    if has_login:
        found.add(401)
    if "<" in route.rule:
        found.add(404)
    if route.versions:
        found.add(406)
    if route.method in _WITH_BODY or operation.body is not None:
        found |= {400, 408, 413, 415, 422, 503}
    # Brokers may refuse what v3 asks them to do.
    if operation.query or route.versions == (3,):
        found.add(400)
    return found


def _content(types: Iterable[str], schema: Schema) -> Mapping[str, Row]:
    return {name: {"schema": schema} for name in types}
