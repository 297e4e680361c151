from __future__ import annotations

from kafka08.rest.openapi.schemas import (
    TEXT,
    answered,
    asked,
    list_of,
    map_of,
    nullable,
    one_of,
    ref,
)


def test_null_beside_a_type_and_beside_a_reference() -> None:
    assert nullable(TEXT) == {"type": "string", "nullable": True}
    reference = {"$ref": "#/components/schemas/Topic"}
    assert nullable(ref("Topic")) == {"allOf": [reference], "nullable": True}


def test_lists_and_maps() -> None:
    assert list_of(TEXT) == {"type": "array", "items": TEXT}
    assert list_of(TEXT, filled=True) == {"type": "array", "items": TEXT, "minItems": 1}
    assert map_of(TEXT) == {"type": "object", "additionalProperties": TEXT}
    assert one_of(["a", "b"]) == {"type": "string", "enum": ["a", "b"]}


def test_an_answer_has_all_fields_and_a_request_no_others() -> None:
    fields = {"a": TEXT}
    assert answered(a=TEXT) == {"type": "object", "required": ["a"], "properties": fields}
    assert answered() == {"type": "object", "properties": {}}
    assert asked({}, fields) == {
        "type": "object",
        "properties": fields,
        "additionalProperties": False,
    }
    assert asked(fields)["required"] == ["a"]
