"""Users of HTTP services: a file with names, roles and salted hashes of passwords.

A line is ``name:role:scrypt$SALT$HASH``, with salt and hash in hex. The class
kafka.console.ConsolePassword makes one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kafka08.errors import ConfigError

READER, OPERATOR, ADMIN = ROLES = ("reader", "operator", "admin")
"""Each may do what those before it may. Readers change nothing; operators write messages, read as
groups and set these back, and elect leaders; admins create, change, move and delete topics."""

_COST = {"n": 1 << 14, "r": 8, "p": 1}
_REMEMBERED = 1000


class User(NamedTuple):
    """``name`` "" where no login is needed."""

    name: str
    role: str

    def may(self, role: str) -> bool:
        """Whether the user may do what ``role`` is needed for."""
        return ROLES.index(self.role) >= ROLES.index(role)


class _Entry(NamedTuple):
    role: str
    salt: bytes
    digest: bytes


def _digest(password: str, salt: bytes) -> bytes:
    data = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(data, salt=salt, dklen=32, **_COST)


def line_for(name: str, role: str, password: str) -> str:
    """A line of the file. Raises ConfigError."""
    if not name or ":" in name or role not in ROLES or not password:
        needed = f"a name without colon, a role ({', '.join(ROLES)}) and a password"
        raise ConfigError(f"A user needs {needed}")
    salt = os.urandom(16)
    return f"{name}:{role}:scrypt${salt.hex()}${_digest(password, salt).hex()}"


class Users:
    """The users of a file's ``lines``; ``source`` names it in errors. Raises ConfigError."""

    def __init__(self, lines: Iterable[str], source: str) -> None:
        self._entries: dict[str, _Entry] = {}
        self._key = os.urandom(32)
        self._known: dict[bytes, str] = {}
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.startswith("#"):
                self._add(line.strip(), f"{source}: line {number}")
        if not self._entries:
            raise ConfigError(f"{source} has no users")

    def _add(self, line: str, where: str) -> None:
        try:
            name, role, secret = line.split(":")
            method, salt, digest = secret.split("$")
            if method != "scrypt" or role not in ROLES or not name or name in self._entries:
                raise ValueError
            self._entries[name] = _Entry(role, bytes.fromhex(salt), bytes.fromhex(digest))
        except ValueError:
            raise ConfigError(f"{where} is not name:role:scrypt$SALT$HASH of a new user") from None

    def role(self, name: str, password: str) -> str | None:
        """The user's role; None if name or password is wrong.

        Computing a hash takes long on purpose, so a pair that was right is remembered, by a hash
        with a key of this process.
        """
        pair = f"{name}\0{password}".encode("utf-8", "surrogatepass")
        mark = hmac.digest(self._key, pair, "sha256")
        if mark in self._known:
            return self._known[mark]
        found = self._entries.get(name)
        # Unknown names take as long as wrong passwords.
        salt, digest = (found.salt, found.digest) if found is not None else (b"-", b"")
        if not hmac.compare_digest(_digest(password, salt), digest) or found is None:
            return None
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[mark] = found.role
        return found.role


def load(path: str, setting: str) -> Users:
    """The users of the file that ``setting`` names. Raises ConfigError."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{setting} has value {path}: {reason}") from None
    return Users(text.splitlines(), path)
