"""Settings of brokers that are changed while they run: they are in ZooKeeper, not in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka08.errors import ConfigError
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.settings import LONG, LONG_MAX, Settings, dotted


class DynamicBrokerSettings(Settings):
    """The rates of replication, in bytes a second."""

    leader_replication_throttled_rate: int = dotted(
        LONG_MAX,
        LONG,
        low=1,
        doc="Bytes a second that the broker sends as the leader of the replicas in "
        "`leader.replication.throttled.replicas` of topics.",
    )
    follower_replication_throttled_rate: int = dotted(
        LONG_MAX,
        LONG,
        low=1,
        doc="Bytes a second that the broker fetches for the replicas in "
        "`follower.replication.throttled.replicas` of topics.",
    )

    @classmethod
    def validate(cls, names: Iterable[str], properties: Mapping[str, str]) -> None:
        """Check the settings ``names`` that are to be changed, and the values of those that are
        set. Raises ConfigError, which says why one cannot be changed."""
        known = {described.key: described for described in cls.settings().values()}
        static = BrokerConfig.keys()
        for name in names:
            if name in static:
                raise ConfigError(
                    f"{name} cannot be changed while the broker runs: it is read from "
                    "server.properties when the broker starts."
                )
            if name not in known:
                raise ConfigError(
                    f"{name} is not a setting of this broker that can be changed while it runs."
                )
            if name in properties:
                known[name].parse(properties[name])
