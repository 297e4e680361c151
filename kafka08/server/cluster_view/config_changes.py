"""Notices of changed settings, passed on to those who use the settings.

Mirrors kafka.server.TopicConfigManager, later DynamicConfigManager: /config/changes holds numbered
notices, each of which names an entity; the settings themselves are elsewhere below /config. Each
notice above the highest one that was passed on is passed on, in order of number (0.8.2.2 sorts the
first list only and can skip some).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from kafka08.errors import KafkaError
from kafka08.runtime import Runtime
from kafka08.server.cluster_view.watched_children import NOTICE_EXPIRY_MS, WatchedChildren
from zk import entities
from zk.client import ZkClient
from zk.errors import NoNodeError
from zk.znodes import TOPIC_CONFIG_CHANGES, MalformedNodeError

logger = logging.getLogger("kafka.server.TopicConfigManager")


class ConfigChanges(WatchedChildren):
    """``users``: pairs of a type and a function, which gets the path of a changed entity of that
    type (``topics/t``; ``users/u`` and ``users/u/clients/c`` are of type users). It may raise
    ZkError, and is called again then. Notices of other types are passed over.
    """

    def __init__(
        self, runtime: Runtime, zk: ZkClient, users: Sequence[tuple[str, Callable[[str], None]]]
    ) -> None:
        super().__init__(
            runtime,
            zk,
            TOPIC_CONFIG_CHANGES,
            "topic-configs",
            self._read,
            logger,
            "Changes of configuration not read",
        )
        self._clock = runtime.clock
        self._zk = zk
        self._users = users
        self._passed_on = -1

    def _read(self, names: Sequence[str]) -> None:
        for number, name in sorted(_numbered(names)):
            path = entities.config_change_path(name)
            if number > self._passed_on:
                self._pass_on(path)
                self._passed_on = number
            self._purge(path)

    def _pass_on(self, path: str) -> None:
        try:
            entity = entities.decode_config_change(path, self._zk.get(path)[0])
        except NoNodeError:
            return
        except MalformedNodeError as error:
            logger.error("Ignoring a change of configuration: %s", error)
            return
        for kind, user in self._users:
            if kind == entity.partition("/")[0]:
                user(entity)

    def _purge(self, path: str) -> None:
        """Remove a notice after every broker has had time to see it."""
        stat = self._zk.exists(path)
        if stat is not None and self._clock.millis() - stat.ctime > NOTICE_EXPIRY_MS:
            self._zk.delete_if_exists(path)


def _numbered(names: Iterable[str]) -> list[tuple[int, str]]:
    found = []
    for name in names:
        try:
            found.append((entities.config_change_number(name), name))
        except (KafkaError, ValueError):
            logger.warning("Ignoring %s among the configuration changes", name)
    return found
