"""The producers of a partition: which batch of each comes next, and its open transaction. Pure.

Mirrors kafka.log.ProducerStateManager of later releases. A producer numbers its batches; the log
keeps the last ones of each producer, so that a batch that is sent again is recognised and not
stored twice. A transaction begins with the first transactional batch of a producer and ends with a
marker. The state is rebuilt from snapshots and from the batch headers in the log behind them.

Producers that were not heard of for long are forgotten, by the broker's clock: a producer may send
old timestamps, and must not be forgotten for that while it sends. Only after a restart the times of
its batches are all that is known. The original always goes by those. A producer with an open
transaction is not forgotten.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from operator import itemgetter
from typing import Final, NamedTuple

from kafka08.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTxnStateError,
    KafkaError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kafka08.message.crc import crc32c
from kafka08.message.markers import ABORT, COMMIT, IN_TRANSACTION, NO_TRANSACTION, OTHER_CONTROL
from kafka08.named import named

# Clients send at most five requests at once; each may come again.
_KEPT_BATCHES = 5
_SEQUENCES = 1 << 31

_VERSION = 1
_HEAD = struct.Struct(">hIi")  # version, crc of the rest, number of entries
_CRC_END = 6
# Producer id, epoch, last sequence, last offset, last offset delta, timestamp, the epoch of the
# transaction coordinator that wrote the last marker, the first offset of an open transaction.
_ENTRY = struct.Struct(">qhiqiqiq")

NONE: Final = -1
"""In place of an offset, an epoch or a time: there is none."""


class Origin(IntEnum):
    """The one that appends a producer's batch to a leader's log: a client, whose sequences are
    checked, or a coordinator, which has made the batch itself."""

    CLIENT = 0
    COORDINATOR = 1


CLIENT: Final = Origin.CLIENT
COORDINATOR: Final = Origin.COORDINATOR


class CorruptSnapshotError(KafkaError):
    """A snapshot that cannot be read: the log is read from an older one."""


class BatchMetadata(NamedTuple):
    """The header fields of a batch. ``last_delta``: offset and sequence of the last message,
    relative to those of the first. ``part``: what it is in a transaction (``message.markers``);
    ``coordinator_epoch``: that of a marker."""

    producer_id: int
    epoch: int
    first_sequence: int
    base_offset: int
    last_delta: int
    timestamp: int
    part: int = NO_TRANSACTION
    coordinator_epoch: int = NONE

    @property
    def last_sequence(self) -> int:
        """-1 for control batches, which have no sequence."""
        return _last_sequence(self)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_delta


class ProducerState(NamedTuple):
    """A producer's ``epoch``, its last ``batches`` of that epoch, oldest first, and when it was
    last heard of (ms). ``timestamp`` is that of its last batch or marker, ``coordinator_epoch``
    that of its last marker. ``transaction_start``: the first offset of its open transaction."""

    epoch: int
    heard_ms: int
    timestamp: int
    batches: tuple[BatchMetadata, ...] = ()
    coordinator_epoch: int = NONE
    transaction_start: int = NONE

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NONE


class CompletedTransaction(NamedTuple):
    """A transaction that wrote from ``first_offset`` on; ``last_offset`` is that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerStates:
    """The state of each producer. ``open``: the first offsets of open transactions by producer, in
    rising order. ``transactional_end``: no batch of a transaction is at that offset or beyond."""

    def __init__(self) -> None:
        self._known: dict[int, ProducerState] = {}
        self.open: dict[int, int] = {}
        self.transactional_end = 0

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, producer_id: int) -> ProducerState:
        return self._known[producer_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._known)

    def check(self, batch: BatchMetadata, origin: Origin = CLIENT) -> BatchMetadata | None:
        """Whether a producer's batch may be appended; changes nothing.

        The stored batch if it is one that was stored already. Raises OutOfOrderSequenceError,
        InvalidProducerEpochError, InvalidTxnStateError for a batch outside of the transaction that
        its producer has open, TransactionCoordinatorFencedError for a marker of a former
        coordinator, or InvalidRecordError for a batch without epoch or sequence. Its base offset
        does not matter.
        """
        if batch.epoch < 0 or (batch.first_sequence < 0 and origin is CLIENT):
            raise InvalidRecordError(
                f"A batch of producer {batch.producer_id} has epoch {batch.epoch} and "
                f"sequence {batch.first_sequence}"
            )
        known = self._known.get(batch.producer_id)
        if known is None:
            return None
        if origin is COORDINATOR:
            _check_epoch(known, batch)
            if batch.coordinator_epoch < known.coordinator_epoch and batch.part != IN_TRANSACTION:
                raise TransactionCoordinatorFencedError(
                    f"A marker of producer {batch.producer_id} has coordinator epoch "
                    f"{batch.coordinator_epoch}, the last one had {known.coordinator_epoch}"
                )
            return None
        stored = _stored(known.batches, batch)
        if stored is not None and batch.part == IN_TRANSACTION:
            # Not if its transaction has ended. librdkafka aborts without knowing whether a batch
            # was stored, and gives its sequences to the next transaction.
            is_open = 0 <= known.transaction_start <= stored.base_offset
            stored = stored if is_open else None
        if stored is None:
            _check_epoch(known, batch)
            _check_sequence(known, batch)
            if known.transaction_start >= 0 and batch.part != IN_TRANSACTION:
                raise InvalidTxnStateError(
                    f"Producer {batch.producer_id} has a transaction open and sent a batch that is "
                    "not in it"
                )
        return stored

    def update(self, batch: BatchMetadata, heard_ms: int) -> CompletedTransaction | None:
        """A batch is in the log now: appended, replicated, or found there at the start. Returns the
        transaction that it completes."""
        known = self._known.get(batch.producer_id)
        if known is None or known.epoch != batch.epoch:
            before, known = known, ProducerState(batch.epoch, heard_ms, batch.timestamp)
            if before is not None:
                known = known._replace(
                    coordinator_epoch=before.coordinator_epoch,
                    transaction_start=before.transaction_start,
                )
        completed = None
        start = known.transaction_start
        batches, coordinator_epoch = known.batches, known.coordinator_epoch
        if batch.part in (ABORT, COMMIT):
            coordinator_epoch = batch.coordinator_epoch
            if start >= 0:
                ends, aborted = batch.last_offset, batch.part == ABORT
                completed = CompletedTransaction(batch.producer_id, start, ends, aborted)
                del self.open[batch.producer_id]
                start = NONE
        elif batch.part != OTHER_CONTROL:
            batches = (*batches[1 - _KEPT_BATCHES :], batch)
            if batch.part == IN_TRANSACTION and start < 0:
                start = self.open[batch.producer_id] = batch.base_offset
        if batch.part != NO_TRANSACTION:
            self.transactional_end = batch.base_offset + batch.last_delta + 1
        fields = batch.epoch, heard_ms, batch.timestamp, batches, coordinator_epoch, start
        self._known[batch.producer_id] = named(ProducerState, fields)
        return completed

    def truncate(self, end: int) -> bool:
        """Forget batches that end at offset ``end`` or beyond.

        False if that cannot be done without reading the log: it forgets all that is known of a
        producer, which may have older batches there, or a transaction began or ended behind
        ``end``. Then the state must be rebuilt.
        """
        if self.transactional_end > end:
            return False
        whole = True
        for producer_id, known in list(self._known.items()):
            batches = known.batches
            if not batches or batches[-1].last_offset < end:
                continue
            left = tuple(batch for batch in batches if batch.last_offset < end)
            if left:
                self._known[producer_id] = known._replace(batches=left)
            else:
                del self._known[producer_id]
                whole = False
        return whole

    def expire(self, before_ms: int) -> int:
        """Forget producers that were last heard of before that time; returns how many."""
        left = {
            producer_id: known
            for producer_id, known in self._known.items()
            if known.heard_ms >= before_ms or known.transaction_start >= 0
        }
        forgotten = len(self._known) - len(left)
        if forgotten:
            self._known = left  # deletions alone would not give a dict's memory back
        return forgotten

    # Snapshots

    def snapshot(self) -> bytes:
        """The last batch of each producer, as a file's content."""
        entries = b"".join(_entry(id_, known) for id_, known in self._known.items())
        rest = len(self._known).to_bytes(4, "big") + entries
        return _HEAD.pack(_VERSION, crc32c(rest), len(self._known)) + entries

    @classmethod
    def restore(cls, data: bytes, now: int, end: int = 0) -> ProducerStates:
        """The state of a snapshot at the offset ``end``: producers were heard of at the times of
        their batches, and ``now`` (ms) at the latest. Raises CorruptSnapshotError."""
        if len(data) < _HEAD.size:
            raise CorruptSnapshotError(f"a snapshot of {len(data)} bytes")
        version, crc, count = _HEAD.unpack_from(data)
        if version != _VERSION or crc != crc32c(data[_CRC_END:]):
            raise CorruptSnapshotError(f"a snapshot of version {version}, or damaged")
        if len(data) != _HEAD.size + count * _ENTRY.size:
            raise CorruptSnapshotError(f"{len(data)} bytes for {count} producers")
        states = cls()
        for entry in _ENTRY.iter_unpack(data[_HEAD.size :]):
            states._restore(entry, now)
        states.open = dict(sorted(states.open.items(), key=itemgetter(1)))
        if any(each.coordinator_epoch >= 0 for each in states._known.values()) or states.open:
            states.transactional_end = end
        return states

    def _restore(self, entry: tuple[int, int, int, int, int, int, int, int], now: int) -> None:
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, start = entry
        batches: tuple[BatchMetadata, ...] = ()
        if offset >= 0:
            first = (sequence - delta) % _SEQUENCES if sequence >= 0 else NONE
            batches = (BatchMetadata(producer_id, epoch, first, offset - delta, delta, timestamp),)
        heard_ms = min(timestamp, now)
        self._known[producer_id] = ProducerState(
            epoch, heard_ms, timestamp, batches, coordinator_epoch, start
        )
        if start >= 0:
            self.open[producer_id] = start

    @property
    def last_offsets(self) -> list[int]:
        """Those of the last batch of each producer."""
        return [known.batches[-1].last_offset for known in self._known.values() if known.batches]

    @property
    def epochs_alone(self) -> list[tuple[int, int]]:
        """(id, epoch) of producers of which there are only markers."""
        return [(id_, known.epoch) for id_, known in self._known.items() if not known.batches]


def _entry(producer_id: int, known: ProducerState) -> bytes:
    """Of a snapshot. A producer of which there are only markers has the offset -1."""
    sequence, offset, delta = NONE, NONE, 0
    if known.batches:
        last = known.batches[-1]
        sequence, offset, delta = last.last_sequence, last.last_offset, last.last_delta
    head = producer_id, known.epoch, sequence, offset, delta, known.timestamp
    return _ENTRY.pack(*head, known.coordinator_epoch, known.transaction_start)


def _last_sequence(batch: BatchMetadata) -> int:
    if batch.first_sequence < 0:
        return NONE
    return (batch.first_sequence + batch.last_delta) % _SEQUENCES


def _stored(known: tuple[BatchMetadata, ...], batch: BatchMetadata) -> BatchMetadata | None:
    """The stored batch that this one repeats."""
    sequence = batch.first_sequence
    for stored in known:
        if (
            stored.first_sequence == sequence
            and stored.epoch == batch.epoch
            and stored.last_delta == batch.last_delta
        ):
            return stored
    return None


def _check_epoch(known: ProducerState, batch: BatchMetadata) -> None:
    if batch.epoch < known.epoch:
        raise InvalidProducerEpochError(
            f"Producer {batch.producer_id} has epoch {known.epoch}, not {batch.epoch}"
        )


def _check_sequence(known: ProducerState, batch: BatchMetadata) -> None:
    """Whether a batch may follow the last one of its producer. A new epoch begins with 0, also
    after a marker that brought it."""
    expected = 0
    if batch.epoch == known.epoch and known.batches:
        expected = (_last_sequence(known.batches[-1]) + 1) % _SEQUENCES
    if batch.first_sequence != expected:
        raise OutOfOrderSequenceError(
            f"Producer {batch.producer_id} sent sequence {batch.first_sequence} instead of "
            f"{expected}"
        )
