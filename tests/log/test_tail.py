"""When work ahead of consumers is worth it."""

from __future__ import annotations

from kafka08.log.tail import AHEAD_BYTES, TailReaders


def test_a_log_that_nobody_reads_gets_one_helping() -> None:
    readers = TailReaders(100)
    assert readers.are_near
    readers.prepared(AHEAD_BYTES - 1)
    assert readers.are_near
    readers.prepared(1)
    assert not readers.are_near
    readers.read_at(99, 5000)  # from before what was prepared
    assert not readers.are_near


def test_a_consumer_that_has_come_to_where_it_began_brings_the_next() -> None:
    readers = TailReaders(100)
    readers.prepared(AHEAD_BYTES)
    readers.read_at(100, 5000)
    assert readers.are_near
    readers.prepared(AHEAD_BYTES)
    readers.read_at(4999, 9000)
    assert not readers.are_near
    readers.read_at(9000, 9000)
    assert readers.are_near


def test_after_a_truncation_consumers_need_not_pass_the_old_end() -> None:
    readers = TailReaders(100)
    readers.read_at(100, 5000)
    readers.prepared(AHEAD_BYTES)
    readers.cut_at(6000)
    readers.read_at(4999, 5000)
    assert not readers.are_near
    readers.cut_at(200)
    readers.read_at(200, 200)
    assert readers.are_near
