"""kafka-configs --bootstrap-server: SCRAM credentials of users, as brokers report them.

Their quotas are changed in ZooKeeper alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafka08.admin import InvalidArgumentError
from kafka08.client import scram_users
from kafka08.client.admin import AdminClient
from kafka08.security.scram import HASHES
from tools.admin.config_values import password_of


def alter(
    client: AdminClient,
    user: str,
    added: Mapping[str, str],
    deleted: Iterable[str],
    ask_password: Callable[[str], str],
) -> None:
    """``ask_password``: see ``config_values``. Raises InvalidArgumentError for settings of other
    kinds, and what ``scram_users`` raises."""
    gone = list(deleted)
    others = [name for name in (*added, *gone) if name not in HASHES]
    if others:
        raise InvalidArgumentError(
            f"Only {', '.join(HASHES)} are changed by --bootstrap-server for users; "
            f"{', '.join(others)} need --zookeeper"
        )
    passwords = {key: password_of(key, value, ask_password) for key, value in added.items()}
    scram_users.alter(client, user, passwords, gone)
    print(f"Completed updating config for user {user}.")


def describe(client: AdminClient, user: str | None) -> None:
    """``user``: None for all that have credentials."""
    for name, iterations in scram_users.describe(client, user).items():
        listed = ", ".join(f"{key}=iterations={count}" for key, count in iterations.items())
        print(f"SCRAM credential configs for user-principal '{name}' are {listed}")
