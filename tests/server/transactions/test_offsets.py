"""Offsets in transactions: pending until the marker, unstable meanwhile, loaded by leaders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.protocol import schemas as s
from kafka08.protocol import transaction_schemas as t
from kafka08.server.transactions.coordinator import Producer
from tests.server.transactions.support import TransactionRig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TransactionRig]:
    rig = TransactionRig(tmp_path)
    yield rig
    rig.close()


def add_offsets(rig: TransactionRig, producer: Producer, group: str = "g") -> int:
    return int(rig.ask(t.AddOffsetsToTxnRequest("id", *producer, group), 3).error)


def commit(rig: TransactionRig, producer: Producer, offset: int, **fields: Any) -> int:
    number = fields.pop("number", 0)
    topics = [t.TxnOffsetCommitTopic("t", [t.TxnOffsetCommitPartition(number, offset, "m")])]
    request = t.TxnOffsetCommitRequest("id", "g", *producer, topics, **fields)
    return int(rig.ask(request, 3).topics[0].partitions[0].error)


def plain_commit(rig: TransactionRig, offset: int) -> None:
    topics = [s.OffsetCommitTopic("t", [s.OffsetCommitPartition(0, offset, "")])]
    assert rig.ask(s.OffsetCommitRequest("g", topics), 7).topics[0].partitions[0].error == 0


def fetch(rig: TransactionRig, *, stable: bool = False) -> tuple[int, int]:
    """(offset, error)."""
    request = s.OffsetFetchRequest("g", [s.OffsetFetchTopic("t", [0])], require_stable=stable)
    found = rig.ask(request, 7).topics[0].partitions[0]
    return found.offset, found.error


@pytest.mark.scenario("transactions-38", "transactions-39", "transactions-40")
@pytest.mark.parametrize("committed", [True, False])
def test_offsets_count_once_their_transaction_is_committed(
    rig: TransactionRig, committed: bool
) -> None:
    plain_commit(rig, 5)
    producer = rig.begin()
    assert add_offsets(rig, producer) == 0
    assert commit(rig, producer, 9) == 0
    assert fetch(rig) == (5, 0) and fetch(rig, stable=True) == (-1, 88)
    assert rig.end(producer, commit=committed) == 0
    rig.run_tasks()
    assert fetch(rig) == fetch(rig, stable=True) == (9 if committed else 5, 0)


@pytest.mark.parametrize("committed", [True, False])
def test_the_next_coordinator_knows_what_is_pending(rig: TransactionRig, committed: bool) -> None:
    plain_commit(rig, 5)
    producer = rig.begin()
    add_offsets(rig, producer)
    commit(rig, producer, 9)
    rig.follow(OFFSETS_TOPIC, 0)
    rig.lead(OFFSETS_TOPIC, 0)
    assert commit(rig, producer, 9) == 14
    rig.run_tasks()
    assert fetch(rig) == (5, 0) and fetch(rig, stable=True) == (-1, 88)
    rig.end(producer, commit=committed)
    rig.run_tasks()
    assert fetch(rig, stable=True) == (9 if committed else 5, 0)
    rig.follow(OFFSETS_TOPIC, 0)
    rig.lead(OFFSETS_TOPIC, 0)
    rig.run_tasks()
    assert fetch(rig, stable=True) == (9 if committed else 5, 0)


def test_a_later_commit_outside_stays(rig: TransactionRig) -> None:
    producer = rig.begin()
    add_offsets(rig, producer)
    commit(rig, producer, 9)
    plain_commit(rig, 12)
    rig.end(producer, commit=True)
    rig.run_tasks()
    assert fetch(rig) == (12, 0)
    rig.follow(OFFSETS_TOPIC, 0)
    rig.lead(OFFSETS_TOPIC, 0)
    rig.run_tasks()
    assert fetch(rig) == (12, 0)


def test_the_group_must_be_in_the_transaction(rig: TransactionRig) -> None:
    producer = rig.begin()
    assert commit(rig, producer, 9) == 48
    assert fetch(rig, stable=True) == (-1, 0)
    assert add_offsets(rig, Producer(producer.id, 7)) == 90


def test_a_fenced_producer_commits_no_offsets(rig: TransactionRig) -> None:
    first = rig.begin()
    add_offsets(rig, first)
    commit(rig, first, 9)
    rig.begin()
    assert fetch(rig, stable=True) == (-1, 0)
    assert commit(rig, first, 10) == 47


@pytest.mark.scenario("transactions-41")
def test_members_of_another_generation(rig: TransactionRig) -> None:
    producer = rig.begin()
    add_offsets(rig, producer)
    assert commit(rig, producer, 9, generation=4, member_id="m") == 22
    assert commit(rig, producer, 9, number=7) == 3
    assert commit(rig, producer, 9) == 0


def test_offsets_of_a_topic_that_is_deleted(rig: TransactionRig) -> None:
    producer = rig.begin()
    add_offsets(rig, producer)
    commit(rig, producer, 9)
    rig.offsets.partitions_deleted({TopicPartition("t", 0)})
    rig.end(producer, commit=True)
    rig.run_tasks()
    assert fetch(rig, stable=True) == (-1, 0)


def test_pending_offsets_do_not_expire(rig: TransactionRig) -> None:
    plain_commit(rig, 5)
    producer = rig.begin()
    add_offsets(rig, producer)
    commit(rig, producer, 9)
    rig.clock.advance(1441 * 60)
    rig.offsets.expire()
    assert fetch(rig) == (5, 0)
