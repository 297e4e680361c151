"""Reads the JSON bodies of requests and checks their fields. Pure.

Bodies that are not JSON are answered with 400, others that are not valid with 422; the text names
the field.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NoReturn

from kafka08.rest.errors import bad_entity, plain

_MAX_DEPTH_TEXT = "Bad Request: the JSON is nested too deeply"


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def parse(data: bytes) -> Any:
    """The value of a JSON text in UTF-8. Raises RestError 400."""
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except RecursionError:
        raise plain(400, _MAX_DEPTH_TEXT) from None
    except ValueError as error:
        raise plain(400, f"Bad Request: malformed JSON: {error}") from None


class Fields:
    """The fields of one JSON object; ``where`` names it in errors.

    Raises RestError 422 for anything but an object, and for fields that are not ``known``.
    """

    def __init__(self, value: Any, known: Collection[str], where: str = "") -> None:
        if not isinstance(value, dict):
            raise bad_entity(f"{where or 'The body'} is not a JSON object")
        self._where = f"{where}." if where else ""
        for name in value:
            if name not in known:
                raise bad_entity(f"Unrecognized field: {self._where}{name}")
        self._values: dict[str, Any] = value

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def value(self, name: str) -> Any:
        return self._values.get(name)

    def wrong(self, name: str, reason: str) -> NoReturn:
        raise bad_entity(f"{self._where}{name} {reason}")

    def text(self, name: str, default: str | None = None) -> str | None:
        found = self._values.get(name)
        if found is None:
            return default
        if not isinstance(found, str):
            self.wrong(name, "is not a string")
        return found

    def needed_text(self, name: str) -> str:
        found = self.text(name)
        if not found:
            self.wrong(name, "may not be empty")
        return found

    def integer(self, name: str, low: int = 0, high: int = 2**31 - 1) -> int | None:
        found = self._values.get(name)
        if found is None:
            return None
        if not isinstance(found, int) or isinstance(found, bool):
            self.wrong(name, "is not an integer")
        if not low <= found <= high:
            self.wrong(name, f"must be from {low} to {high}")
        return found

    def needed_integer(self, name: str, low: int = 0, high: int = 2**31 - 1) -> int:
        found = self.integer(name, low, high)
        if found is None:
            self.wrong(name, "may not be null")
        return found

    def flag(self, name: str) -> bool | None:
        """true or false, also as strings."""
        found = self._values.get(name)
        if isinstance(found, str) and found.lower() in ("true", "false"):
            return found.lower() == "true"
        if found is not None and not isinstance(found, bool):
            self.wrong(name, "is not true or false")
        return found

    def array(self, name: str) -> list[Any]:
        """A list that is there and not empty."""
        found = self._values.get(name)
        if not isinstance(found, list):
            self.wrong(name, "is not a list")
        if not found:
            self.wrong(name, "may not be empty")
        return found
