from __future__ import annotations

from typing import Any

import pytest

from kafka08.rest.bodies import Fields, parse
from kafka08.rest.errors import RestError

KNOWN = ("a", "b")


def fields(**values: Any) -> Fields:
    return Fields(values, KNOWN, "it")


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
