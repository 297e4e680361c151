"""The idempotent producers of a partition: which batch of each comes next. Pure.

Mirrors kafka.log.ProducerStateManager of later releases without transactions. A producer numbers
its batches; the log keeps the last ones of each producer, so that a batch that is sent again is
recognised and not stored twice. The state is rebuilt from snapshots and from the batch headers in
the log behind them.

Producers that were not heard of for long are forgotten, by the broker's clock: a producer may send
old timestamps, and must not be forgotten for that while it sends. Only after a restart the times of
its batches are all that is known. The original always goes by those.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kafka08.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    KafkaError,
    OutOfOrderSequenceError,
)
from kafka08.message.crc import crc32c

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


class BatchMetadata(NamedTuple):
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


class _Known(NamedTuple):
    """The last batches of a producer, oldest first and of one epoch, and when it was last heard of
    (ms)."""

    heard_ms: int
    batches: tuple[BatchMetadata, ...]


class ProducerStates:
    """The last batches of each producer."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def check(self, batch: BatchMetadata) -> BatchMetadata | None:
        """Whether a producer's batch may be appended; changes nothing.

        The stored batch if it is one that was stored already. Raises OutOfOrderSequenceError,
        InvalidProducerEpochError, or InvalidRecordError for one without epoch or sequence. Its base
        offset does not matter.
        """
        if batch.epoch < 0 or batch.first_sequence < 0:
            raise InvalidRecordError(
                f"A batch of producer {batch.producer_id} has epoch {batch.epoch} and "
                f"sequence {batch.first_sequence}"
            )
        known = self._known.get(batch.producer_id)
        if known is None:
            return None
        stored = _stored(known.batches, batch)
        if stored is None:
            _check_next(known.batches[-1], batch)
        return stored

    def update(self, batch: BatchMetadata, heard_ms: int) -> None:
        """A batch is in the log now: appended, replicated, or found there at the start."""
        known = self._known.get(batch.producer_id)
        batches: tuple[BatchMetadata, ...] = () if known is None else known.batches
        if batches and batches[-1].epoch != batch.epoch:
            batches = ()
        if not batches or batch.first_sequence >= 0:
            batches = (*batches[1 - _KEPT_BATCHES :], batch)
        self._known[batch.producer_id] = _Known(heard_ms, batches)

    def truncate(self, end: int) -> bool:
        """Forget batches that end at offset ``end`` or beyond.

        False if this forgets all that is known of a producer, which may have older batches in the
        log: then the state must be rebuilt.
        """
        whole = True
        for producer_id, (heard_ms, batches) in list(self._known.items()):
            if batches[-1].last_offset < end:
                continue
            left = tuple(batch for batch in batches if batch.last_offset < end)
            if left:
                self._known[producer_id] = _Known(heard_ms, left)
            else:
                del self._known[producer_id]
                whole = False
        return whole

    def expire(self, before_ms: int) -> int:
        """Forget producers that were last heard of before that time; returns how many."""
        left = {
            producer_id: known
            for producer_id, known in self._known.items()
            if known.heard_ms >= before_ms
        }
        forgotten = len(self._known) - len(left)
        if forgotten:
            self._known = left  # deletions alone would not give a dict's memory back
        return forgotten

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
            for last in (known.batches[-1] for known in self._known.values())
        )
        rest = len(self._known).to_bytes(4, "big") + entries
        return _HEAD.pack(_VERSION, crc32c(rest), len(self._known)) + entries

    @classmethod
    def restore(cls, data: bytes, now: int) -> ProducerStates:
        """The state of a snapshot: producers were heard of at the times of their batches, and
        ``now`` (ms) at the latest. Raises CorruptSnapshotError."""
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
            batch = BatchMetadata(producer_id, epoch, first, last_offset - delta, delta, timestamp)
            states.update(batch, min(timestamp, now))
        return states

    @property
    def last_offsets(self) -> list[int]:
        """Those of the last batch of each producer."""
        return [known.batches[-1].last_offset for known in self._known.values()]


def _stored(known: tuple[BatchMetadata, ...], batch: BatchMetadata) -> BatchMetadata | None:
    """The stored batch that this one repeats."""
    for stored in known:
        if (stored.epoch, stored.first_sequence, stored.last_delta) == (
            batch.epoch,
            batch.first_sequence,
            batch.last_delta,
        ):
            return stored
    return None


def _check_next(last: BatchMetadata, batch: BatchMetadata) -> None:
    """Whether a batch may follow the last one of its producer."""
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
