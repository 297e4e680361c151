"""One request as handlers see it, their answers, and the routes that lead to them.

Bodies that are not JSON are answered with 400, others that are not valid with 422; the text names
the field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, TypeAlias

from werkzeug.wrappers import Request

from kafka08.rest.errors import bad_entity, plain
from kafka08.rest.media import Media
from kafka08.security.users import READER

Row: TypeAlias = "dict[str, object]"
"""A JSON object of an answer."""


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def parse(data: bytes) -> object:
    """The value of a JSON text in UTF-8. Raises RestError 400."""
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except RecursionError:
        raise plain(400, "Bad Request: the JSON is nested too deeply") from None
    except ValueError as error:
        raise plain(400, f"Bad Request: malformed JSON: {error}") from None


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_BLANKS = " \t\r\n"


def parse_each(data: bytes) -> Iterator[object]:
    """The values of JSON texts in UTF-8 that follow one another. Raises RestError 400 where
    something else begins."""
    try:
        text = data.decode("utf-8-sig")
        at = _next(text, 0)
        while at < len(text):
            value, end = _DECODER.raw_decode(text, at)
            yield value
            at = _next(text, end)
    except RecursionError:
        raise plain(400, "Bad Request: the JSON is nested too deeply") from None
    except ValueError as error:
        raise plain(400, f"Bad Request: malformed JSON: {error}") from None


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


class Fields:
    """The fields of one JSON object; ``where`` names it in errors.

    Raises RestError 422 for anything but an object, and for fields that are not ``known``.
    """

    def __init__(self, value: object, known: Collection[str], where: str = "") -> None:
        if not isinstance(value, dict):
            raise bad_entity(f"{where or 'The body'} is not a JSON object")
        self._where = f"{where}." if where else ""
        for name in value:
            if name not in known:
                raise bad_entity(f"Unrecognized field: {self._where}{name}")
        self._values: Row = value

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def value(self, name: str) -> object:
        return self._values.get(name)

    def path(self, name: str) -> str:
        """The field's name in errors."""
        return f"{self._where}{name}"

    def wrong(self, name: str, reason: str) -> NoReturn:
        raise bad_entity(f"{self.path(name)} {reason}")

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

    def array(self, name: str) -> list[object]:
        """A list that is there and not empty."""
        found = self._values.get(name)
        if not isinstance(found, list):
            self.wrong(name, "is not a list")
        if not found:
            self.wrong(name, "may not be empty")
        return found

    def objects(self, name: str, *known: str) -> Iterator[Fields]:
        """The objects of such a list."""
        for index, each in enumerate(self.array(name)):
            yield Fields(each, known, f"{self._where}{name}[{index}]")


class RestAnswer(NamedTuple):
    """``body`` is sent as JSON, bytes as they are; without one there is no content. ``media``
    replaces the type that was negotiated. ``headers``: further ones."""

    body: object = None
    status: int = 200
    media: str = ""
    headers: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Call:
    """``args``: those of the path. ``media``: the type of the body; ``accept``: of the answer."""

    request: Request
    args: Mapping[str, Any]
    media: Media
    accept: Media

    @property
    def has_body(self) -> bool:
        return bool(self.request.get_data().strip())

    def fields(self, *known: str) -> Fields:
        """The body, an object. Raises RestError 400, 422."""
        if not self.has_body:
            raise bad_entity("The request entity is required")
        return Fields(parse(self.request.get_data()), known)

    def number(self, name: str, low: int, high: int) -> int | None:
        """An integer of the query. Raises RestError 400."""
        text = self.request.args.get(name, "")
        if not text:
            return None
        try:
            value = int(text) if len(text) < 20 else high + 1
        except ValueError:
            raise plain(400, f"{name} has value {text} which is not an integer") from None
        if not low <= value <= high:
            raise plain(400, f"{name} has value {text} which is not from {low} to {high}")
        return value


Handler = Callable[[Call], RestAnswer]


class Route(NamedTuple):
    """``name`` is the endpoint's in metrics. ``formats``: those of records in the answer.

    ``versions``: those of the API; without one the handler chooses the type of the answer.
    """

    method: str
    rule: str
    name: str
    handler: Handler
    versions: tuple[int, ...]
    role: str = READER
    formats: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        return self.role != READER


def allowed(topic: str, only: Collection[str], key: str) -> None:
    """Raises RestError 403 for a topic that a setting leaves out."""
    if only and topic not in only:
        raise plain(403, f"Topic {topic} is not in {key}.")
