"""Converts keys and values to bytes and back: JSON with or without its schema, strings, bytes.

The bytes are those of org.apache.kafka.connect.{json.JsonConverter, storage.StringConverter,
converters.ByteArrayConverter}. Null stays null in both directions.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from kafka08.connect.interface import DataError, Value
from kafka08.errors import ConfigError
from kafka08.settings.settings import BOOLEAN, NumberFormatError

SCHEMAS_ENABLE = "schemas.enable"
ENVELOPE = {"schema", "payload"}


class Converter:
    """``properties``: the settings below ``key.converter.`` or ``value.converter.``."""

    def __init__(self, properties: Mapping[str, str], option: str) -> None:
        """``option`` is the prefix, for errors. Raises ConfigError."""

    def to_bytes(self, value: object) -> bytes | None:
        """Raises DataError."""
        raise NotImplementedError

    def from_bytes(self, data: bytes | None) -> Value:
        """Raises DataError."""
        raise NotImplementedError


class StringConverter(Converter):
    """Text in UTF-8. Bytes that are not valid UTF-8 stay bytes."""

    def to_bytes(self, value: object) -> bytes | None:
        if value is None or isinstance(value, bytes):
            return value
        text = value if isinstance(value, str) else _text(value)
        return text.encode(errors="surrogateescape")

    def from_bytes(self, data: bytes | None) -> Value:
        return None if data is None else bytes(data).decode(errors="surrogateescape")


class ByteArrayConverter(Converter):
    """Bytes, unchanged. A str, such as the file source returns, is encoded as UTF-8."""

    def to_bytes(self, value: object) -> bytes | None:
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        if isinstance(value, str):
            return value.encode(errors="surrogateescape")
        raise DataError(f"Invalid type for ByteArrayConverter: {type(value).__name__}")

    def from_bytes(self, data: bytes | None) -> Value:
        return None if data is None else bytes(data)


class JsonConverter(Converter):
    """JSON; if schemas.enable is true (the default) in an envelope of schema and payload."""

    def __init__(self, properties: Mapping[str, str], option: str) -> None:
        text = properties.get(SCHEMAS_ENABLE, "true")
        try:
            self._schemas = BOOLEAN.parse(text)
        except NumberFormatError:
            raise ConfigError(
                f"{option}.{SCHEMAS_ENABLE} has value {text} which is not true or false."
            ) from None

    def to_bytes(self, value: object) -> bytes | None:
        if value is None:
            return None
        if not self._schemas:
            return _json(value)
        try:
            schema = schema_of(value)
        except RecursionError as error:
            raise DataError(f"Converting to JSON failed: {error}") from None
        return _json({"schema": schema, "payload": value})

    def from_bytes(self, data: bytes | None) -> Value:
        if data is None:
            return None
        try:
            found = json.loads(bytes(data))
        except (ValueError, RecursionError) as error:
            raise DataError(f"Converting bytes to JSON failed: {error}") from None
        if not self._schemas:
            return found
        if not isinstance(found, dict) or set(found) != ENVELOPE:
            raise DataError(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and '
                "may not contain additional fields. If you are trying to deserialize plain JSON "
                "data, set schemas.enable=false in your converter configuration."
            )
        try:
            return with_schema(found["schema"], found["payload"])
        except RecursionError as error:
            raise DataError(f"Converting bytes to JSON failed: {error}") from None


def schema_of(value: object) -> dict[str, object]:
    """The schema of a plain value. Raises DataError for a type that JSON does not have."""
    for kind, name in ((bool, "boolean"), (int, "int64"), (float, "double"), (str, "string")):
        if isinstance(value, kind):
            return {"type": name, "optional": False}
    if value is None:
        return {"type": "string", "optional": True}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"type": "bytes", "optional": False}
    if isinstance(value, Mapping):
        fields = [{"field": str(k), **schema_of(v), "optional": True} for k, v in value.items()]
        return {"type": "struct", "fields": fields, "optional": False}
    if isinstance(value, list | tuple):
        items = schema_of(value[0]) if value else {"type": "string", "optional": True}
        return {"type": "array", "items": items, "optional": False}
    raise DataError(f"A {type(value).__name__} cannot be converted to JSON")


def with_schema(schema: Value, payload: Value) -> Value:
    """The payload, with the fields that the schema declares as bytes decoded."""
    if not isinstance(schema, dict) or payload is None:
        return payload
    try:
        if schema.get("type") == "bytes":
            return base64.b64decode(payload)
        if schema.get("type") == "struct":
            return {f["field"]: with_schema(f, payload.get(f["field"])) for f in schema["fields"]}
        if schema.get("type") == "array":
            return [with_schema(schema.get("items"), each) for each in payload]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"The payload does not fit its schema: {error!r}") from None
    return payload


def _json(value: object) -> bytes:
    try:
        return json.dumps(value, separators=(",", ":"), default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"Converting to JSON failed: {error}") from None


def _plain(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    raise TypeError(f"a {type(value).__name__} cannot be converted to JSON")


def _text(value: object) -> str:
    return _json(value).decode() if isinstance(value, dict | list | tuple) else str(value)
