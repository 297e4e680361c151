"""Batches say which transactions there are."""

from __future__ import annotations

from kafka08.message.batch import TRANSACTIONAL
from kafka08.message.entry import OFFSET
from kafka08.message.markers import ABORT, COMMIT, encode_marker
from kafka08.message.record_sets import Sender, encode_records
from tests.simulation.log_transactions import Aborted, LogTransactions


def batch(offset: int, producer: int, count: int = 1, attributes: int = TRANSACTIONAL) -> bytes:
    sender = Sender(producer, 0, 0, attributes)
    return at(offset, encode_records([b"v"] * count, None, [0] * count, None, sender=sender))


def marker(offset: int, producer: int, kind: int) -> bytes:
    return at(offset, encode_marker(producer, 0, kind, 0, 0))


def at(offset: int, data: bytes) -> bytes:
    numbered = bytearray(data)
    OFFSET.pack_into(numbered, 0, offset)
    return bytes(numbered)


def test_a_transaction_ends_with_a_marker() -> None:
    entries = [batch(0, 1, 3), batch(3, 2), batch(4, 3), marker(5, 1, COMMIT), marker(6, 2, ABORT)]
    found = LogTransactions(entries)
    assert found.open == {3: 4}
    assert found.aborted == [Aborted(2, 3, 6)]
    assert found.dropped == {3}


def test_a_marker_alone_ends_nothing() -> None:
    found = LogTransactions([batch(0, 1, attributes=0), marker(1, 1, ABORT)])
    assert (found.open, found.aborted) == ({}, [])


def test_a_producer_has_one_transaction_after_the_other() -> None:
    entries = [batch(0, 1), batch(1, 1, 2), marker(3, 1, ABORT), batch(4, 1), marker(5, 1, ABORT)]
    found = LogTransactions(entries)
    assert found.aborted == [Aborted(1, 0, 3), Aborted(1, 4, 5)]
    assert found.dropped == {0, 2, 4}
