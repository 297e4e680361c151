"""Offsets in transactions: pending until the marker, unstable meanwhile, loaded by leaders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.groups.records import Committed, GroupPartition
from kafka08.protocol import transaction_schemas as t
from kafka08.server.groups.pending_offsets import PendingOffsets, Stored
from tests.server.transactions.support import TransactionRig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TransactionRig]:
    rig = TransactionRig(tmp_path)
    yield rig
    rig.close()


@pytest.mark.scenario("transactions-38", "transactions-39", "transactions-40")
@pytest.mark.parametrize("committed", [True, False])
def test_offsets_count_once_their_transaction_is_committed(
    rig: TransactionRig, committed: bool
) -> None:
    rig.commit_outside(5)
    producer = rig.begin()
    assert rig.add_offsets(producer) == 0
    assert rig.commit_offset(producer, 9) == 0
    assert rig.offset() == (5, 0) and rig.offset(stable=True) == (-1, 88)
    assert rig.end(producer, commit=committed) == 0
    rig.run_tasks()
    assert rig.offset() == rig.offset(stable=True) == (9 if committed else 5, 0)


@pytest.mark.parametrize("committed", [True, False])
def test_the_next_coordinator_knows_what_is_pending(rig: TransactionRig, committed: bool) -> None:
    rig.commit_outside(5)
    producer = rig.begin()
    rig.add_offsets(producer)
    rig.commit_offset(producer, 9)
    rig.follow(OFFSETS_TOPIC, 0)
    rig.lead(OFFSETS_TOPIC, 0)
    assert rig.commit_offset(producer, 9) == 14
    rig.run_tasks()
    assert rig.offset() == (5, 0) and rig.offset(stable=True) == (-1, 88)
    rig.end(producer, commit=committed)
    rig.run_tasks()
    assert rig.offset(stable=True) == (9 if committed else 5, 0)
    rig.follow(OFFSETS_TOPIC, 0)
    rig.lead(OFFSETS_TOPIC, 0)
    rig.run_tasks()
    assert rig.offset(stable=True) == (9 if committed else 5, 0)


def test_a_later_commit_outside_stays(rig: TransactionRig) -> None:
    producer = rig.begin()
    rig.add_offsets(producer)
    rig.commit_offset(producer, 9)
    rig.commit_outside(12)
    rig.end(producer, commit=True)
    rig.run_tasks()
    assert rig.offset() == (12, 0)
    rig.follow(OFFSETS_TOPIC, 0)
    rig.lead(OFFSETS_TOPIC, 0)
    rig.run_tasks()
    assert rig.offset() == (12, 0)


def test_offsets_of_a_topic_that_is_deleted(rig: TransactionRig) -> None:
    producer = rig.begin()
    rig.add_offsets(producer)
    rig.commit_offset(producer, 9)
    rig.offsets.partitions_deleted({TopicPartition("t", 0)})
    rig.end(producer, commit=True)
    rig.run_tasks()
    assert rig.offset(stable=True) == (-1, 0)


def test_pending_offsets_do_not_expire(rig: TransactionRig) -> None:
    rig.commit_outside(5)
    producer = rig.begin()
    rig.add_offsets(producer)
    rig.commit_offset(producer, 9)
    rig.clock.advance(1441 * 60)
    rig.offsets.expire()
    assert rig.offset() == (5, 0)


@pytest.mark.sources
@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_that_comes_while_its_offsets_are_loaded(
    rig: TransactionRig, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """The load ends before the marker. An offset that stays pending would be committed with the
    producer's next transaction."""
    rig.commit_outside(5)
    producer = rig.begin()
    rig.add_offsets(producer)
    rig.commit_offset(producer, 9)
    topics = [t.MarkedTopic(OFFSETS_TOPIC, [0])]
    marker = t.TxnMarker(*producer, committed, topics, 0)
    read_in, markers = rig.replicas.read_in, [t.WriteTxnMarkersRequest([marker])]

    def reads(*args: Any) -> None:
        while markers:
            rig.ask(markers.pop(), 1)
        read_in(*args)

    monkeypatch.setattr(rig.replicas, "read_in", reads)
    rig.follow(OFFSETS_TOPIC, 0)
    rig.lead(OFFSETS_TOPIC, 0)
    rig.run_tasks()
    assert not markers
    assert rig.offset(stable=True) == (9 if committed else 5, 0)


KEY = GroupPartition("g", "t", 0)


def stored(offset: int, log_offset: int) -> Stored:
    return Stored(Committed(offset, "", 0), log_offset)


def test_a_marker_is_about_the_offsets_in_front_of_it() -> None:
    """It may be told once more, when the producer's next transaction has offsets already."""
    pending = PendingOffsets()
    pending.add(0, 7, KEY, stored(5, 100))
    assert pending.take(0, 7, 101) == {KEY: stored(5, 100)}
    pending.add(0, 7, KEY, stored(6, 102))
    assert pending.take(0, 7, 101) == {} and KEY in pending
    assert pending.take(0, 7, 103) == {KEY: stored(6, 102)} and KEY not in pending
    assert not pending.of_group("g")


def test_the_later_record_of_a_transaction_counts_whichever_comes_first() -> None:
    pending = PendingOffsets()
    pending.add(0, 7, KEY, stored(6, 102))
    pending.add(0, 7, KEY, stored(5, 100))  # from a load that began before
    assert pending.take(0, 7, 103) == {KEY: stored(6, 102)}
    pending.add(0, 7, KEY, stored(6, 102))
    pending.forget(0)
    assert KEY not in pending and not pending.of_group("g")
