"""The check of what is sent and answered finds what is not as declared."""

from __future__ import annotations

from typing import Any

import pytest
from werkzeug.test import Client

from kafka08.rest.application import Application
from kafka08.rest.calls import RestAnswer
from kafka08.rest.config import RestConfig
from kafka08.rest.meters import RequestMeters
from kafka08.runtime import SystemClock
from tests.rest.conformance import Conformance
from tests.rest.world import RestWorld

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "integer", "format": "int32", "minimum": 0},
        "b": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["x"]}},
        "c": {"anyOf": [{"type": "boolean"}, {"type": "string"}], "nullable": True},
        "d": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"a": 0, "b": ["x"], "c": None, "d": {"e": "f"}}, []),
        ([], [": [] is not object"]),
        ({}, [".a is missing"]),
        ({"a": True}, [".a: True is not integer"]),
        ({"a": -1}, [".a: -1 is out of range"]),
        ({"a": 2**31}, [".a: 2147483648 is out of range"]),
        ({"a": 1, "b": []}, [".b is empty"]),
        ({"a": 1, "b": ["y"]}, [".b[0]: 'y' is not in ['x']"]),
        ({"a": 1, "d": {"e": 1}}, [".d.e: 1 is not string"]),
        ({"a": None}, [".a: None is not integer"]),
        ({"a": 1, "z": 1}, [".z is not declared"]),
    ],
)
def test_what_is_not_as_the_schema_says(value: Any, found: list[str]) -> None:
    document = {"paths": {}, "components": {"schemas": {}}}
    assert list(Conformance([], document).problems(value, SCHEMA, "")) == found


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (RestAnswer(["t", 1]), "1 is not string"),
        (RestAnswer([], 207), "207 is not declared"),
        (RestAnswer([], media="text/html"), "text/html"),
    ],
)
def test_an_answer_that_is_not_declared(answer: RestAnswer, text: str) -> None:
    world = RestWorld()
    [route] = [each for each in world.application.routes if each.name == "topics.list"]
    routes = [route._replace(handler=lambda call: answer)]
    config = RestConfig()
    application = Application(routes, config, None, SystemClock(), RequestMeters(int))
    check = Conformance(routes, world.document).check
    with pytest.raises(AssertionError, match=text):
        check(Client(application).get("/topics"), None)
