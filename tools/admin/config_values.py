"""The settings that kafka-configs stores: read from its options and files, and checked.

Passwords become SCRAM credentials here; no text that leaves this module has a password.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping

from kafka08.admin import InvalidArgumentError
from kafka08.client.scram_users import Password
from kafka08.security.limits import CREATION_RATE, RATES, unfit
from kafka08.security.scram import (
    HASHES,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    credential_of,
    encode_credential,
    nonce_of,
)
from kafka08.settings import properties
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.listeners import OWN_PREFIX
from kafka08.settings.settings import HIDDEN, is_secret
from kafka08.settings.topic import TOPIC_KEYS, LogConfig
from zk import entities

# Commas and equals signs between square brackets do not count.
_NOT_IN_BRACKETS = r"(?=[^\]]*(?:\[|$))"
_COMMA = re.compile("," + _NOT_IN_BRACKETS)
_EQUALS = re.compile(r"\s*=\s*" + _NOT_IN_BRACKETS)
_SCRAM = re.compile(r"(?:iterations=([0-9]{1,9}))?(?:(?:^|,)password=(.*))?", re.DOTALL)

_THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
_BROKERS = BrokerConfig.keys()
KNOWN = {
    entities.TOPICS: tuple(sorted(TOPIC_KEYS)),
    entities.BROKERS: _THROTTLES,
    entities.USERS: (*HASHES, *RATES),
    entities.CLIENTS: RATES,
    entities.IPS: (CREATION_RATE,),
}


def parse(text: str) -> dict[str, str]:
    """``k1=v1,k2=[v2,v2],k3=`` to a mapping. Raises InvalidArgumentError."""
    added = {}
    for pair in _COMMA.split(text):
        words = _EQUALS.split(pair)
        if len(words) != 2:
            raise InvalidArgumentError(
                "requirement failed: Invalid entity config: all configs to be added must be in "
                'the format "key=val".'
            )
        added[words[0].strip()] = _without_brackets(words[1])
    return added


def parse_file(text: str) -> dict[str, str]:
    """The text of a properties file, whose values may have brackets too. Raises ConfigError."""
    return {key: _without_brackets(value) for key, value in properties.parse(text).items()}


def _without_brackets(value: str) -> str:
    value = value.strip()
    return value[1:-1].strip() if value[:1] == "[" and value[-1:] == "]" else value


def with_credentials(
    added: Mapping[str, str], ask_password: Callable[[str], str]
) -> dict[str, str]:
    """The settings with SCRAM credentials in place of passwords.

    ``ask_password`` gets a mechanism that was given without a password. Raises
    InvalidArgumentError.
    """
    return {
        key: _credential(key, value, ask_password) if key in HASHES else value
        for key, value in added.items()
    }


def _credential(mechanism: str, value: str, ask_password: Callable[[str], str]) -> str:
    password, iterations = password_of(mechanism, value, ask_password)
    salt = nonce_of(secrets.token_bytes(32)).encode()
    return encode_credential(credential_of(mechanism, password, salt, iterations))


def password_of(mechanism: str, value: str, ask_password: Callable[[str], str]) -> Password:
    """The value of a mechanism as it was given. Raises InvalidArgumentError."""
    found = _SCRAM.fullmatch(value)
    if found is None:
        raise InvalidArgumentError(
            f"Invalid credential property {mechanism}: [iterations=N,password=PASSWORD] is expected"
        )
    iterations = int(found[1] or MIN_ITERATIONS)
    if iterations < MIN_ITERATIONS:
        raise InvalidArgumentError(
            f"Iterations {iterations} is less than the minimum {MIN_ITERATIONS} required for "
            f"{mechanism}"
        )
    if iterations > MAX_ITERATIONS:
        raise InvalidArgumentError(
            f"Iterations {iterations} is more than the maximum {MAX_ITERATIONS} for {mechanism}"
        )
    password = ask_password(mechanism) if found[2] is None else found[2]
    if not password:
        raise InvalidArgumentError(f"The password for {mechanism} is empty")
    return Password(password, iterations)


def check(kind: str, is_nested: bool, settings: Mapping[str, str]) -> None:
    """All settings of an entity, as they are about to be stored. ``is_nested``: of a client of one
    user. Raises ConfigError, InvalidArgumentError."""
    if kind == entities.TOPICS:
        LogConfig.validate(settings)
        return
    known = KNOWN[entities.CLIENTS if is_nested else kind]
    unknown = [name for name in settings if name not in known]
    if kind == entities.BROKERS:
        unknown = [n for n in unknown if n not in _BROKERS and not n.startswith(OWN_PREFIX)]
        for name in filter(is_secret, settings):
            raise InvalidArgumentError(
                f"{name} is a secret, and everyone who can read ZooKeeper would know it. Set it in "
                "the broker's properties file."
            )
    if unknown:
        raise InvalidArgumentError(
            f"requirement failed: Unknown Dynamic Configuration: Set({', '.join(unknown)})."
        )
    for name in (*RATES, *_THROTTLES, CREATION_RATE):
        text = settings.get(name)
        if text is not None and (expected := unfit(name, text)):
            raise InvalidArgumentError(
                f"Invalid value {text} for configuration {name}: not {expected}"
            )


def shown(key: str, value: str) -> str:
    """A setting as ``--describe`` prints it: of a credential the iterations alone."""
    if key in HASHES:
        return f"{key}=iterations={value.rpartition('iterations=')[2]}"
    return f"{key}={HIDDEN}" if is_secret(key) else f"{key}={value}"
