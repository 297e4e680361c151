"""The rates of new connections of addresses in ZooKeeper (kafka.server.IpConfigHandler)."""

from __future__ import annotations

import logging

from kafka08.network.connection_limits import ConnectionLimits
from kafka08.server.quotas.quota_nodes import rate_of
from zk import entities, entity_configs
from zk.client import ZkClient
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.network.ConnectionQuotas")

CREATION_RATE = "connection_creation_rate"


class IpNodes:
    """Keeps the rates of ``limits`` as they are in ZooKeeper."""

    def __init__(self, zk: ZkClient, limits: ConnectionLimits) -> None:
        self._zk = zk
        self._limits = limits
        self._known: set[str] = set()  # the entities with a rate

    def load(self) -> None:
        """Read all addresses. Raises ZkError."""
        for path in self._known.union(entity_configs.names(self._zk, entities.IPS)):
            self.changed(path)

    def changed(self, path: str) -> None:
        """Read ``ips/ADDRESS`` again. Raises ZkError."""
        try:
            config = entity_configs.fetch(self._zk, path)
        except MalformedNodeError as error:
            logger.error("Ignoring the quota of %s: %s", path, error)
            config = {}
        rate = rate_of(path, config, CREATION_RATE)
        name = path.partition("/")[2]
        self._limits.set_rate(None if name == entities.DEFAULT else name, rate)
        if rate is not None:
            logger.info("Quota of %s: %s new connections/s", path, rate)
            self._known.add(path)
        elif path in self._known:
            logger.info("Quota of %s: none", path)
            self._known.discard(path)
