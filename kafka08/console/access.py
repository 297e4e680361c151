"""The roles of users, and proof that a change comes from a page of the console."""

from __future__ import annotations

import hmac
import secrets
from typing import NamedTuple, Protocol

from kafka08.security.users import ROLES

READER, OPERATOR, ADMIN = ROLES
"""Operators produce, elect leaders and set groups back; admins create, change and delete topics,
and move partitions."""


class User(NamedTuple):
    """``name`` "" where no login is needed."""

    name: str
    role: str

    def may(self, role: str) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


class Tokens:
    """Tokens that pages carry in their forms: a foreign page cannot know a user's."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def of(self, user: User) -> str:
        return hmac.new(self._key, user.name.encode(), "sha256").hexdigest()

    def fits(self, user: User, token: str) -> bool:
        return hmac.compare_digest(self.of(user).encode(), token.encode())


class Headers(Protocol):
    def get(self, key: str, /) -> str | None: ...


def is_same_origin(headers: Headers, origin: str) -> bool:
    """Whether a page of the console sent the request: ``origin`` is the console's, as it was
    asked for. Clients other than browsers send neither header."""
    site = headers.get("Sec-Fetch-Site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    sender = headers.get("Origin")
    return sender is None or sender == origin
