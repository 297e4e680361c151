"""The metrics of transactions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.metrics import names
from kafka08.metrics.registry import Metric, Registry
from tests.server.transactions.support import TransactionRig

_TWENTY_MINUTES_S = 20 * 60.0


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TransactionRig]:
    rig = TransactionRig(tmp_path)
    yield rig
    rig.close()


def value(rig: TransactionRig, metric: Metric) -> Any:
    registry = Registry(rig.runtime)
    rig.transactions.add_metrics(registry)
    [found] = [each for _, piece in registry.pieces() for each in piece if each.metric is metric]
    return getattr(found.value, "count", found.value)


def test_a_transaction_that_nobody_ends_is_late(rig: TransactionRig) -> None:
    producer = rig.begin()
    rig.add(producer, 0, 1)
    rig.write(producer, 0, "a")
    rig.write(producer, 1, "a")
    rig.clock.advance(_TWENTY_MINUTES_S)
    assert value(rig, names.LATE_TRANSACTIONS) == 0
    rig.write(producer, 1, "b", sequence=1)  # not silent there
    rig.clock.advance(1.0)
    assert value(rig, names.LATE_TRANSACTIONS) == 1
    rig.coordinator.abort_late()
    rig.run_tasks()
    assert value(rig, names.LATE_TRANSACTIONS) == 0


def test_followers_leave_it_to_their_leader(rig: TransactionRig) -> None:
    producer = rig.begin()
    rig.add(producer, 0)
    rig.write(producer, 0, "a")
    rig.follow("t", 0)
    rig.clock.advance(_TWENTY_MINUTES_S + 1)
    assert value(rig, names.LATE_TRANSACTIONS) == 0


def test_producers_are_counted_in_each_partition(rig: TransactionRig) -> None:
    for id_ in ("one", "two"):
        producer = rig.begin(id_)
        rig.add(producer, 0, 1, id_=id_)
        rig.write(producer, 0, "a", id_=id_)
    rig.write(producer, 1, "a", id_=id_)
    assert value(rig, names.PRODUCER_IDS) == 3


def test_questions_to_coordinators(rig: TransactionRig) -> None:
    producer = rig.begin()
    rig.add(producer, 0)
    rig.write(producer, 0, "a")
    rig.write(producer, 0, "b", sequence=1)
    counted = names.VERIFICATION_TIMES, names.VERIFICATION_FAILURES
    assert [value(rig, each) for each in counted] == [1, 0]
    rig.write(producer, 1, "a")  # not in the transaction
    assert [value(rig, each) for each in counted] == [2, 1]


def test_markers_for_partitions_without_a_leader(
    rig: TransactionRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = rig.begin()
    rig.add(producer, 0, 1)
    rig.write(producer, 0, "a")
    leaders = rig.cache.leader_of
    seen: list[tuple[int, str]] = []

    def leader_of(key: Any) -> Any:
        return None if key == ("t", 1) and len(seen) < 3 else leaders(key)

    def pause(seconds: float) -> None:
        seen.append((value(rig, names.MARKERS_WITHOUT_LEADER), rig.state()))

    monkeypatch.setattr(rig.cache, "leader_of", leader_of)
    monkeypatch.setattr(rig.runtime, "sleep", pause)
    rig.end(producer, commit=True)
    rig.run_tasks()
    assert seen == [(1, "PrepareCommit")] * 3
    assert (value(rig, names.MARKERS_WITHOUT_LEADER), rig.state()) == (0, "CompleteCommit")


@pytest.mark.sources
def test_an_end_that_cannot_be_stored_yet(
    rig: TransactionRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = rig.begin()
    rig.add(producer, 0)
    rig.write(producer, 0, "a")
    rig.end(producer, commit=True)
    write = rig.coordinator.store.write
    seen: list[int] = []

    def refused(*args: Any) -> int:
        return 15 if len(seen) < 2 else write(*args)

    def pause(seconds: float) -> None:
        seen.append(value(rig, names.UNFINISHED_TRANSACTIONS))

    monkeypatch.setattr(rig.coordinator.store, "write", refused)
    monkeypatch.setattr(rig.runtime, "sleep", pause)
    rig.run_tasks()
    assert seen == [1, 1]
    assert value(rig, names.UNFINISHED_TRANSACTIONS) == 0
    assert rig.state() == "CompleteCommit"
