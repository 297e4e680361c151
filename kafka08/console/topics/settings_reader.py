"""The own settings of all topics, read once and then as changes are announced.

A change of settings comes with a notice for the brokers below ``/config/changes``, which they
delete after a quarter of an hour. A look costs one read, one for each new notice, and one for each
topic that is new or has one. Now and then all are read again: a topic that was deleted and created
between two looks has no notice.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping

from kafka08 import admin
from zk import entities, znodes
from zk.client import ZkClient
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.console.SettingsReader")

ALL_EVERY = 60
"""Looks."""


class SettingsReader:
    """One task at a time."""

    def __init__(self, zk: ZkClient) -> None:
        self._zk = zk
        self._known: dict[str, Mapping[str, str]] = {}
        self._noticed: set[str] = set()
        self._looks = 0

    def read(self, topics: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Of these topics. A node that cannot be decoded counts as before. Raises the errors of
        ZkClient, and then reads all the next time."""
        looks, self._looks = self._looks, 0  # which stays if this fails
        is_full = looks % ALL_EVERY == 0
        notices = set(self._zk.children_if_exists(znodes.TOPIC_CONFIG_CHANGES))
        stale = set(topics)
        if not is_full:
            stale = {*self._changed(notices), *stale.difference(self._known)}
        known = {topic: own for topic, own in self._known.items() if topic in topics}
        for topic in stale.intersection(topics):
            try:
                known[topic] = admin.fetch_topic_config(self._zk, topic)
            except MalformedNodeError as error:
                logger.warning("%s", error)
                known.setdefault(topic, {})
        self._known, self._noticed = known, notices
        self._looks = looks + 1
        return known

    def _changed(self, notices: set[str]) -> Iterator[str]:
        """The topics that the new notices name."""
        for notice in sorted(notices - self._noticed):
            path = entities.config_change_path(notice)
            try:
                entity = admin.read_node(self._zk, path, entities.decode_config_change)
            except MalformedNodeError as error:
                logger.warning("%s", error)
                continue
            kind, _, name = (entity or "").partition("/")
            if kind == entities.TOPICS:
                yield name
