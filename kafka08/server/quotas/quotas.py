"""The quotas of a broker: rates of clients, of new connections and of replication, as settings and
ZooKeeper have them."""

from __future__ import annotations

from collections.abc import Callable

from kafka08.network.connection_limits import ConnectionLimits
from kafka08.runtime import Clock
from kafka08.server.quotas.quota_nodes import IpNodes, QuotaNodes
from kafka08.server.quotas.replication import ReplicationQuotas
from kafka08.server.quotas.throttle import MutationQuota, Throttle
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.settings import LONG_MAX
from zk import entities
from zk.client import ZkClient


class Quotas:
    """``load`` comes before the first request is served."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, zk: ZkClient, limits: ConnectionLimits
    ) -> None:
        self.throttle = Throttle(
            clock,
            _rate(config.quota_producer_default),
            _rate(config.quota_consumer_default),
            config.quota_seconds,
            float(config.quota_window_size_seconds),
        )
        self.mutations = MutationQuota(clock, config.quota_seconds)
        self.replication = ReplicationQuotas(
            zk, clock, config.broker_id, config.replication_quota_seconds
        )
        self._clients = QuotaNodes(zk, self.throttle, self.mutations.limits)
        self._ips = IpNodes(zk, limits)

    def watched(self) -> list[tuple[str, Callable[[str], None]]]:
        """For ``ConfigChanges``: the types of entities, and the receivers of their changes."""
        return [
            (entities.USERS, self._clients.changed),
            (entities.CLIENTS, self._clients.changed),
            (entities.IPS, self._ips.changed),
            (entities.BROKERS, self.replication.changed),
        ]

    def load(self) -> None:
        """Read all quotas. Raises ZkError."""
        self._clients.load()
        self._ips.load()
        self.replication.load()


def _rate(setting: int) -> float | None:
    return None if setting == LONG_MAX else float(setting)
