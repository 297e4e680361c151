"""The idempotent producers of a partition: which batch of each comes next. Pure.

Mirrors kafka.log.ProducerStateManager of later releases without transactions. A producer numbers
its batches; the log keeps the last ones of each producer, so that a batch that is sent again is
recognised and not stored twice. The state is rebuilt from snapshots and from the batch headers in
the log behind them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka08.errors import InvalidProducerEpochError, KafkaError, OutOfOrderSequenceError
from kafka08.message.crc import crc32c

NO_PRODUCER = -1
# Clients send at most five requests at once; each may come again.
_KEPT_BATCHES = 5
_SEQUENCES = 1 << 31

_VERSION = 1
_HEAD = struct.Struct(">hIi")  # version, crc of the rest, number of entries
_CRC_END = 6
# Producer id, epoch, last sequence, last offset, last offset delta, timestamp; then the epoch of
# the transaction coordinator and the first offset of an open transaction, both -1 here.
_ENTRY = struct.Struct(">qhiqiqiq")


class CorruptSnapshotError(KafkaError):
    """A snapshot that cannot be read: the log is read from an older one."""


class ProducerBatch(NamedTuple):
    """The header fields of a batch. ``last_delta``: offset and sequence of the last message,
    relative to those of the first."""

    producer_id: int
    epoch: int
    first_sequence: int
    base_offset: int
    last_delta: int
    timestamp: int

    @property
    def last_sequence(self) -> int:
        """-1 for control batches, which have no sequence."""
        if self.first_sequence < 0:
            return -1
        return (self.first_sequence + self.last_delta) % _SEQUENCES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_delta


class ProducerStates:
    """The last batches of each producer, oldest first; all of a producer have one epoch."""

    def __init__(self) -> None:
        self._batches: dict[int, tuple[ProducerBatch, ...]] = {}

    def __len__(self) -> int:
        return len(self._batches)

    def check(self, batches: Iterable[ProducerBatch]) -> ProducerBatch | None:
        """Whether a producer's set may be appended; changes nothing.

        The stored batch if the set is one that was stored already. Raises OutOfOrderSequenceError
        or InvalidProducerEpochError. Base offsets do not matter.
        """
        ahead: dict[int, tuple[ProducerBatch, ...]] = {}
        for batch in batches:
            if batch.producer_id == NO_PRODUCER:
                continue
            known = ahead.get(batch.producer_id) or self._batches.get(batch.producer_id, ())
            stored = _stored(known, batch)
            if stored is not None:
                return stored
            _check_next(known, batch)
            ahead[batch.producer_id] = (batch,)
        return None

    def update(self, batch: ProducerBatch) -> None:
        """A batch is in the log now: appended, replicated, or found there at the start."""
        if batch.producer_id == NO_PRODUCER:
            return
        known = self._batches.get(batch.producer_id, ())
        if known and known[-1].epoch != batch.epoch:
            known = ()
        self._batches[batch.producer_id] = (*known[1 - _KEPT_BATCHES :], batch)

    def truncate(self, end: int) -> bool:
        """Forget batches that end at offset ``end`` or beyond.

        False if this forgets all that is known of a producer, which may have older batches in the
        log: then the state must be rebuilt.
        """
        whole = True
        for producer_id, batches in list(self._batches.items()):
            if batches[-1].last_offset < end:
                continue
            left = tuple(batch for batch in batches if batch.last_offset < end)
            if left:
                self._batches[producer_id] = left
            else:
                del self._batches[producer_id]
                whole = False
        return whole

    def expire(self, before_ms: int) -> int:
        """Forget producers whose last batch has an older timestamp; returns how many."""
        old = [
            producer_id
            for producer_id, batches in self._batches.items()
            if batches[-1].timestamp < before_ms
        ]
        for producer_id in old:
            del self._batches[producer_id]
        return len(old)

    # Snapshots

    def snapshot(self) -> bytes:
        """The last batch of each producer, as a file's content."""
        entries = b"".join(
            _ENTRY.pack(
                last.producer_id,
                last.epoch,
                last.last_sequence,
                last.last_offset,
                last.last_delta,
                last.timestamp,
                -1,
                -1,
            )
            for last in (batches[-1] for batches in self._batches.values())
        )
        rest = len(self._batches).to_bytes(4, "big") + entries
        return _HEAD.pack(_VERSION, crc32c(rest), len(self._batches)) + entries

    @classmethod
    def restore(cls, data: bytes) -> ProducerStates:
        """The state of a snapshot. Raises CorruptSnapshotError."""
        if len(data) < _HEAD.size:
            raise CorruptSnapshotError(f"a snapshot of {len(data)} bytes")
        version, crc, count = _HEAD.unpack_from(data)
        if version != _VERSION or crc != crc32c(data[_CRC_END:]):
            raise CorruptSnapshotError(f"a snapshot of version {version}, or damaged")
        if len(data) != _HEAD.size + count * _ENTRY.size:
            raise CorruptSnapshotError(f"{len(data)} bytes for {count} producers")
        states = cls()
        for entry in _ENTRY.iter_unpack(data[_HEAD.size :]):
            producer_id, epoch, last_sequence, last_offset, delta, timestamp, _, _ = entry
            first = (last_sequence - delta) % _SEQUENCES if last_sequence >= 0 else -1
            states.update(
                ProducerBatch(producer_id, epoch, first, last_offset - delta, delta, timestamp)
            )
        return states

    @property
    def last_batches(self) -> Mapping[int, tuple[ProducerBatch, ...]]:
        """By producer id, oldest first."""
        return self._batches


def _stored(known: tuple[ProducerBatch, ...], batch: ProducerBatch) -> ProducerBatch | None:
    """The stored batch that this one repeats."""
    for stored in known:
        if (stored.epoch, stored.first_sequence, stored.last_delta) == (
            batch.epoch,
            batch.first_sequence,
            batch.last_delta,
        ):
            return stored
    return None


def _check_next(known: tuple[ProducerBatch, ...], batch: ProducerBatch) -> None:
    if not known:
        return
    last = known[-1]
    producer = f"Producer {batch.producer_id}"
    if batch.epoch < last.epoch:
        raise InvalidProducerEpochError(f"{producer} has epoch {last.epoch}, not {batch.epoch}")
    if batch.epoch > last.epoch:
        expected = 0
    elif last.first_sequence < 0:
        return  # control batches alone: the sequence is not known
    else:
        expected = (last.last_sequence + 1) % _SEQUENCES
    if batch.first_sequence != expected:
        raise OutOfOrderSequenceError(
            f"{producer} sent sequence {batch.first_sequence} instead of {expected}"
        )
