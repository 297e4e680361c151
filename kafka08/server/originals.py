"""Facts about the cluster for later clients: its id, and whether it has brokers of 0.8.2.2.

A kafka08 broker with ``api.versions.enable`` writes the message formats that it knows into its
registration (``formats``). 0.8.2.2 reads only host and port there, and writes no such field. One
task reads the registrations whenever a broker comes or goes, and says which replicas hold format 0
alone. A broker that is away counts as what it was when it was last registered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from kafka08.runtime import Loop, Runtime
from zk import znodes
from zk.client import ZkClient
from zk.errors import ZkError
from zk.registry import ensure_cluster_id, formats_by_broker
from zk.watches import WatchSet
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.server.KafkaServer")

# The highest message format that this broker stores, as it registers.
FORMATS = 2

_CHANGED, _STOP = "changed", "stop"
_RETRY_SECONDS = 1.0


class Originals:
    """Follows the registrations. ``hold_format_0`` is told of the brokers that cannot hold later
    formats whenever they change."""

    def __init__(
        self,
        runtime: Runtime,
        zk: ZkClient,
        broker_id: int,
        hold_format_0: Callable[[frozenset[int]], None],
    ) -> None:
        self._zk = zk
        self._broker_id = broker_id
        self._hold_format_0 = hold_format_0
        self._cluster_id: str | None = None
        # None before the registrations were read for the first time.
        self._live: Mapping[int, int | None] | None = None
        self._known: dict[int, int | None] = {}
        self._queue = runtime.queue()
        self._watches = WatchSet(zk, self._queue.put)
        self._loop = Loop(runtime, "original-brokers", self.step)

    def start(self) -> None:
        """Read the registrations, and follow them."""
        self._read()
        self._loop.start()

    def stop(self) -> None:
        self._loop.stopping.set()
        self._queue.put(_STOP)
        self._loop.stop()

    def session_expired(self) -> None:
        """Watches are gone: read again."""
        self._queue.put(_CHANGED)

    def are_registered(self) -> bool:
        """Whether a live broker has not said that it knows format 2, or might not have."""
        return self._live is None or not all(map(_is_modern, self._live.values()))

    def administrator(self) -> int:
        """The broker named as controller in Metadata, for administrative clients: the lowest id
        that serves their requests."""
        live = self._live or {}
        modern = [number for number, formats in live.items() if _is_modern(formats)]
        return min(modern, default=self._broker_id)

    def cluster_id(self) -> str | None:
        """The id of the cluster, which the first question creates; None without ZooKeeper."""
        if self._cluster_id is None:
            try:
                self._cluster_id = ensure_cluster_id(self._zk)
            except (ZkError, MalformedNodeError) as error:
                logger.warning("Cannot read the id of the cluster: %s", error)
        return self._cluster_id

    def step(self) -> None:
        if self._queue.get() == _CHANGED:
            try:
                self._read()
            except ZkError as error:
                # No watch may be armed now, so nobody else would have us look again.
                logger.warning("Cannot read the registrations of brokers: %s", error)
                self._queue.put(_CHANGED)
                self._loop.stopping.wait(_RETRY_SECONDS)

    def _read(self) -> None:
        self._watches.children(znodes.BROKER_IDS, _CHANGED)
        live = formats_by_broker(self._zk)
        before = _originals(self._known)
        self._known.update(live)
        self._live = live
        originals = _originals(self._known)
        if originals != before:
            logger.info("Brokers that hold message format 0 only: %s", sorted(originals))
        self._hold_format_0(originals)


def _originals(formats: Mapping[int, int | None]) -> frozenset[int]:
    return frozenset(number for number, known in formats.items() if not _is_modern(known))


def _is_modern(formats: int | None) -> bool:
    return formats is not None and formats >= FORMATS
