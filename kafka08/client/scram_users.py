"""SCRAM users over the wire: brokers of later releases and of kafka08.

Both functions take a call to one broker, and may raise what the call raises, and RemoteError.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka08.client.admin import check
from kafka08.client.requests import Call
from kafka08.errors import LaterCode
from kafka08.protocol import scram_schemas as s
from kafka08.security.scram import nonce_of, salted_password

_NUMBERS = {name: number for number, name in enumerate(s.MECHANISMS) if name}


class Password(NamedTuple):
    """A password to be set, and the iterations that make guessing it slow."""

    password: str
    iterations: int

    def __repr__(self) -> str:
        return f"Password({self.iterations} iterations)"


def describe(call: Call, user: str | None = None) -> dict[str, dict[str, int]]:
    """The iterations by mechanism, by user; of all users without one. A user without credentials
    is left out."""
    asked = None if user is None else [s.DescribedUserName(user)]
    answer = call(s.DescribeUserScramCredentialsRequest(asked))
    check(answer.error, answer.message)
    found = {}
    for each in answer.users:
        if each.error == LaterCode.RESOURCE_NOT_FOUND:
            continue
        check(each.error, each.message)
        found[each.user] = {_name(c.mechanism): c.iterations for c in each.credentials}
    return found


def alter(call: Call, user: str, added: Mapping[str, Password], deleted: Iterable[str]) -> None:
    """Set passwords by mechanism, and delete those of mechanisms. The password stays here; the
    broker gets a secret that is made from it."""
    upsertions = []
    for mechanism, (password, iterations) in added.items():
        salt = nonce_of(secrets.token_bytes(32)).encode()
        salted = salted_password(mechanism, password, salt, iterations)
        number = _NUMBERS[mechanism]
        upsertions.append(s.ScramUpsertion(user, number, iterations, salt, salted))
    deletions = [s.ScramDeletion(user, _NUMBERS[mechanism]) for mechanism in deleted]
    answer = call(s.AlterUserScramCredentialsRequest(deletions, upsertions))
    for each in answer.users:
        check(each.error, each.message)


def _name(mechanism: int) -> str:
    known = 0 < mechanism < len(s.MECHANISMS)
    return s.MECHANISMS[mechanism] if known else f"UNKNOWN({mechanism})"
