"""Tells partitions how transactions have ended: the coordinator's side of WriteTxnMarkers.

The markers for a broker that is slow wait in a queue, and go in one request with all that wait.
A marker that is not written is sent again, to the leader that the partition has then, until it is
written or the coordinator has been replaced.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import Broker, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    InvalidProducerEpochError,
    KafkaError,
    RequestTimedOutError,
    TransactionCoordinatorFencedError,
    UnsupportedForMessageFormatError,
)
from kafka08.protocol.transaction_schemas import (
    MarkedTopic,
    TxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka08.runtime import Event, Runtime, Tasks
from kafka08.server.transactions.peers import Peers
from kafka08.server.transactions.records import Transaction
from kafka08.server.transactions.states import PREPARE_COMMIT
from kafka08.server.transactions.store import Led

logger = logging.getLogger("kafka.coordinator.transaction.TransactionMarkerChannelManager")

Write = Callable[[WriteTxnMarkersRequest], WriteTxnMarkersResponse]

_VERSION = 1
_RETRY_S = 0.1
_MOST_MARKERS = 1000  # in a request
# Requests to a broker at once. One waits while a partition's followers are away.
_MOST_SENDERS = 16
# The partition needs no marker, or does not take one of this coordinator any more.
_SETTLED = (NO_ERROR, UnsupportedForMessageFormatError.code)
_FENCED = (InvalidProducerEpochError.code, TransactionCoordinatorFencedError.code)


class _Waiting:
    """A marker for partitions that a broker leads, and its answers once ``done`` is set."""

    __slots__ = ("codes", "done", "marker", "partitions")

    def __init__(
        self, marker: TxnMarker, partitions: Collection[TopicPartition], done: Event
    ) -> None:
        self.marker = marker
        self.partitions = partitions
        self.done = done
        self.codes: dict[TopicPartition, int] = {}


class MarkerWriter:
    """``me`` is this broker's id, ``write`` writes markers here; others are asked by ``peers``.
    ``may_have`` is asked about partitions that are not in ``cache``, and may wait for ZooKeeper."""

    def __init__(
        self,
        runtime: Runtime,
        cache: MetadataCache,
        peers: Peers,
        me: int,
        write: Write,
        may_have: Callable[[TopicPartition], bool],
    ) -> None:
        self._runtime = runtime
        self._cache = cache
        self._peers = peers
        self._me = me
        self._write_here = write
        self._may_have = may_have
        self._queues: dict[int, list[_Waiting]] = {}
        self._senders: Counter[int] = Counter()
        self._tasks = Tasks(runtime)
        self.join = self._tasks.join
        self._left: list[set[TopicPartition]] = []

    def write(self, ended: Transaction, led: Led) -> None:
        """Have all partitions of a transaction hear how it has ended; returns when they have, or
        when ``led`` is over."""
        left = set(ended.partitions)
        self._left.append(left)
        try:
            self._write(ended, led, left)
        finally:
            self._left = [each for each in self._left if each is not left]

    def without_leader(self) -> int:
        """Partitions that have no leader to hear how a transaction has ended."""
        return sum(self._cache.leader_of(key) is None for left in self._left for key in left)

    def _write(self, ended: Transaction, led: Led, left: set[TopicPartition]) -> None:
        while left and not led.is_over:
            asked = self._ask(ended, led, left)
            for waiting in asked:
                waiting.done.wait()
                for key, code in waiting.codes.items():
                    if code in _FENCED:
                        logger.info("The marker of %s came too late in %s", ended.id, key)
                    if code in _SETTLED or code in _FENCED:
                        left.discard(key)
            # A partition that is gone needs no marker. One that is only not known needs it, or the
            # marker of the next transaction would end this one too.
            unknown = [key for key in left if not self._cache.has_partition(*key)]
            left.difference_update([key for key in unknown if not self._may_have(key)])
            if left:
                self._runtime.sleep(_RETRY_S)

    def _ask(
        self, ended: Transaction, led: Led, partitions: Iterable[TopicPartition]
    ) -> list[_Waiting]:
        by_leader: dict[Broker, list[TopicPartition]] = {}
        for key in sorted(partitions):
            leader = self._cache.leader_of(key)
            if leader is not None:
                by_leader.setdefault(leader, []).append(key)
        asked = []
        for leader, keys in by_leader.items():
            waiting = _Waiting(_marker(ended, led, keys), keys, self._runtime.event())
            asked.append(waiting)
            self._enqueue(leader, waiting)
        return asked

    def _enqueue(self, leader: Broker, waiting: _Waiting) -> None:
        self._queues.setdefault(leader.id, []).append(waiting)
        if self._senders[leader.id] < _MOST_SENDERS:
            self._senders[leader.id] += 1
            self._tasks.begin(f"markers-to-{leader.id}", self._drain, leader)

    def _drain(self, leader: Broker) -> None:
        """Send what waits for a broker, until nothing does."""
        queue = self._queues[leader.id]
        try:
            while queue:
                sent, queue[:] = queue[:_MOST_MARKERS], queue[_MOST_MARKERS:]
                self._send(leader, sent)
        finally:
            self._senders[leader.id] -= 1

    def _send(self, leader: Broker, sent: list[_Waiting]) -> None:
        request = WriteTxnMarkersRequest([waiting.marker for waiting in sent])
        try:
            answer = self._call(leader, request)
            for waiting, written in zip(sent, answer.markers, strict=True):
                waiting.codes = {
                    TopicPartition(topic.topic, each.partition): each.error
                    for topic in written.topics
                    for each in topic.partitions
                }
        except (OSError, KafkaError, ValueError) as error:
            logger.warning("Broker %d did not take markers: %s", leader.id, error)
            for waiting in sent:
                waiting.codes = dict.fromkeys(waiting.partitions, RequestTimedOutError.code)
        finally:
            for waiting in sent:
                waiting.done.set()

    def _call(self, leader: Broker, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        if leader.id == self._me:
            return self._write_here(request)
        answer: WriteTxnMarkersResponse = self._peers.call(leader, request, _VERSION)
        return answer


def _marker(ended: Transaction, led: Led, partitions: Iterable[TopicPartition]) -> TxnMarker:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    committed = ended.state is PREPARE_COMMIT
    marked = [MarkedTopic(*item) for item in topics.items()]
    return TxnMarker(ended.producer_id, ended.epoch, committed, marked, led.epoch)
