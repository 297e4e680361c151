"""The words in which bodies are described: JSON schemas of OpenAPI 3.0. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

Schema: TypeAlias = "Mapping[str, object]"

ANYTHING: Schema = {}
TEXT: Schema = {"type": "string"}
INT: Schema = {"type": "integer", "format": "int32"}
LONG: Schema = {"type": "integer", "format": "int64"}
FLAG: Schema = {"type": "boolean"}


def nullable(schema: Schema) -> Schema:
    return (
        {"allOf": [schema], "nullable": True} if "$ref" in schema else {**schema, "nullable": True}
    )


def one_of(words: Iterable[str]) -> Schema:
    """A string that is one of these."""
    return {"type": "string", "enum": list(words)}


def list_of(items: Schema, *, filled: bool = False) -> Schema:
    """``filled``: there is one at least."""
    return {"type": "array", "items": items, **({"minItems": 1} if filled else {})}


def map_of(values: Schema) -> Schema:
    """An object with any names."""
    return {"type": "object", "additionalProperties": values}


def ref(name: str) -> Schema:
    """The schema of that name in the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def answered(**fields: Schema) -> Schema:
    """An object of an answer, which has all these fields."""
    needed = {"required": list(fields)} if fields else {}
    return {"type": "object", **needed, "properties": fields}


def asked(needed: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object of a request, which has no other fields than these."""
    schema: dict[str, object] = {"type": "object"}
    if needed:
        schema["required"] = list(needed)
    return {
        **schema,
        "properties": {**needed, **(optional or {})},
        "additionalProperties": False,
    }
