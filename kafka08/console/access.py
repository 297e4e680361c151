"""Users with roles, and proof that a change comes from a page of the console."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from typing import NamedTuple, Protocol

from kafka08.errors import ConfigError

READER, OPERATOR, ADMIN = ROLES = ("reader", "operator", "admin")
"""Each may do what the former may. Operators produce, elect leaders and set groups back; admins
create, change and delete topics, and move partitions."""

_SCRYPT = {"n": 1 << 14, "r": 8, "p": 1}
_REMEMBERED = 1000


class User(NamedTuple):
    """``name`` "" where nobody has to log in."""

    name: str
    role: str

    def may(self, role: str) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


class _Entry(NamedTuple):
    role: str
    salt: bytes
    digest: bytes


def entry(name: str, role: str, password: str, salt: bytes = b"") -> str:
    """The line of a user in console.users.file. Raises ConfigError."""
    if not name or ":" in name or role not in ROLES:
        raise ConfigError(f"{name}: a name without a colon, and a role of {', '.join(ROLES)}")
    salt = salt or os.urandom(16)
    return f"{name}:{role}:scrypt${salt.hex()}${_digest(password, salt).hex()}"


def _digest(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, dklen=32, **_SCRYPT)


class Users:
    """The users of a file's text, whose lines are of ``entry``. Raises ConfigError that names the
    line, and not what is in it."""

    def __init__(self, text: str, path: str = "console.users.file") -> None:
        self._entries: dict[str, _Entry] = {}
        self._key = secrets.token_bytes(32)
        self._known: set[bytes] = set()
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            try:
                name, role, stored = line.strip().split(":")
                kind, salt, digest = stored.split("$")
                if kind != "scrypt" or role not in ROLES or name in self._entries:
                    raise ValueError
                self._entries[name] = _Entry(role, bytes.fromhex(salt), bytes.fromhex(digest))
            except ValueError:
                raise ConfigError(
                    f"{path}, line {number}, is not name:role:scrypt$salt$hash of a new user."
                ) from None
        if not self._entries:
            raise ConfigError(f"{path} has no users.")

    def check(self, name: str, password: str) -> User | None:
        """The user, if the password is right. The hash takes some 50 ms of a processor, so a pair
        that was right is remembered, by a hash with a key of this process."""
        found = self._entries.get(name)
        pair = f"{name}:{password}".encode()
        mark = hmac.digest(self._key, pair, "sha256")
        if found is not None and mark in self._known:
            return User(name, found.role)
        # Unknown names take as long as known ones.
        salt, digest = (found.salt, found.digest) if found else (b"-", b"")
        if not hmac.compare_digest(_digest(password, salt), digest) or found is None:
            return None
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known.add(mark)
        return User(name, found.role)


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
