"""The client's side of a login, as ``sasl.mechanism`` and ``sasl.jaas.config`` have it."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from kafka08.errors import ConfigError
from kafka08.security.jaas import PLAIN_MODULE, SCRAM_MODULE, LoginModule
from kafka08.security.mechanisms import Side
from kafka08.security.plain import PLAIN, PlainClient
from kafka08.security.scram import HASHES, ScramClient, nonce_of


def check_module(mechanism: str, module: LoginModule, key: str) -> None:
    """Raises ConfigError for a module of another mechanism; ``key`` is the setting it names."""
    expected = PLAIN_MODULE if mechanism == PLAIN else SCRAM_MODULE
    if module.name != expected:
        raise ConfigError(
            f"{key} has the login module {module.name}, and {mechanism} needs {expected}."
        )


def client_side(mechanism: str, module: LoginModule, key: str) -> Callable[[], Side]:
    """Makes the side of each login. ``key`` is the setting that errors name. Raises ConfigError."""
    if mechanism != PLAIN and mechanism not in HASHES:
        raise ConfigError(
            f"sasl.mechanism is {mechanism}, which is not one of {', '.join((PLAIN, *HASHES))}."
        )
    check_module(mechanism, module, key)
    name, password = module.username, module.password
    if not name or not password:
        raise ConfigError(f"{key} has no username or no password.")
    if "\0" in name + password:
        raise ConfigError(f"{key} has a NUL in the username or the password.")
    if mechanism == PLAIN:
        return lambda: PlainClient(name, password)
    return lambda: ScramClient(mechanism, name, password, nonce_of(secrets.token_bytes(32)))
