"""SCRAM users over the wire: brokers of later releases and of kafka08.

The functions that take a call to one broker may raise what the call raises, and RemoteError.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka08.client.admin import check
from kafka08.client.requests import Call
from kafka08.errors import LaterCode, meaning_of
from kafka08.protocol import scram_schemas as s
from kafka08.security.scram import nonce_of, salted_password

_NUMBERS = {name: number for number, name in enumerate(s.MECHANISMS) if name}


class Password(NamedTuple):
    """A password to be set, and the iterations that make guessing it slow."""

    password: str
    iterations: int

    def __repr__(self) -> str:
        return f"Password({self.iterations} iterations)"


class SaltedPassword(NamedTuple):
    """A secret like the password that it is made from: who has it can log in."""

    salt: bytes
    secret: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"SaltedPassword({self.iterations} iterations)"


class ScramUsers(NamedTuple):
    """``known``: the iterations by mechanism, by user. ``unreadable``: why the broker cannot say
    them, by user."""

    known: Mapping[str, Mapping[str, int]]
    unreadable: Mapping[str, str]


def describe(call: Call, user: str) -> dict[str, int]:
    """The iterations by mechanism; empty for a user without credentials."""
    for each in _described(call, [s.DescribedUserName(user)]):
        if each.error != LaterCode.RESOURCE_NOT_FOUND:
            check(each.error, each.message)
            return _iterations(each)
    return {}


def describe_all(call: Call) -> ScramUsers:
    """All users with credentials. One whose node makes no sense does not hide the others."""
    answers = _described(call, None)
    return ScramUsers(
        {each.user: _iterations(each) for each in answers if not each.error},
        {each.user: each.message or meaning_of(each.error) for each in answers if each.error},
    )


def _described(call: Call, asked: list[s.DescribedUserName] | None) -> list[s.DescribedScramUser]:
    answer = call(s.DescribeUserScramCredentialsRequest(asked))
    check(answer.error, answer.message)
    users: list[s.DescribedScramUser] = answer.users
    return users


def _iterations(user: s.DescribedScramUser) -> dict[str, int]:
    return {_name(each.mechanism): each.iterations for each in user.credentials}


def salted(mechanism: str, password: Password) -> SaltedPassword:
    """With a new salt. Takes about 0.5 µs an iteration, in which other threads run."""
    salt = nonce_of(secrets.token_bytes(32)).encode()
    secret = salted_password(mechanism, password.password, salt, password.iterations)
    return SaltedPassword(salt, secret, password.iterations)


def alter(
    call: Call, user: str, added: Mapping[str, SaltedPassword], deleted: Iterable[str]
) -> None:
    """Set passwords by mechanism, and delete those of mechanisms."""
    upsertions = [
        s.ScramUpsertion(user, _NUMBERS[mechanism], new.iterations, new.salt, new.secret)
        for mechanism, new in added.items()
    ]
    deletions = [s.ScramDeletion(user, _NUMBERS[mechanism]) for mechanism in deleted]
    answer = call(s.AlterUserScramCredentialsRequest(deletions, upsertions))
    for each in answer.users:
        check(each.error, each.message)


def _name(mechanism: int) -> str:
    known = 0 < mechanism < len(s.MECHANISMS)
    return s.MECHANISMS[mechanism] if known else f"UNKNOWN({mechanism})"
