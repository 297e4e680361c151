"""PLAIN (RFC 4616): one token with the name and the password, which TLS must protect.

As in org.apache.kafka.common.security.plain: the authorization id is empty or the name itself.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from kafka08.security.mechanisms import LoginRefusedError, Side, Step

PLAIN = "PLAIN"

_WRONG = "Authentication failed: Invalid username or password"
_OTHER_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class PlainServer(Side):
    """``passwords``: of the accepted users, by name."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        super().__init__(self._check)
        self._passwords = passwords

    def _check(self, token: bytes) -> Step:
        try:
            authorization_id, name, password = token.decode().split("\0")
        except ValueError:
            raise LoginRefusedError("a PLAIN token is not three texts between NULs") from None
        if not name or not password:
            raise LoginRefusedError("a PLAIN token has no username or no password")
        if not _is_right(password, self._passwords.get(name)):
            raise LoginRefusedError(_WRONG, reveal=True)
        if authorization_id not in ("", name):
            raise LoginRefusedError(_OTHER_ID, reveal=True)
        self.user = name
        return Step(b"")


def _is_right(password: str, expected: str | None) -> bool:
    """Takes the same time for every password, also where there is no such user."""
    given = hashlib.sha256(password.encode()).digest()
    stored = hashlib.sha256((expected or "").encode()).digest()
    return hmac.compare_digest(given, stored) and bool(expected)


class PlainClient(Side):
    """Sends the one token. Raises LoginRefusedError for a name or password that holds a NUL."""

    def __init__(self, name: str, password: str) -> None:
        super().__init__(self._send)
        if "\0" in name + password:
            raise LoginRefusedError("a name or password for PLAIN holds a NUL")
        self._token = f"\0{name}\0{password}".encode()

    def _send(self, _: bytes) -> Step:
        return Step(self._token, self._end)

    def _end(self, token: bytes) -> Step:
        return Step(None)
