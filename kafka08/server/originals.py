"""The cluster as later clients see it: its id, and whether original brokers are in it.

A kafka08 broker with ``api.versions.enable`` writes the message formats that it knows into its
registration (``formats``). 0.8.2.2 reads only host and port there, and writes no such field.
"""

from __future__ import annotations

import logging
from typing import Any

from kafka08.cluster.metadata_cache import MetadataCache
from zk.client import ZkClient
from zk.errors import ZkError
from zk.registry import ensure_cluster_id, formats_by_broker
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.server.KafkaServer")

# The highest message format that this broker stores, as it registers.
FORMATS = 2


class Originals:
    """Reads the registrations again after each change of the live brokers in ``cache``."""

    def __init__(self, zk: ZkClient, cache: MetadataCache, broker_id: int) -> None:
        self._zk = zk
        self._cache = cache
        self._broker_id = broker_id
        self._seen: Any = None
        self._cluster_id: str | None = None
        self._formats: dict[int, int | None] = {}

    def are_registered(self) -> bool:
        """Whether a live broker has not said that it knows format 2. May wait for ZooKeeper."""
        return any(not _is_modern(formats) for formats in self._read().values())

    def administrator(self) -> int:
        """The broker that administrative clients are sent to: the lowest id that serves them."""
        modern = [number for number, formats in self._read().items() if _is_modern(formats)]
        return min(modern, default=self._broker_id)

    def cluster_id(self) -> str | None:
        """The id of the cluster, which the first question creates; None without ZooKeeper."""
        if self._cluster_id is None:
            try:
                self._cluster_id = ensure_cluster_id(self._zk)
            except (ZkError, MalformedNodeError) as error:
                logger.warning("Cannot read the id of the cluster: %s", error)
        return self._cluster_id

    def _read(self) -> dict[int, int | None]:
        brokers = self._cache.brokers
        if brokers is not self._seen:
            try:
                self._formats = formats_by_broker(self._zk)
                self._seen = brokers
            except ZkError as error:
                logger.warning("Cannot read the registrations of brokers: %s", error)
        return self._formats


def _is_modern(formats: int | None) -> bool:
    return formats is not None and formats >= FORMATS
