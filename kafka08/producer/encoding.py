"""Encodes drained batches as produce requests: message sets of format 0, or record batches.

The bytes of the sets are those of ``sets.encode_set``, made faster. If it was built,
``kafka08._native.encode`` writes the entries. ``transactions`` builds the requests of producers
that want to know what became of the batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from kafka08._native import load
from kafka08.client.requests import produce_request
from kafka08.message.compression import NONE, compress
from kafka08.message.entry import encode_entry
from kafka08.message.record_sets import NOBODY, Sender, encode_records, put_bytes, put_varint
from kafka08.producer.accumulator import PartitionBatches
from kafka08.producer.batch import ProducerBatch
from kafka08.producer.errors import SerializationError
from kafka08.producer.kafka_config import KafkaProducerConfig, parse_acks
from kafka08.protocol.schemas import ProduceRequest

Fields = Sequence[bytes | None]


class Requests:
    """With api.versions.request sets are record batches."""

    def __init__(self, config: KafkaProducerConfig) -> None:
        self.acks = parse_acks(config.acks)
        self._timeout_ms = config.timeout_ms
        self._set_of = record_batch if config.api_versions_request else _plain_sets

    def build(self, parts: Sequence[PartitionBatches]) -> ProduceRequest:
        """Called without the lock of the accumulator."""
        sets = {part.queue.tp: self._encode(part) for part in parts}
        return produce_request(sets, self.acks, self._timeout_ms)

    def _encode(self, part: PartitionBatches) -> bytes:
        queue, batches = part
        return self._set_of([batch for batch in batches if not batch.done], queue.codec)

    def stored(self, part: PartitionBatches) -> None:
        """Called with the lock before the batches of a request end well."""

    def failed(self, batches: Iterable[ProducerBatch]) -> list[ProducerBatch]:
        """Called with the lock after batches failed. Returns others that it made fail."""
        return []


def _plain_sets(batches: list[ProducerBatch], codec: int) -> bytes:
    """A set for each batch, back to back."""
    sets = [encode_batch(batch.values, batch.keys, codec) for batch in batches]
    return sets[0] if len(sets) == 1 else b"".join(sets)


def record_batch(batches: list[ProducerBatch], codec: int, sender: Sender = NOBODY) -> bytes:
    """One record batch with the records of all batches."""
    if not batches:
        return b""
    first, *others = batches
    if not others:
        return encode_records(first.values, first.keys, first.times, first.headers, codec, sender)
    return encode_records(
        [value for batch in batches for value in batch.values],
        _chained([(batch.keys, len(batch.values)) for batch in batches]),
        [time for batch in batches for time in batch.times],
        _chained([(batch.headers, len(batch.values)) for batch in batches]),
        codec,
        sender,
    )


def _chained(columns: list[tuple[list[bytes | None] | None, int]]) -> list[bytes | None] | None:
    """The cells of all columns with this many rows; a column without any cell is None."""
    if all(cells is None for cells, _ in columns):
        return None
    return [cell for cells, rows in columns for cell in cells or [None] * rows]


def encode_batch(values: Fields, keys: Fields | None, codec: int = NONE) -> bytes:
    """The set; ``keys`` None means that no record has one. With a codec, one wrapper.

    Plain entries all have the offset 0, since the leader numbers them.
    """
    if codec == NONE:
        return entries(values, keys, False)
    inner = entries(values, keys, True)
    return encode_entry(None, compress(codec, inner), len(values) - 1, codec)


def plain_entries(values: Fields, keys: Fields | None, numbered: bool) -> bytes:
    """The entries back to back, with offsets from 0 on if ``numbered``, else all 0."""
    offsets = range(len(values)) if numbered else repeat(0)
    pairs = zip(repeat(None) if keys is None else keys, values, offsets)  # noqa: B905  (endless)
    return b"".join([encode_entry(key, value, offset) for key, value, offset in pairs])


entries = plain_entries
native = load("encode")
if native is not None:
    entries = native.entries


def encode_headers(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    """The headers of one record with their count. Raises SerializationError."""
    found = list(headers)
    out = bytearray()
    put_varint(out, len(found))
    for name, value in found:
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes)):
            raise SerializationError(
                f"A header must be a name (str) and a value (bytes or None), not "
                f"({type(name).__name__}, {type(value).__name__})"
            )
        put_bytes(out, name.encode())
        put_bytes(out, value)
    return bytes(out)
