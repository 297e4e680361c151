"""ListOffsets from version 1 on: the first message since a time, and who may know it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import RequestTimedOutError
from kafka08.log.segments import time_search
from kafka08.message.entry import encode_entry
from kafka08.message.sets import iter_messages
from kafka08.message.times import Found
from kafka08.protocol.schemas import OffsetsPartition, OffsetsRequest, OffsetsTopic, RequestHeader
from kafka08.server.apis.offsets import OffsetsApi
from kafka08.server.storage.offsets_by_time import OffsetsByTime
from tests.message.batches import batch
from tests.server.support import ME, PEER, Rig

LATEST, EARLIEST = -1, -2
NONE = (0, -1, -1)
KEY = TopicPartition("t", 0)


def ask(rig: Rig, time: int, *, version: int = 5, replica_id: int = -1, topic: str = "t") -> Any:
    """(error, timestamp, offset)"""
    api = OffsetsApi(rig.runtime, rig.replicas, rig.view.long_work)
    asked = OffsetsTopic(topic, [OffsetsPartition(0, time)])
    header = RequestHeader(2, version, 1, "c")
    (answer,) = api.handle(header, OffsetsRequest(replica_id, [asked])).topics[0].partitions
    assert answer.offsets == []
    return answer.error, answer.timestamp, answer.offset


def add(rig: Rig, *times: int) -> None:
    for time in times:
        answer = rig.produce((*KEY, encode_entry(b"k", b"v" * 60, timestamp=time)))
        assert answer is not None
        assert answer[KEY][0] == 0


@pytest.mark.scenario("modern-25")
@pytest.mark.parametrize("version", [1, 2, 4, 5])
def test_the_first_message_since_a_time(rig: Rig, version: int) -> None:
    rig.lead()
    add(rig, 10, 20, 15, 30)
    assert ask(rig, 15, version=version) == (0, 20, 1)
    assert ask(rig, 0, version=version) == (0, 10, 0)
    assert ask(rig, 30, version=version) == (0, 30, 3)
    assert ask(rig, 31, version=version) == NONE
    assert ask(rig, LATEST, version=version) == (0, -1, 4)
    assert ask(rig, EARLIEST, version=version) == (0, -1, 0)


@pytest.mark.scenario("modern-27")
def test_inside_a_compressed_batch(rig: Rig) -> None:
    rig.lead()
    rig.append("old")
    records = [(b"k", b"v", at, []) for at in (0, 7, 3, 9)]
    rig.produce((*KEY, batch(records, codec=1, time=100)))
    assert ask(rig, 105) == (0, 107, 2)
    assert ask(rig, 109) == (0, 109, 4)


@pytest.mark.scenario("modern-26")
def test_a_topic_of_format_0_alone(rig: Rig) -> None:
    rig.lead()
    assert ask(rig, 5) == NONE  # without messages
    rig.append("a", "b")
    assert ask(rig, 5) == (43, -1, -1)
    assert ask(rig, LATEST) == (0, -1, 2)
    assert ask(rig, EARLIEST) == (0, -1, 0)
    add(rig, 3)
    assert ask(rig, 5) == NONE


@pytest.mark.scenario("modern-26")
def test_latest_and_earliest_read_no_file(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = rig.lead()
    add(rig, 10)
    partition.any_log().segments[0].release()

    def refused(*args: Any) -> None:
        raise AssertionError("a file is used")

    for name in ("open", "pread", "stat"):
        monkeypatch.setattr(os, name, refused)
    found = ask(rig, LATEST), ask(rig, EARLIEST)
    monkeypatch.undo()
    assert found == ((0, -1, 1), (0, -1, 0))


def test_consumers_see_nothing_above_the_high_watermark(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    add(rig, 10, 20, 30)
    rig.fetch((*KEY, 2, 1000), replica_id=PEER)
    assert ask(rig, LATEST) == (0, -1, 2)
    assert ask(rig, 20) == (0, 20, 1)
    assert ask(rig, 25) == NONE
    for replica_id in (PEER, -2):
        assert ask(rig, LATEST, replica_id=replica_id) == (0, -1, 3)
        assert ask(rig, 25, replica_id=replica_id) == (0, 30, 2)


def test_a_new_leader_does_not_say_less_than_the_old_one_did(rig: Rig) -> None:
    rig.lead()
    add(rig, 10, 20)
    rig.replicas.partitions[KEY].high_watermark = 1
    rig.lead(replicas=[ME, PEER])
    assert [ask(rig, LATEST, version=v)[0] for v in (1, 4, 5)] == [5, 5, 78]
    assert ask(rig, 20) == (78, -1, -1)
    assert ask(rig, EARLIEST) == (0, -1, 0)
    assert ask(rig, 99) == NONE
    rig.fetch((*KEY, 2, 1000), replica_id=PEER)
    assert ask(rig, LATEST) == (0, -1, 2)


def test_who_may_answer(rig: Rig) -> None:
    rig.follow()
    assert ask(rig, LATEST) == (6, -1, -1)
    assert ask(rig, 5) == (6, -1, -1)
    assert ask(rig, LATEST, replica_id=-2) == (0, -1, 0)
    assert ask(rig, LATEST, topic="u") == (3, -1, -1)
    assert ask(rig, LATEST, topic="u", replica_id=-2) == (9, -1, -1)
    assert ask(rig, -3) == (35, -1, -1)


def test_files_that_change_during_the_search(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = rig.lead()
    add(rig, 10, 20, 30, 40)
    log = partition.any_log()
    real, cuts = time_search.search, iter([3, 2])

    def cut_first(*args: Any) -> Any:
        found = real(*args)
        at = next(cuts, None)
        if at is not None:
            log.truncate_to(at)
        return found

    monkeypatch.setattr(time_search, "search", cut_first)
    find = OffsetsByTime(rig.replicas, rig.view.long_work).find
    assert find(KEY, 20, -2) == Found(1, 20)
    assert next(cuts, None) is None
    cuts = iter([1] * 100)
    with pytest.raises(RequestTimedOutError):
        find(KEY, 5, -2)


def test_a_file_that_is_gone_is_looked_for_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.topic_settings["t"] = {"segment.bytes": "250", "retention.bytes": "0"}
    partition = rig.lead()
    add(rig, 10, 20, 30, 40)
    log = partition.any_log()
    real, first = time_search.search, iter([None])

    def lose_first(*args: Any) -> Any:
        for _ in first:
            log.delete_old_segments()
            raise FileNotFoundError("segment")
        return real(*args)

    monkeypatch.setattr(time_search, "search", lose_first)
    assert ask(rig, 5) == NONE
    assert log.log_start_offset == 4


def test_damage_is_an_answer(rig: Rig) -> None:
    partition = rig.lead()
    rig.produce((*KEY, batch([(b"k", b"v", 0, [])], codec=1, time=10)))
    path = Path(partition.any_log().segments[0].path)
    data = bytearray(path.read_bytes())
    data[65:] = bytes(len(data) - 65)
    path.write_bytes(data)
    assert ask(rig, 5) == (-1, -1, -1)
    assert ask(rig, LATEST) == (0, -1, 1)


def untimed(*times: int, base: int = 0, codec: int = 0) -> bytes:
    """A batch whose header does not have the times of its records."""
    records = [(b"k", b"v" * 60, at - times[0], []) for at in times]
    return batch(records, base, codec, time=times[0], max_timestamp=-1)


@pytest.mark.parametrize("codec", [0, 1])
def test_a_producer_does_not_say_what_its_newest_time_is(rig: Rig, codec: int) -> None:
    rig.lead()
    rig.produce((*KEY, untimed(10, 30, 20, codec=codec)))
    assert ask(rig, 15) == (0, 30, 1)
    add(rig, 25, 40)
    assert [ask(rig, time) for time in (5, 11, 30, 31)] == [
        (0, 10, 0),
        (0, 30, 1),
        (0, 30, 1),
        (0, 40, 4),
    ]
    assert ask(rig, 41) == NONE


@pytest.mark.parametrize("codec", [0, 1])
def test_a_follower_of_a_leader_that_did_not_check(rig: Rig, codec: int) -> None:
    partition = rig.follow()
    log = partition.any_log()
    log.append(memoryview(bytearray(untimed(10, 30, 20, codec=codec))), assign_offsets=False)
    assert log.segments[0].newest == (30, 2)
    rig.lead()
    assert ask(rig, 15) == (0, 30, 1)
    assert ask(rig, 31) == NONE


BEFORE = {
    "alone": [untimed(10, 20, 30)],
    "packed": [untimed(10, 20, 30, codec=1)],
    "before one that tells": [untimed(10, 20, 30), encode_entry(b"k", b"v", 3, timestamp=15)],
    "after one that tells": [encode_entry(b"k", b"v", 0, timestamp=15), untimed(10, 30, base=1)],
    "in a long file": [
        untimed(at, at + 9, base=2 * at, codec=1)
        if at % 2
        else batch([(b"k", b"v" * 60, 0, []), (b"k", b"v" * 60, 1, [])], 2 * at, time=at)
        for at in range(200)
    ],
}


@pytest.mark.parametrize("stored", BEFORE)
def test_files_that_were_written_unchecked(make_rig: Any, stored: str) -> None:
    """By an earlier release or another broker."""
    first = make_rig()
    first.lead()
    first.close()
    path = first.directory / "t-0"
    (path / f"{0:020}.log").write_bytes(b"".join(BEFORE[stored]))
    for index in ("index", "timeindex"):
        (path / f"{0:020}.{index}").unlink(missing_ok=True)
    rig = make_rig()
    log = rig.lead().any_log()
    rig.replicas.partitions[KEY].high_watermark = log.log_end_offset
    messages = [
        (message.timestamp, message.offset) for message in iter_messages(b"".join(BEFORE[stored]))
    ]
    assert log.log_end_offset == len(messages)
    for time in range(0, 220, 3 if len(messages) > 9 else 1):
        found = next((each for each in messages if each[0] >= time), None)
        assert ask(rig, time) == (NONE if found is None else (0, *found)), time
