"""The producers that may commit offsets in a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.server.transactions.coordinator import Producer
from tests.server.transactions.support import TransactionRig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TransactionRig]:
    rig = TransactionRig(tmp_path)
    yield rig
    rig.close()


def test_the_group_must_be_in_the_transaction(rig: TransactionRig) -> None:
    producer = rig.begin()
    assert rig.commit_offset(producer, 9) == 48
    assert rig.offset(stable=True) == (-1, 0)
    assert rig.add_offsets(Producer(producer.id, 7)) == 90


def test_a_fenced_producer_commits_no_offsets(rig: TransactionRig) -> None:
    first = rig.begin()
    rig.add_offsets(first)
    rig.commit_offset(first, 9)
    rig.begin()
    assert rig.offset(stable=True) == (-1, 0)
    assert rig.commit_offset(first, 10) == 47


@pytest.mark.scenario("transactions-41")
def test_members_of_another_generation(rig: TransactionRig) -> None:
    producer = rig.begin()
    rig.add_offsets(producer)
    assert rig.commit_offset(producer, 9, generation=4, member_id="m") == 22
    assert rig.commit_offset(producer, 9, number=7) == 3
    assert rig.commit_offset(producer, 9) == 0
