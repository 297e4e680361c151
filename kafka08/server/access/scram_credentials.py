"""The SCRAM credentials of users: kept in ZooKeeper, cached here for logins.

A login does not wait for ZooKeeper and works while ZooKeeper is away; ``config_changes`` reports
changes. Sessions of a credential that is changed or deleted end. Does not know connections.
"""

from __future__ import annotations

import logging
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from kafka08.network.peer import Session
from kafka08.security.scram import (
    HASHES,
    Credential,
    Shape,
    decode_credential,
    made_up_credential,
    shape_of,
)
from zk import entities, entity_configs
from zk.client import ZkClient
from zk.errors import NodeExistsError
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.server.UserConfigHandler")

# Only in kafka08: what the credentials of users that do not exist are made from.
SALT_SECRET = "/config/made_up_salts"

Find = Callable[[str], Credential]
Known = dict[str, dict[str, Credential]]


class ScramCredentials:
    """Credentials by mechanism and user, as far as they make sense. ``end`` ends sessions."""

    def __init__(self, zk: ZkClient, end: Callable[[Collection[Session]], object]) -> None:
        self._zk = zk
        self._end = end
        self._known: Known = {mechanism: {} for mechanism in HASHES}
        self._shapes: dict[str, Mapping[Shape, int]] = {mechanism: {} for mechanism in HASHES}
        # A secret of this broker alone, until the cluster's has been read.
        self._secret = secrets.token_bytes(32)

    def load(self) -> None:
        """Read all users. Raises ZkError."""
        self._secret = self._shared_secret()
        found = entity_configs.names(self._zk, entities.USERS)
        there = {_user_of(entity) for entity in found}
        read = {user: self._read(user, entity) for user, entity in _with_credentials(found)}
        known = {user for each in self._known.values() for user in each}
        self._take({**{user: {} for user in known - there}, **read})

    def changed(self, entity: str) -> None:
        """Read ``users/USER`` again. A credential that makes no sense counts as none. Raises
        ZkError."""
        self._take({user: self._read(user, entity) for user, _ in _with_credentials([entity])})

    def _read(self, user: str, entity: str) -> dict[str, Credential]:
        """By mechanism."""
        try:
            config = entity_configs.fetch(self._zk, entity)
        except MalformedNodeError as error:
            logger.error("Logins as %r fail: %s", user, error)
            config = {}
        found = {}
        for mechanism in HASHES:
            if mechanism in config:
                try:
                    found[mechanism] = decode_credential(mechanism, config[mechanism])
                except ValueError as error:
                    logger.error("%r cannot log in with %s: %s", user, mechanism, error)
        return found

    def _take(self, users: Mapping[str, Mapping[str, Credential]]) -> None:
        """Put the credentials of these users in place of those that were known."""
        over = set()
        for mechanism, known in self._known.items():
            for user, found in users.items():
                before, now = known.pop(user, None), found.get(mechanism)
                if now is not None:
                    known[user] = now
                if before not in (None, now):
                    over.add(Session(mechanism, user))
            if users:
                self._shapes[mechanism] = Counter(map(shape_of, known.values()))
        if over:
            self._end(over)

    def find(self, mechanism: str, user: str) -> Credential:
        """The user's credential; one that no password fits if there is none."""
        known = self._known[mechanism].get(user)
        # Made in any case, so that the time of an answer reveals nothing.
        made_up = made_up_credential(mechanism, user, self._secret, self._shapes[mechanism])
        return made_up if known is None else known

    def _shared_secret(self) -> bytes:
        """The same on all brokers: else an unknown name would have a salt for each."""
        try:
            self._zk.create(SALT_SECRET, self._secret.hex().encode(), makepath=True)
        except NodeExistsError:
            pass
        return self._zk.get(SALT_SECRET)[0]


def _with_credentials(found: Collection[str]) -> list[tuple[str, str]]:
    """Users and their entities. Defaults and clients have no credentials."""
    return [
        (_user_of(entity), entity)
        for entity in found
        if entity.count("/") == 1 and not entity.endswith(f"/{entities.DEFAULT}")
    ]


def _user_of(entity: str) -> str:
    return entities.desanitize(entity.partition("/")[2])
