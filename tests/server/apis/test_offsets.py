"""API 2: offsets by segment file time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kafka08.protocol.schemas import OffsetsPartition, OffsetsRequest, OffsetsTopic
from tests.server.support import ME, PEER, Rig, by_key

LATEST, EARLIEST = -1, -2
T = ("t", 0)


def ask(rig: Rig, time: int, count: int = 1, *, replica_id: int = -1, key: Any = T) -> Any:
    topic, partition = key
    asked = OffsetsTopic(topic, [OffsetsPartition(partition, time, count)])
    return by_key(rig.call(OffsetsRequest(replica_id, [asked])))[key]


@pytest.fixture
def segments(rig: Rig) -> Rig:
    """Segments at 0, 1, 2 with one message each, last written at 1000, 2000 and 3000 s."""
    rig.topic_settings["t"] = {"segment.bytes": "100"}
    partition = rig.lead(replicas=[ME, PEER], isr=[ME])
    for text in "abc":
        rig.append(text * 60)
    for number, path in enumerate(sorted(Path(partition.any_log().directory).glob("*.log"))):
        os.utime(path, (1000 * (number + 1),) * 2)
    return rig


def test_latest_and_earliest(segments: Rig) -> None:
    assert ask(segments, LATEST) == (0, [3])
    assert ask(segments, EARLIEST) == (0, [0])
    assert ask(segments, LATEST, 10) == (0, [3, 2, 1, 0])
    assert ask(segments, EARLIEST, 10) == (0, [0])
    assert ask(segments, LATEST, 2) == (0, [3, 2])


@pytest.mark.parametrize(
    ("seconds", "offsets"),
    [(999, []), (1000, [0]), (1999, [0]), (2500, [1, 0]), (3000, [2, 1, 0])],
)
def test_by_time(segments: Rig, seconds: int, offsets: list[int]) -> None:
    assert ask(segments, seconds * 1000, 10) == (0, offsets)
    assert ask(segments, seconds * 1000, 1) == (0, offsets[:1])


def test_now_is_the_log_end(segments: Rig) -> None:
    assert ask(segments, segments.clock.millis(), 10) == (0, [3, 2, 1, 0])


@pytest.mark.parametrize("time", [LATEST, EARLIEST])
def test_an_empty_log_has_its_base_only(rig: Rig, time: int) -> None:
    rig.lead()
    assert ask(rig, time, 5) == (0, [0])


def test_counts(segments: Rig) -> None:
    assert ask(segments, LATEST, 0) == (0, [])
    assert ask(segments, LATEST, -1) == (-1, [])


def test_consumers_see_the_high_watermark_instead_of_what_is_above(rig: Rig) -> None:
    rig.topic_settings["t"] = {"segment.bytes": "100"}
    rig.lead(replicas=[ME, PEER])
    for text in "abcd":
        rig.append(text * 60)
    rig.fetch((*T, 2, 1000), replica_id=PEER)
    assert ask(rig, LATEST, 10) == (0, [2, 2, 1, 0])
    assert ask(rig, LATEST, 1) == (0, [2])
    for replica_id in (PEER, -2):
        assert ask(rig, LATEST, 10, replica_id=replica_id) == (0, [4, 3, 2, 1, 0])


def test_who_may_answer(rig: Rig) -> None:
    rig.follow()
    assert ask(rig, LATEST) == (6, [])
    assert ask(rig, LATEST, replica_id=PEER) == (6, [])
    assert ask(rig, LATEST, replica_id=-2) == (0, [0])
    assert ask(rig, LATEST, key=("t", 1)) == (3, [])
    assert ask(rig, LATEST, key=("u", 0), replica_id=PEER) == (3, [])
    assert ask(rig, LATEST, key=("u", 0), replica_id=-2) == (9, [])


def test_the_last_of_repeated_partitions_counts(segments: Rig) -> None:
    twice = [OffsetsPartition(0, LATEST, 1), OffsetsPartition(0, EARLIEST, 1)]
    answer = segments.call(OffsetsRequest(-1, [OffsetsTopic("t", twice)]))
    assert answer == ([("t", [(0, 0, [0])])],)


def test_an_error_of_ours_is_answered(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """0.8.2.2 leaves the client waiting."""
    rig.lead()

    def broken(*args: Any) -> None:
        raise OSError("as told")

    monkeypatch.setattr("kafka08.server.apis.offsets.offsets_before", broken)
    assert ask(rig, LATEST) == (-1, [])
    monkeypatch.setattr("kafka08.server.apis.offsets.OffsetsApi._answer", broken)
    assert ask(rig, LATEST) == (-1, [])
