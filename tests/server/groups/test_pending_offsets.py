"""Offsets in transactions: pending until the marker, unstable meanwhile, loaded by leaders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition
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
