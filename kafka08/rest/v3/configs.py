"""The parts that settings of topics, of a broker and of all brokers have in common in API v3."""

from __future__ import annotations

from typing import NamedTuple

from kafka08.protocol import admin_schemas as a
from kafka08.rest.calls import Call, Row
from kafka08.rest.errors import BAD_REQUEST, RestError

_SOURCES = {
    a.TOPIC_CONFIG: "DYNAMIC_TOPIC_CONFIG",
    a.DYNAMIC_BROKER_CONFIG: "DYNAMIC_BROKER_CONFIG",
    a.DYNAMIC_DEFAULT_BROKER_CONFIG: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    a.STATIC_BROKER_CONFIG: "STATIC_BROKER_CONFIG",
    a.DEFAULT_CONFIG: "DEFAULT_CONFIG",
}
_UNKNOWN = "UNKNOWN"


class AskedChanges(NamedTuple):
    """New values by name; None removes the setting. ``validate_only``: nothing is changed."""

    values: dict[str, str | None]
    validate_only: bool


def config_text(value: object) -> str:
    """The text of a value in JSON. Raises RestError 40002 for one that has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list) or value is None:
        raise RestError(400, BAD_REQUEST, "The value of a config is a string.")
    return str(value)


def read_value(call: Call) -> str:
    """The body ``{"value"}``. Raises RestError 400, 422."""
    return config_text(call.fields("value").value("value"))


def read_changes(call: Call) -> AskedChanges:
    """The body ``{"data": [{"name", "value", "operation"}]}``. Raises RestError 400, 422."""
    body = call.fields("data", "validate_only")
    values: dict[str, str | None] = {}
    for fields in body.objects("data", "name", "value", "operation"):
        name, operation = fields.needed_text("name"), fields.text("operation", "SET")
        if operation == "DELETE":
            values[name] = None
        elif operation == "SET":
            values[name] = config_text(fields.value("value"))
        else:
            fields.wrong("operation", "is not SET or DELETE")
    return AskedChanges(values, bool(body.flag("validate_only")))


def shown_entry(entry: a.ConfigEntry) -> Row:
    """A setting as a broker told it, with where its value comes from."""
    return {
        "name": entry.name,
        "value": entry.value,
        "is_default": entry.source == a.DEFAULT_CONFIG,
        "is_read_only": entry.read_only,
        "is_sensitive": entry.is_sensitive,
        "source": _SOURCES.get(entry.source, _UNKNOWN),
        "synonyms": [
            {
                "name": each.name,
                "value": each.value,
                "source": _SOURCES.get(each.source, _UNKNOWN),
            }
            for each in entry.synonyms
        ],
    }
