"""The ids that a broker coordinates: written, read by the next coordinator, forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.common import TRANSACTIONS_TOPIC
from kafka08.errors import LaterCode
from tests.server.transactions.support import TransactionRig

MAPPING = LaterCode.INVALID_PRODUCER_ID_MAPPING
STATE = LaterCode.INVALID_TXN_STATE


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TransactionRig]:
    rig = TransactionRig(tmp_path)
    yield rig
    rig.close()


@pytest.mark.scenario("transactions-17", "transactions-18")
def test_another_broker_takes_over_what_is_decided(rig: TransactionRig) -> None:
    producer = rig.begin()
    rig.add(producer, 0)
    rig.write(producer, 0, "a")
    assert rig.end(producer, commit=True) == 0  # the marker is still to be written
    assert rig.read(0) == []
    rig.follow(TRANSACTIONS_TOPIC, 0)
    assert rig.state() == "error 16"
    rig.run_tasks()
    assert rig.read(0) == []  # the former coordinator writes nothing any more
    rig.lead(TRANSACTIONS_TOPIC, 0)
    assert rig.state() == "error 14"
    rig.run_tasks()
    assert rig.state() == "CompleteCommit" and rig.read(0) == ["a"]


@pytest.mark.scenario("transactions-16")
def test_another_broker_takes_over_what_is_open(rig: TransactionRig) -> None:
    producer = rig.begin()
    rig.add(producer, 0)
    rig.write(producer, 0, "a")
    rig.follow(TRANSACTIONS_TOPIC, 0)
    assert rig.add(producer, 1) == rig.end(producer, commit=True) == 16
    assert rig.init()[0] == 16
    rig.lead(TRANSACTIONS_TOPIC, 0)
    assert rig.add(producer, 1) == 14
    rig.run_tasks()
    assert rig.add(producer, 1) == 0
    assert rig.write(producer, 1, "b") == 0
    assert rig.end(producer, commit=True) == 0
    rig.run_tasks()
    assert (rig.read(0), rig.read(1)) == (["a"], ["b"])


@pytest.mark.scenario("transactions-46")
def test_ids_that_are_not_used_are_forgotten(rig: TransactionRig) -> None:
    week = 7 * 86_400
    producer = rig.begin()
    busy = rig.begin("busy")
    rig.add(busy, 0, id_="busy")
    rig.clock.advance(week - 1)
    rig.coordinator.expire()
    assert rig.state() == "Empty"
    rig.clock.advance(1)
    rig.coordinator.expire()
    assert (rig.state(), rig.state("busy")) == ("error 105", "Ongoing")
    assert rig.add(producer, 0) == MAPPING
    rig.follow(TRANSACTIONS_TOPIC, 0)
    rig.lead(TRANSACTIONS_TOPIC, 0)
    rig.run_tasks()
    assert (rig.state(), rig.state("busy")) == ("error 105", "Ongoing")
