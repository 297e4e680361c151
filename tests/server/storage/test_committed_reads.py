"""Consumers before 0.11, and the setting that hides open and aborted transactions from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.message.sets import iter_messages
from kafka08.protocol import schemas as s
from tests.server.transactions.support import TransactionRig

LEVEL = "log_message_downconversion_isolation_level"
OLD = [0, 1, 2, 3]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TransactionRig]:
    rig = TransactionRig(tmp_path, **{LEVEL: "read_committed"})
    yield rig
    rig.close()


def transaction(rig: TransactionRig, *texts: str, commit: bool, sequence: int = 0) -> Any:
    producer = rig.begin()
    rig.add(producer, 0)
    for number, text in enumerate(texts):
        rig.write(producer, 0, text, sequence=sequence + number)
    rig.end(producer, commit=commit)
    rig.run_tasks()
    return producer


def plain(rig: TransactionRig, text: str) -> None:
    """A message of a producer without transactions."""
    rig.append(text)


def answer(rig: TransactionRig, version: int, offset: int, size: int = 1 << 20) -> Any:
    asked = [s.FetchTopic("t", [s.FetchPartition(0, offset, size)])]
    found = rig.ask(s.FetchRequest(-1, 0, 1, asked), version).topics[0].partitions[0]
    assert found.error == 0
    return bytes(found.message_set)


def read(rig: TransactionRig, version: int, size: int = 1 << 20) -> list[tuple[int, str]]:
    """All messages, fetch by fetch."""
    shown: list[tuple[int, str]] = []
    offset = 0
    while found := list(iter_messages(answer(rig, version, offset, size))):
        new = [each for each in found if each.offset >= offset]
        shown += [(each.offset, (each.value or b"").decode()) for each in new]
        offset = new[-1].offset + 1
    return shown


def latest(rig: TransactionRig, version: int) -> int:
    asked = [s.OffsetsTopic("t", [s.OffsetsPartition(0, -1, 1)])]
    found = rig.ask(s.OffsetsRequest(-1, asked), version).topics[0].partitions[0]
    assert found.error == 0
    return int(found.offset if version else found.offsets[0])


@pytest.mark.parametrize("version", OLD)
@pytest.mark.parametrize("size", [1 << 20, 150])
def test_messages_of_aborted_transactions_are_gaps(
    rig: TransactionRig, version: int, size: int
) -> None:
    plain(rig, "before")
    transaction(rig, "no", "nor this", commit=False)
    transaction(rig, "yes", "this too", commit=True)
    transaction(rig, "no again", commit=False)
    plain(rig, "after")
    wanted = [(0, "before"), (4, "yes"), (5, "this too"), (9, "after")]
    assert read(rig, version, size) == wanted


@pytest.mark.parametrize("version", OLD)
def test_they_wait_at_an_open_transaction(rig: TransactionRig, version: int) -> None:
    plain(rig, "before")
    producer = rig.begin()
    rig.add(producer, 0)
    rig.write(producer, 0, "open")
    plain(rig, "behind")
    assert read(rig, version) == [(0, "before")]
    assert latest(rig, min(version, 1)) == 1
    rig.end(producer, commit=True)
    rig.run_tasks()
    assert read(rig, version) == [(0, "before"), (1, "open"), (2, "behind")]
    assert latest(rig, min(version, 1)) == 4


def test_a_batch_that_is_larger_than_a_fetch(rig: TransactionRig) -> None:
    transaction(rig, "x" * 500, commit=False)
    transaction(rig, "y" * 500, commit=True)
    assert read(rig, 0, 100) == [(2, "y" * 500)]


def test_a_producer_that_aborts_and_commits(rig: TransactionRig) -> None:
    producer = transaction(rig, "first", commit=False)
    rig.add(producer, 0)
    rig.write(producer, 0, "second", sequence=1)
    rig.end(producer, commit=True)
    rig.run_tasks()
    assert read(rig, 0) == [(2, "second")]


def test_others_choose_for_themselves(rig: TransactionRig) -> None:
    transaction(rig, "no", commit=False)
    producer = rig.begin()
    rig.add(producer, 0)
    rig.write(producer, 0, "open")
    assert rig.read(0, committed=False) == ["no", "open"]
    assert rig.read(0, committed=True) == []
    assert rig.end_offset(0, committed=False) == 3


def test_by_default_they_get_all_of_it(tmp_path: Path) -> None:
    rig = TransactionRig(tmp_path)
    transaction(rig, "aborted", commit=False)
    producer = rig.begin()
    rig.add(producer, 0)
    rig.write(producer, 0, "open")
    assert read(rig, 0) == [(0, "aborted"), (2, "open")]
    assert latest(rig, 0) == 3
    rig.topic_settings["t"] = {"message.downconversion.isolation.level": "read_committed"}
    log = rig.log(0)
    log.config = log.config.override(rig.topic_settings["t"])
    assert read(rig, 0) == []
    assert latest(rig, 0) == latest(rig, 1) == 2
    rig.close()
