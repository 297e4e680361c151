"""Coordinates the transactions of producers (kafka.coordinator.transaction.TransactionCoordinator).

A producer registers its transactional id, names each partition before it writes there, and ends the
transaction. Its end is decided when the record of that is stored; the markers follow, on a task of
its own. A request that comes meanwhile waits for a moment: most are written by then, and the client
need not ask again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from kafka08.common import TopicPartition
from kafka08.errors import NO_ERROR, LaterCode
from kafka08.runtime import Runtime, Tasks
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.server.transactions.records import NO_EPOCH, Transaction
from kafka08.server.transactions.states import (
    COMPLETED,
    EMPTY,
    IDLE,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    TransactionState,
)
from kafka08.server.transactions.store import Entry, Led, TransactionStore
from kafka08.settings.broker import BrokerConfig

logger = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")

_LAST_EPOCH = 0x7FFF
_PATIENCE_S = 1.0
_RETRY_S = 0.5


class Producer(NamedTuple):
    """An id and an epoch; both -1 for a producer that has none yet."""

    id: int
    epoch: int


NOBODY = Producer(-1, NO_EPOCH)

# Tells the partitions of a transaction how it has ended: returns once all know, or ``led`` is over.
WriteMarkers = Callable[[Transaction, Led], None]


class TransactionCoordinator:
    """``new_id`` takes an id for a producer, and may raise ZkError. ``unfinished``: the ids
    of which all markers are written, and not yet that they are."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        replicas: ReplicaManager,
        new_id: Callable[[], int],
        write_markers: WriteMarkers,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._new_id = new_id
        self._write_markers = write_markers
        self._tasks = Tasks(runtime)
        self.unfinished: set[str] = set()
        self.store = TransactionStore(config, runtime, replicas, self._taken_over)

    def stop(self, timeout: float) -> None:
        """Let go of all ids, and wait for at most ``timeout`` seconds for what is under way."""
        self.store.stop()
        self._tasks.join(timeout)

    # Requests

    def init_producer(
        self, id_: str, timeout_ms: int, expected: Producer = NOBODY
    ) -> tuple[int, Producer]:
        """The wire code, and the producer that may use the id from now on. A transaction of a
        former one is aborted. ``expected``: the same producer, which wants another epoch after an
        error."""
        if not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            return LaterCode.INVALID_TRANSACTION_TIMEOUT, NOBODY
        led = self.store.led(id_)
        if isinstance(led, int):
            return led, NOBODY
        entry = self.store.entry(led, Transaction(id_, -1, NO_EPOCH, timeout_ms))
        try:
            return self._init_producer(led, entry, timeout_ms, expected)
        finally:
            self.store.drop_if_new(led, entry)

    def _init_producer(
        self, led: Led, entry: Entry, timeout_ms: int, expected: Producer
    ) -> tuple[int, Producer]:
        self._settle(led, entry)
        if entry.current.state is ONGOING and not entry.pending:
            code = self._fence(led, entry, expected)
            if code:
                return code, NOBODY
            self._settle(led, entry)
        if entry.pending or entry.current.state in PREPARED:
            return LaterCode.CONCURRENT_TRANSACTIONS, NOBODY
        code, producer = self._next_producer(entry, expected)
        if code:
            return code, NOBODY
        new = self._registered(entry.current, producer, timeout_ms, expected)
        if new.producer_id < 0:
            entry.pending = EMPTY  # others wait while ZooKeeper is asked
            try:
                new = new._replace(producer_id=self._new_id(), epoch=0)
            finally:
                entry.pending = None
        code = self.store.write(led, entry, new)
        return code, Producer(new.producer_id, new.epoch) if not code else NOBODY

    def _fence(self, led: Led, entry: Entry, expected: Producer) -> int:
        """Abort the transaction of a former producer, with a higher epoch."""
        current = entry.current
        if expected not in (NOBODY, (current.producer_id, current.epoch)):
            return LaterCode.PRODUCER_FENCED
        epoch = min(current.epoch + 1, _LAST_EPOCH)
        new = current._replace(epoch=epoch)
        if expected != NOBODY:  # it goes on with the new epoch
            new = new._replace(last_producer_id=expected.id, last_epoch=expected.epoch)
        return self._decide(led, entry, new, PREPARE_ABORT)

    @staticmethod
    def _next_producer(entry: Entry, expected: Producer) -> tuple[int, Producer]:
        """The wire code, and the next producer of an idle id; the id -1 for a new one."""
        current = entry.current
        if not _may_continue(current, expected):
            return LaterCode.PRODUCER_FENCED, NOBODY
        has_expected = expected != NOBODY
        if current.is_exhausted and (not has_expected or expected.epoch == current.epoch):
            return NO_ERROR, Producer(-1, 0)
        if current.epoch == NO_EPOCH:
            return NO_ERROR, Producer(current.producer_id, 0)
        if not has_expected or expected.epoch == current.epoch:
            return NO_ERROR, Producer(current.producer_id, current.epoch + 1)
        if expected.epoch == current.last_epoch:  # it asked before, and did not get the answer
            return NO_ERROR, Producer(current.producer_id, current.epoch)
        return LaterCode.PRODUCER_FENCED, NOBODY

    def _registered(
        self, current: Transaction, producer: Producer, timeout_ms: int, expected: Producer
    ) -> Transaction:
        is_asked_again = producer == (current.producer_id, current.epoch)
        last = (current.last_producer_id, current.last_epoch) if is_asked_again else (-1, NO_EPOCH)
        if expected != NOBODY and not is_asked_again:
            last = current.producer_id, current.epoch
        return Transaction(
            current.id,
            *producer,
            timeout_ms,
            update_ms=self._runtime.clock.millis(),
            last_producer_id=last[0],
            last_epoch=last[1],
        )

    def add_partitions(
        self, id_: str, producer: Producer, partitions: Iterable[TopicPartition]
    ) -> int:
        """The producer's transaction, which begins with that, includes these partitions."""
        found = self._of(id_, producer)
        if isinstance(found, int):
            return found
        led, entry = found
        self._settle(led, entry)
        code = _check(entry.current, producer)
        if code:
            return code
        if entry.pending or entry.current.state in PREPARED:
            return LaterCode.CONCURRENT_TRANSACTIONS
        current, now = entry.current, self._runtime.clock.millis()
        all_ = current.partitions.union(partitions)
        begun = current.state is ONGOING
        if begun and all_ == current.partitions:
            return NO_ERROR
        start_ms = current.start_ms if begun else now
        new = current._replace(state=ONGOING, partitions=all_, update_ms=now, start_ms=start_ms)
        return self.store.write(led, entry, new)

    def verify(
        self, id_: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> int | dict[TopicPartition, int]:
        """Whether the producer's open transaction includes these partitions: a code for each, or
        for all."""
        found = self._of(id_, producer)
        if isinstance(found, int):
            return found
        current = found[1].current
        code = _check(current, producer)
        if code:
            return code
        if current.state in PREPARED:
            return LaterCode.CONCURRENT_TRANSACTIONS
        has = current.partitions if current.state is ONGOING else ()
        return {
            key: NO_ERROR if key in has else int(LaterCode.INVALID_TXN_STATE) for key in partitions
        }

    def end(self, id_: str, producer: Producer, *, commit: bool) -> int:
        """Decide how the producer's transaction ends. The markers follow."""
        found = self._of(id_, producer)
        if isinstance(found, int):
            return found
        led, entry = found
        self._settle(led, entry)
        code = _check(entry.current, producer)
        if code:
            return code
        if entry.pending:
            return LaterCode.CONCURRENT_TRANSACTIONS
        current = entry.current
        state = PREPARE_COMMIT if commit else PREPARE_ABORT
        if current.state is ONGOING:
            return self._decide(led, entry, current, state)
        if current.state is COMPLETED[state]:
            return NO_ERROR
        if current.state is state:
            return LaterCode.CONCURRENT_TRANSACTIONS
        return LaterCode.INVALID_TXN_STATE

    def _of(self, id_: str, producer: Producer) -> tuple[Led, Entry] | int:
        """The entry of an id that a producer uses, or a wire code."""
        if not id_:
            return LaterCode.INVALID_REQUEST
        led = self.store.led(id_)
        if isinstance(led, int):
            return led
        entry = led.entries.get(id_)
        if entry is None or entry.current.producer_id != producer.id:
            return LaterCode.INVALID_PRODUCER_ID_MAPPING
        return led, entry

    def _settle(self, led: Led, entry: Entry) -> None:
        """Wait until the id takes changes, for a moment."""
        clock = self._runtime.clock
        until = clock.monotonic() + _PATIENCE_S
        while entry.pending or entry.current.state in PREPARED:
            left = until - clock.monotonic()
            if led.is_over or left <= 0:
                return
            entry.changed.wait(left)

    # The end of transactions

    def _decide(self, led: Led, entry: Entry, current: Transaction, state: TransactionState) -> int:
        new = current._replace(state=state, update_ms=self._runtime.clock.millis())
        code = self.store.write(led, entry, new)
        if not code:
            self._tasks.begin(f"end-of-{new.id}", self._complete, led, entry)
        return code

    def _taken_over(self, led: Led) -> None:
        """Go on where the former coordinator has ended."""
        for entry in led.entries.values():
            if entry.current.state in PREPARED:
                self._tasks.begin(f"end-of-{entry.current.id}", self._complete, led, entry)

    def _complete(self, led: Led, entry: Entry) -> None:
        """Write the markers of a decided transaction, and then that they are written."""
        decided = entry.current
        self._write_markers(decided, led)
        self.unfinished.add(decided.id)
        try:
            self._store_end(decided, led, entry)
        finally:
            self.unfinished.discard(decided.id)

    def _store_end(self, decided: Transaction, led: Led, entry: Entry) -> None:
        while not led.is_over:
            new = decided._replace(
                state=COMPLETED[decided.state],
                partitions=frozenset(),
                update_ms=self._runtime.clock.millis(),
            )
            code = self.store.write(led, entry, new)
            if not code:
                return
            logger.warning("The end of %s could not be stored (code %d)", decided.id, code)
            self._runtime.sleep(_RETRY_S)

    # Upkeep

    def abort_late(self) -> None:
        """Abort the transactions that take longer than their producers have announced. The epoch
        rises, so that nothing that these still send counts."""
        for led, entry in self.store.all():
            if self._is_late(entry):
                self._tasks.begin(f"late-{entry.current.id}", self._abort_late, led, entry)

    def _is_late(self, entry: Entry) -> bool:
        current = entry.current
        return (
            current.state is ONGOING
            and not entry.pending
            and current.start_ms + current.timeout_ms < self._runtime.clock.millis()
        )

    def _abort_late(self, led: Led, entry: Entry) -> None:
        if self._is_late(entry):
            current = entry.current
            logger.info("Aborting the transaction of %s after its timeout", current.id)
            epoch = min(current.epoch + 1, _LAST_EPOCH)
            self._decide(led, entry, current._replace(epoch=epoch), PREPARE_ABORT)

    def expire(self) -> None:
        """Forget the ids that were not used for transactional.id.expiration.ms."""
        before = self._runtime.clock.millis() - self._config.transactional_id_expiration_ms
        for led, entry in self.store.all():
            current = entry.current
            if current.state in IDLE and not entry.pending and current.update_ms <= before:
                self.store.remove(led, entry)


def _check(current: Transaction, producer: Producer) -> int:
    """Whether a producer may still use its id."""
    if current.producer_id != producer.id:
        return LaterCode.INVALID_PRODUCER_ID_MAPPING
    return NO_ERROR if current.epoch == producer.epoch else LaterCode.PRODUCER_FENCED


def _may_continue(current: Transaction, expected: Producer) -> bool:
    """Whether a producer that names the one it was may go on with the id."""
    if expected == NOBODY or current.epoch == NO_EPOCH or expected.id == current.producer_id:
        return True
    return expected.id == current.last_producer_id and expected.epoch >= _LAST_EPOCH - 1
