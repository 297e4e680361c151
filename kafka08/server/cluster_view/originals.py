"""Facts about the cluster for later clients: its id, and whether it has brokers of 0.8.2.2.

A kafka08 broker with ``api.versions.enable`` writes the message formats that it knows into its
registration (``formats``). 0.8.2.2 reads only host and port there, and writes no such field. The
formats of every broker are stored in ZooKeeper. A broker that is away counts as what it was when it
was last registered, and as one of 0.8.2.2 if a kafka08 broker has not seen it yet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from zk.client import ZkClient
from zk.errors import ZkError
from zk.registry import ensure_cluster_id, registrations, remember_formats
from zk.znodes import BrokerRegistration, MalformedNodeError

logger = logging.getLogger("kafka.server.KafkaServer")

# The highest message format that this broker stores, as it registers.
FORMATS = 2


class Originals:
    """Called with broker registrations (``server.registrations``). ``tell_later`` gets the brokers
    that hold later formats then."""

    def __init__(
        self,
        zk: ZkClient,
        broker_id: int,
        tell_later: Callable[[frozenset[int]], None],
    ) -> None:
        self._zk = zk
        self._broker_id = broker_id
        self._tell_later = tell_later
        self._cluster_id: str | None = None
        # None before the registrations were read for the first time.
        self._live: Mapping[int, int | None] | None = None
        self._later: frozenset[int] = frozenset()

    def are_registered(self) -> bool:
        """Whether a live broker has not said that it knows format 2, or might not have."""
        return self._live is None or not all(map(_is_later_broker, self._live.values()))

    def serves_later(self, broker_id: int) -> bool:
        """Whether a live broker is known to serve the requests of later releases."""
        return _is_later_broker((self._live or {}).get(broker_id))

    def can_store_later(self, brokers: Collection[int]) -> bool:
        """Whether these brokers hold the later formats, as far as is known. Those that are away
        count, too."""
        return self._live is None or (self._later | {self._broker_id}).issuperset(brokers)

    def administrator(self) -> int:
        """The broker named as controller in Metadata, for administrative clients: the lowest id
        that serves their requests."""
        live = self._live or {}
        later = [number for number, formats in live.items() if _is_later_broker(formats)]
        return min(later, default=self._broker_id)

    def cluster_id(self) -> str | None:
        """The id of the cluster, which the first question creates; None without ZooKeeper."""
        if self._cluster_id is None:
            try:
                self._cluster_id = ensure_cluster_id(self._zk)
            except (ZkError, MalformedNodeError) as error:
                logger.warning("Cannot read the id of the cluster: %s", error)
        return self._cluster_id

    def registered(self, brokers: Mapping[int, BrokerRegistration | None]) -> None:
        """Take over the registrations of the live brokers; None: malformed. Raises ZkError."""
        live = {number: each and each.formats for number, each in brokers.items()}
        known = remember_formats(self._zk, live)
        self._live = live
        later = frozenset(number for number, formats in known.items() if _is_later_broker(formats))
        if later != self._later:
            self._later = later
            logger.info("Brokers that hold message formats 1 and 2: %s", sorted(later))
        self._tell_later(later | {self._broker_id})


def warn_of_originals(zk: ZkClient, broker_id: int) -> None:
    """For zookeeper.set.acl: say which other brokers cannot go on with it. Raises ZkError."""
    found = [
        number
        for number, each in registrations(zk).items()
        if number != broker_id and (each is None or not _is_later_broker(each.formats))
    ]
    if found:
        logger.warning(
            "zookeeper.set.acl is true, and the brokers %s may be of 0.8.2.2: these cannot log in "
            "to ZooKeeper, and so cannot change the nodes that this broker creates. Of all nodes "
            "only those below /consumers stay open.",
            found,
        )


def _is_later_broker(formats: int | None) -> bool:
    return formats is not None and formats >= FORMATS
