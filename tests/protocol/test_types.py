"""The meaning of annotations on the wire, version by version."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import pytest

from kafka08.protocol.types import (
    Array,
    Compact,
    Doc,
    Fixed,
    Nullable,
    Since,
    Strict,
    Struct,
    Tags,
    Text,
    Trailing,
    Until,
    fields_of,
    int8,
    int16,
    int32,
    int64,
    minimum_size,
    string,
    tagged_fields,
)


class Part(NamedTuple):
    number: Annotated[int32, Doc("Its number.")]
    added: Annotated[int64, Since(2, before="number")] = -1


class Whole(NamedTuple):
    name: Annotated[string, Nullable(since=1), Compact(since=3)]
    parts: Annotated[list[Part], Strict(), Nullable(since=2), Compact(since=3)]
    old: Annotated[int16, Until(1)] = 0
    first: Annotated[int8, Since(1, before="name")] = 0
    tags: Annotated[tagged_fields, Since(3)] = None


def test_a_field_without_a_wire_type_is_an_error_of_ours() -> None:
    class Untyped(NamedTuple):
        field: float

    with pytest.raises(TypeError, match="no wire type"):
        fields_of(Untyped)


def names(schema: type, version: int) -> list[str]:
    return [field.name for field in fields_of(schema, version)]


def test_fields_come_and_go_in_wire_order() -> None:
    assert names(Whole, 0) == ["name", "parts", "old"]
    assert names(Whole, 1) == ["first", "name", "parts", "old"]
    assert names(Whole, 2) == ["first", "name", "parts"]
    assert names(Whole, 3) == ["first", "name", "parts", "tags"]
    assert names(Part, 2) == ["added", "number"]


def test_places_are_those_in_the_tuple() -> None:
    assert [field.place for field in fields_of(Whole, 3)] == [3, 0, 1, 4]
    assert fields_of(Part)[0].doc == "Its number."


def test_kinds_by_version() -> None:
    def kinds(version: int) -> dict[str, object]:
        return {field.name: field.kind for field in fields_of(Whole, version)}

    assert kinds(0)["name"] == Text(False, "string")
    assert kinds(1)["name"] == Text(True, "string")
    assert kinds(3)["name"] == Text(True, "string", compact=True)
    assert kinds(1)["parts"] == Array(Struct(Part, 1), strict=True)
    assert kinds(2)["parts"] == Array(Struct(Part, 2), nullable=True)
    assert kinds(3)["parts"] == Array(Struct(Part, 3), nullable=True, compact=True)
    assert kinds(3)["tags"] == Tags() and kinds(3)["first"] == Fixed("b", "int8")


def test_the_smallest_value() -> None:
    assert [minimum_size(Struct(Part, version)) for version in (1, 2)] == [4, 12]
    assert [minimum_size(Struct(Whole, version)) for version in range(4)] == [8, 9, 7, 4]


def test_a_field_that_some_version_does_not_have_needs_a_default() -> None:
    class WithoutDefault(NamedTuple):
        late: Annotated[int, Fixed("i", "int32"), Since(1)]

    with pytest.raises(KeyError, match="late"):
        fields_of(WithoutDefault, 1)


class Short(NamedTuple):
    name: string
    kind: Annotated[int8, Since(1), Trailing()] = 0


def test_a_trailing_field_takes_no_byte_of_the_smallest_value() -> None:
    assert [minimum_size(Struct(Short, version)) for version in (0, 1)] == [2, 2]
    assert [field.trailing for field in fields_of(Short, 1)] == [False, True]


def test_a_trailing_field_is_the_last_and_has_a_default() -> None:
    class Amid(NamedTuple):
        kind: Annotated[int8, Trailing()] = 0
        late: Annotated[int8, Since(1)] = 0

    class Bare(NamedTuple):
        kind: Annotated[int8, Trailing()]

    with pytest.raises(TypeError, match="a field of Amid after one that may be left out"):
        fields_of(Amid)
    with pytest.raises(KeyError, match="kind"):
        fields_of(Bare)
