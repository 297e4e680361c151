"""One request as handlers see it, their answers, and the routes that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from kafka08.rest import bodies
from kafka08.rest.errors import bad_entity, plain
from kafka08.rest.media import Media
from kafka08.security.users import ROLES

READER, OPERATOR, ADMIN = ROLES
"""The roles of users: a reader changes nothing, an operator writes and reads as a group, an admin
changes topics. Each may also do what those before it may."""


class Answer(NamedTuple):
    """``body`` is sent as JSON, bytes as they are; without one there is no content. ``media``
    replaces the type that was negotiated."""

    body: Any = None
    status: int = 200
    media: str = ""


class Call:
    """``accept``: the type of the answer. ``accepts``: the header that asks for one. ``media``:
    the body's. ``url``: without the query."""

    def __init__(
        self,
        *,
        args: dict[str, Any],
        query: dict[str, str],
        data: bytes,
        media: Media,
        accept: Media,
        url: str,
        accepts: str = "",
    ) -> None:
        self.args = args
        self.media = media
        self.accept = accept
        self.accepts = accepts
        self.url = url
        self._query = query
        self._data = data

    @property
    def has_body(self) -> bool:
        return bool(self._data.strip())

    @property
    def json(self) -> Any:
        """Raises RestError 400."""
        return bodies.parse(self._data)

    def fields(self, *known: str) -> bodies.Fields:
        """The body, an object. Raises RestError 400, 422."""
        if not self.has_body:
            raise bad_entity("The request entity is required")
        return bodies.Fields(self.json, known)

    def number(self, name: str, low: int, high: int) -> int | None:
        """An integer of the query. Raises RestError 400."""
        text = self._query.get(name, "")
        if not text:
            return None
        try:
            value = int(text) if len(text) < 20 else high + 1
        except ValueError:
            raise plain(400, f"{name} has value {text} which is not an integer") from None
        if not low <= value <= high:
            raise plain(400, f"{name} has value {text} which is not from {low} to {high}")
        return value


Handler = Callable[[Call], Answer]


class Route(NamedTuple):
    """``name`` is the endpoint's in metrics. ``formats``: those of records in the answer.

    ``versions``: those of the API; without one the handler chooses the type of the answer.
    ``topics``: the setting that limits the topics of this route, "" if none does.
    """

    method: str
    rule: str
    name: str
    handler: Handler
    versions: tuple[int, ...]
    role: str = READER
    formats: tuple[str, ...] = ()
    topics: str = ""

    @property
    def changes(self) -> bool:
        return self.role != READER


def allowed(topic: str, only: Collection[str], key: str) -> None:
    """Raises RestError 403 for a topic that a setting leaves out."""
    if only and topic not in only:
        raise plain(403, f"Topic {topic} is not in {key}.")
