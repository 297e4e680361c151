"""The rates of users, clients and addresses in ZooKeeper (kafka.server.ClientQuotaConfigHandler).

``config_changes`` reports changes. A rate that makes no sense counts as not
set, with one ERROR.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafka08.network.connection_limits import ConnectionLimits
from kafka08.security.limits import (
    CONSUMER_RATE,
    CREATION_RATE,
    MUTATION_RATE,
    PERCENTAGE,
    PRODUCER_RATE,
    QuotaLimits,
    entity_of,
)
from kafka08.server.quotas.throttle import Throttle
from zk import entities, entity_configs
from zk.client import ZkClient
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.server.ClientQuotaManager")
ip_logger = logging.getLogger("kafka.network.ConnectionQuotas")


class QuotaNodes:
    """Keeps the rates of ``throttle`` and of ``mutations`` (partitions a second) as they are in
    ZooKeeper."""

    def __init__(self, zk: ZkClient, throttle: Throttle, mutations: QuotaLimits) -> None:
        self._zk = zk
        self._throttle = throttle
        self._mutations = mutations
        self._known: set[str] = set()  # the entities with rates

    def load(self) -> None:
        """Read all users and clients. Raises ZkError."""
        users = entity_configs.names(self._zk, entities.USERS)
        found = [*users, *entity_configs.names(self._zk, entities.CLIENTS)]
        for user in users:
            found += entity_configs.names(self._zk, f"{user}/{entities.CLIENTS}")
        for path in self._known.union(found):
            self.changed(path)

    def changed(self, path: str) -> None:
        """Read ``users/U``, ``users/U/clients/C`` or ``clients/C`` again. Raises ZkError."""
        entity = entity_of(path)
        if entity is None:
            return
        config = fetched(self._zk, path, "quotas", logger)
        names = (PRODUCER_RATE, CONSUMER_RATE, PERCENTAGE)
        rates = [rate_of(path, config, name) for name in names]
        self._throttle.set_rates(entity, *rates)
        mutations = rate_of(path, config, MUTATION_RATE)
        self._mutations.set(entity, mutations)
        if any(rate is not None for rate in (*rates, mutations)):
            text = "Quotas of %s: %s and %s bytes/s, %s %% of the time, %s partitions/s"
            logger.info(text, path, *rates, mutations)
            self._known.add(path)
        elif path in self._known:
            logger.info("Quotas of %s: none", path)
            self._known.discard(path)


class IpNodes:
    """Keeps the rates of new connections of addresses in ``limits`` as they are in ZooKeeper
    (kafka.server.IpConfigHandler)."""

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
        config = fetched(self._zk, path, "quota", ip_logger)
        rate = rate_of(path, config, CREATION_RATE)
        name = path.partition("/")[2]
        self._limits.set_rate(None if name == entities.DEFAULT else name, rate)
        if rate is not None:
            ip_logger.info("Quota of %s: %s new connections/s", path, rate)
            self._known.add(path)
        elif path in self._known:
            ip_logger.info("Quota of %s: none", path)
            self._known.discard(path)


def fetched(zk: ZkClient, path: str, what: str, log: logging.Logger) -> dict[str, str]:
    """The settings of an entity. If its node is malformed, the log names ``what`` is ignored, and
    there are none. Raises ZkError."""
    try:
        return entity_configs.fetch(zk, path)
    except MalformedNodeError as error:
        log.error("Ignoring the %s of %s: %s", what, path, error)
        return {}


def rate_of(path: str, config: Mapping[str, str], name: str) -> float | None:
    """The rate ``name`` in the settings of the entity at ``path``; None without it."""
    text = config.get(name)
    if text is None:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if 0 < rate < float("inf"):
        return rate
    logger.error("Ignoring %s of %s: %r is not a number above 0", name, path, text)
    return None
