from __future__ import annotations

from typing import Any

import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from kafka08.rest.calls import Call, Fields, RestAnswer, Route, allowed, parse
from kafka08.rest.errors import RestError
from kafka08.rest.media import Media
from kafka08.security.users import OPERATOR, READER

KNOWN = ("a", "b")


def call(query: dict[str, str] | None = None, data: bytes = b"") -> Call:
    media = Media("")
    environ = EnvironBuilder(query_string=query, data=data).get_environ()
    return Call(Request(environ), {}, media, media)


def fields(**values: Any) -> Fields:
    return Fields(values, KNOWN, "it")


def test_numbers_of_the_query() -> None:
    assert call({"n": "3"}).number("n", 0, 3) == 3
    assert call().number("n", 0, 3) is None
    for text in ("x", "4", "-1", "1" * 5000):
        with pytest.raises(RestError) as caught:
            call({"n": text}).number("n", 0, 3)
        assert caught.value.status == 400


def test_bodies() -> None:
    assert not call(data=b" \n").has_body
    assert call(data=b'{"a": 1}').fields("a").integer("a") == 1
    with pytest.raises(RestError, match="required"):
        call().fields("a")


def test_a_setting_may_leave_topics_out() -> None:
    allowed("t", [], "key")
    allowed("t", ["t"], "key")
    with pytest.raises(RestError, match="Topic u is not in key"):
        allowed("u", ["t"], "key")


def test_what_changes_something_is_not_for_readers() -> None:
    def handler(call: Call) -> RestAnswer:
        return RestAnswer()

    assert not Route("GET", "/", "x", handler, (1,), READER).changes
    assert Route("GET", "/", "x", handler, (1,), OPERATOR).changes


def test_json() -> None:
    assert parse(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    for wrong in (b"", b"{", b"[Infinity]", b"\xff", b"[" * 100_000, b"1" * 5000):
        with pytest.raises(RestError) as caught:
            parse(wrong)
        assert (caught.value.status, caught.value.code) == (400, 400)


def test_values_of_their_types() -> None:
    assert fields(a="x").text("a") == "x"
    assert fields().text("a", "default") == "default"
    assert fields(a=None).integer("a") is None
    assert fields(a=3).integer("a") == 3
    assert fields(a=[1]).array("a") == [1]
    assert "a" in fields(a=0)
    assert "a" not in fields(a=None)


@pytest.mark.parametrize(
    ("values", "method", "text"),
    [
        ({"a": 1}, "text", "it.a is not a string"),
        ({"a": ""}, "needed_text", "it.a may not be empty"),
        ({"a": "1"}, "integer", "it.a is not an integer"),
        ({"a": True}, "integer", "it.a is not an integer"),
        ({"a": -1}, "integer", "it.a must be from 0 to 2147483647"),
        ({}, "needed_integer", "it.a may not be null"),
        ({}, "array", "it.a is not a list"),
        ({"a": []}, "array", "it.a may not be empty"),
    ],
)
def test_other_values_are_named(values: dict[str, Any], method: str, text: str) -> None:
    with pytest.raises(RestError) as caught:
        getattr(fields(**values), method)("a")
    assert (caught.value.code, caught.value.message) == (422, text)


def test_unknown_fields_and_other_things_than_objects() -> None:
    with pytest.raises(RestError, match=r"Unrecognized field: it\.c"):
        fields(c=1)
    with pytest.raises(RestError, match="The body is not a JSON object"):
        Fields([], KNOWN)


def test_lists_of_objects() -> None:
    found = list(fields(a=[{"n": 1}, {"n": 2}]).objects("a", "n"))
    assert [(each.value("n"), each.path("n")) for each in found] == [
        (1, "it.a[0].n"),
        (2, "it.a[1].n"),
    ]
    with pytest.raises(RestError, match=r"it\.a\[1\] is not a JSON object"):
        list(fields(a=[{}, 2]).objects("a"))
