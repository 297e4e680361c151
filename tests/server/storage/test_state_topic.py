"""Topics that hold state: read by the broker whose leadership begins, answered for afterwards."""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.common import TopicPartition, offsets_partition_for
from kafka08.message.scan import iter_entries
from kafka08.server.storage import state_topic
from kafka08.server.storage.state_topic import StateTopic
from tests.server.support import Rig, message_set

COUNT = 4
NUMBER = offsets_partition_for("id", COUNT)
KEY = TopicPartition("state", NUMBER)


@pytest.fixture
def taken() -> list[Any]:
    """The offsets of the entries that loaders took, "end" for each that was finished, and the
    partitions that were forgotten."""
    return []


@pytest.fixture
def topic(rig: Rig, taken: list[Any]) -> StateTopic:
    def loader(*_: object) -> Any:
        def take(data: bytes) -> int | None:
            offsets = [entry.offset for entry in iter_entries(data)]
            taken.extend(offsets)
            return offsets[-1] + 1 if offsets else None

        return SimpleNamespace(take=take, finish=lambda: taken.append("end"))

    forget: Callable[[int], None] = lambda number: taken.append(f"forget {number}")  # noqa: E731
    return StateTopic(rig.runtime, rig.replicas, "state", COUNT, loader, forget)


def begin(rig: Rig, topic: StateTopic, *texts: str) -> None:
    """Leadership of a log with these messages."""
    rig.lead(*KEY)
    if texts:
        rig.replicas.append_messages(KEY, memoryview(bytearray(message_set(*texts))), 1)
    topic.leadership_changed(rig.replicas.partitions[KEY], leads=True)


def test_it_is_answered_for_once_it_is_loaded(rig: Rig, topic: StateTopic, taken: Any) -> None:
    assert topic.check("id") == 16
    begin(rig, topic, "a", "b")
    assert topic.partition_for("id") == KEY
    assert topic.check("id") == 14
    rig.runtime.run_spawned()
    assert topic.check("id") == 0
    assert taken == [f"forget {NUMBER}", 0, 1, "end"]


def test_it_is_forgotten_by_a_broker_that_leads_no_more(
    rig: Rig, topic: StateTopic, taken: Any
) -> None:
    begin(rig, topic, "a")
    topic.leadership_changed(rig.follow(*KEY), leads=False)
    rig.runtime.run_spawned()
    assert topic.check("id") == 16
    assert taken == [f"forget {NUMBER}"] * 2


def test_other_topics_are_nothing_to_it(rig: Rig, topic: StateTopic, taken: Any) -> None:
    topic.leadership_changed(rig.lead("t", 0), leads=True)
    assert not topic.loading and not taken


@pytest.mark.parametrize("size", [20, 64 * 1024])
def test_entries_are_read_in_pieces(
    rig: Rig, topic: StateTopic, taken: Any, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """An entry that is larger than a piece is read in a larger one."""
    monkeypatch.setattr(state_topic, "_LOAD_BYTES", size)
    begin(rig, topic, "a", "b" * 500, "c")
    rig.runtime.run_spawned()
    assert taken == [f"forget {NUMBER}", 0, 1, 2, "end"]


@pytest.mark.sources
def test_a_load_that_fails_for_a_while_is_repeated(
    rig: Rig, topic: StateTopic, taken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the state is not used."""
    begin(rig, topic, "a")
    full = OSError(errno.EMFILE, "Too many open files")
    read, failures = rig.replicas.read_in, [full, full]

    def short(*args: Any) -> Any:
        if failures:
            raise state_topic.KafkaError("not now") from failures.pop()
        return read(*args)

    monkeypatch.setattr(rig.replicas, "read_in", short)
    rig.runtime.run_spawned()
    assert not failures and taken == [f"forget {NUMBER}", 0, "end"]


def test_a_broker_that_stops_loads_no_more(rig: Rig, topic: StateTopic, taken: Any) -> None:
    begin(rig, topic, "a")
    topic.stop()
    rig.runtime.run_spawned()
    assert "end" not in taken
