"""A log with transactions, as its leader has it."""

from __future__ import annotations

from kafka08.common import TopicPartition
from kafka08.message.markers import ABORT, COMMIT, encode_marker
from kafka08.message.sets import encode_set
from tests.fakes.cluster import FakeCluster
from tests.message.batches import batch, simple


def written(producer: int, base: int, *values: bytes, attributes: int = 0x10) -> bytes:
    """A producer's batch at ``base``, of a transaction if the attributes say so."""
    fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    return batch(simple(*values), base, attributes=attributes, **fields)


def marker(producer: int, base: int, kind: int) -> bytes:
    return base.to_bytes(8, "big") + encode_marker(producer, 0, kind, 0, 0)[8:]


STORED = [
    encode_set([(None, b"old")]),
    written(7, 1, b"aborted"),
    written(8, 2, b"committed", b"too"),
    marker(7, 4, ABORT),
    marker(8, 5, COMMIT),
    written(7, 6, b"last"),
    marker(7, 7, COMMIT),
    written(7, 8, b"again"),
    marker(7, 9, ABORT),
    written(8, 10, b"open"),
    encode_set([(None, b"new")], 0, 11),
]
COMMITTED = [(0, b"old"), (2, b"committed"), (3, b"too"), (6, b"last")]
STABLE, END = 10, 12


def fill(cluster: FakeCluster, tp: TopicPartition) -> None:
    """COMMITTED is what readers of committed transactions see; they wait at STABLE."""
    cluster.store(tp, b"".join(STORED))
    cluster.stable[tp], cluster.aborted[tp] = STABLE, [(7, 1, 4), (7, 8, 9)]
