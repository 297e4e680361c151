"""The SCRAM credentials of users: kept in ZooKeeper, cached here for logins.

A login does not wait for ZooKeeper and works while ZooKeeper is away; ``config_changes`` tells of
changes. Does not know connections.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable

from kafka08.security.scram import HASHES, Credential, decode_credential, made_up_credential
from zk import entities, entity_configs
from zk.client import ZkClient
from zk.errors import NodeExistsError
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.server.UserConfigHandler")

# Only in kafka08: what the salts of users that do not exist are made from.
SALT_SECRET = "/config/made_up_salts"

Find = Callable[[str], Credential]


class ScramCredentials:
    """Credentials by mechanism and user, as far as they make sense."""

    def __init__(self, zk: ZkClient) -> None:
        self._zk = zk
        self._known: dict[str, dict[str, Credential]] = {mechanism: {} for mechanism in HASHES}
        # A secret of this broker alone, until the cluster's has been read.
        self._secret = secrets.token_bytes(32)

    def load(self) -> None:
        """Read all users. Raises ZkError."""
        self._secret = self._shared_secret()
        found = entity_configs.names(self._zk, entities.USERS)
        for entity in found:
            self.changed(entity)
        there = {_user_of(entity) for entity in found}
        for known in self._known.values():
            for user in known.keys() - there:
                del known[user]

    def changed(self, entity: str) -> None:
        """Read ``users/USER`` again. A credential that makes no sense counts as none. Raises
        ZkError."""
        if entity.count("/") != 1 or entity.endswith(f"/{entities.DEFAULT}"):
            return  # defaults and clients have no credentials
        user = _user_of(entity)
        try:
            config = entity_configs.fetch(self._zk, entity)
        except MalformedNodeError as error:
            logger.error("Nobody can log in as %r: %s", user, error)
            config = {}
        for mechanism, known in self._known.items():
            known.pop(user, None)
            if mechanism in config:
                try:
                    known[user] = decode_credential(mechanism, config[mechanism])
                except ValueError as error:
                    logger.error("%r cannot log in with %s: %s", user, mechanism, error)

    def find(self, mechanism: str, user: str) -> Credential:
        """The user's credential; one that no password fits if there is none."""
        known = self._known[mechanism].get(user)
        made_up = made_up_credential(mechanism, user, self._secret)
        return made_up if known is None else known

    def _shared_secret(self) -> bytes:
        """The same on all brokers: else an unknown name would have a salt for each."""
        try:
            self._zk.create(SALT_SECRET, self._secret.hex().encode(), makepath=True)
        except NodeExistsError:
            pass
        return self._zk.get(SALT_SECRET)[0]


def _user_of(entity: str) -> str:
    return entities.desanitize(entity.partition("/")[2])
