"""Nothing that is not in the page cache is read by the thread of the event loop.

Told by watching each read: those made outside ``runtime.blocking`` must find their pages in the
cache. Real files are pushed out of it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.groups.records import Committed, GroupPartition
from kafka08.log.disk import DiskFailure
from kafka08.log.log import Log
from kafka08.log.segments import residency
from kafka08.log.tail import FRESH_MS
from kafka08.message.sets import iter_messages
from kafka08.protocol.schemas import OffsetsPartition, OffsetsRequest, OffsetsTopic
from tests.page_cache import is_in_memory
from tests.server.replication.pair import LeaderAndFollower
from tests.server.support import ME, PEER, Rig, by_key, message_set

COUNT, SIZE = 30, 20_000


class Watch:
    """The reads of the loop's thread from the disk, and those of other threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rig: Rig) -> None:
        self.waited: list[tuple[int, int]] = []
        self.handed: list[str] = []
        self.meanwhile: list[Callable[[], Any]] = []
        self._in_pool = False
        self._pread = os.pread
        monkeypatch.setattr(os, "pread", self._watched)
        monkeypatch.setattr(rig.runtime, "blocking", self._blocking)

    def _watched(self, fd: int, size: int, position: int) -> bytes:
        there = is_in_memory(fd, position, size)
        found = self._pread(fd, size, position)
        if not there and not self._in_pool:
            self.waited.append((position, size))
        return found

    def _blocking(self, function: Callable[..., Any], *args: Any) -> Any:
        self.handed.append(function.__name__)
        self._in_pool = True
        try:
            return function(*args)
        finally:
            self._in_pool = False
            if self.meanwhile:
                self.meanwhile.pop(0)()


@pytest.fixture
def watch(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch, rig)


def fill(rig: Rig, *, codec: int = 0, segment_bytes: int = 250_000) -> Log:
    """t-0 with records of 20 kB in three segments, all out of the page cache."""
    rig.topic_settings["t"] = {"segment.bytes": str(segment_bytes)}
    log = rig.lead(replicas=[ME, PEER], isr=[ME]).any_log()
    for number in range(COUNT):
        noise = os.urandom(SIZE // 2).hex()
        rig.produce(("t", 0, message_set(f"{number:02}" + noise[2:], codec=codec)))
    rig.clock.now += 2 * FRESH_MS / 1000
    log.flush()
    chill(log)
    return log


def chill(log: Log) -> None:
    for segment in log.segments:
        for path in (segment.path, segment.index.path):
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
    last = log.segments[-1]
    if is_in_memory(last.file.fd, 0, last.size):
        pytest.skip("this file system keeps everything in memory")


def numbers(data: Any) -> list[int]:
    return [int((message.value or b"")[:2]) for message in iter_messages(data)]


@pytest.mark.parametrize("replica_id", [-1, PEER])
def test_a_drain(rig: Rig, watch: Watch, replica_id: int) -> None:
    log = fill(rig)
    assert len(log.segments) == 3
    watch.handed.clear()
    seen: list[int] = []
    while len(seen) < COUNT:
        error, _, data = rig.fetch(("t", 0, len(seen), 50_000), replica_id=replica_id)["t", 0]
        assert error == 0
        seen += numbers(data)
    assert seen == list(range(COUNT))
    assert watch.waited == []
    # Each segment's index once, and each segment in few pieces thanks to what is read ahead. The
    # kernel reads ahead as well: how much is left for the pool differs between kernels.
    assert 1 <= watch.handed.count("read_in_index") <= 3
    assert 1 <= watch.handed.count("read_in") <= 9


@pytest.mark.parametrize("codec", [1, 2])
def test_wrappers_that_are_rebuilt(rig: Rig, watch: Watch, codec: int) -> None:
    fill(rig, codec=codec)
    watch.handed.clear()
    data = rig.fetch(("t", 0, 0, 100_000))["t", 0][2]
    assert numbers(data)[:3] == [0, 1, 2]
    assert watch.waited == []
    assert "read_in" in watch.handed


def test_what_is_there_is_not_read_in_again(rig: Rig, watch: Watch) -> None:
    fill(rig)
    rig.fetch(("t", 0, 0, 40_000))
    watch.handed.clear()
    rig.fetch(("t", 0, 0, 40_000))
    assert watch.handed == []
    rig.clock.now += residency.INDEX_STAYS_MS / 1000
    rig.fetch(("t", 0, 0, 40_000))
    assert watch.handed == ["read_in_index"]


def test_what_was_just_appended_is_not_asked_for(
    rig: Rig, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(rig)
    watch.handed.clear()
    rig.append("new")

    def never(*_: object) -> bool:
        raise AssertionError("asked")

    monkeypatch.setattr(residency, "is_resident", never)
    assert len(list(iter_messages(rig.fetch(("t", 0, COUNT, 1000))["t", 0][2]))) == 1
    rig.fetch(("t", 0, COUNT + 1, 1000), max_wait_ms=10)
    assert watch.handed == []


def test_an_idle_end_is_cold_too(rig: Rig, watch: Watch) -> None:
    fill(rig)
    watch.handed.clear()
    assert numbers(rig.fetch(("t", 0, COUNT - 1, 1 << 20))["t", 0][2]) == [COUNT - 1]
    assert watch.handed[-1] == "read_in"
    assert watch.waited == []


def test_without_asking_the_loop_would_wait(
    rig: Rig, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(rig)
    monkeypatch.setattr(residency, "_NOWAIT", 0)
    rig.fetch(("t", 0, 0, 40_000))
    assert watch.waited


def test_a_log_deleted_meanwhile(rig: Rig, watch: Watch) -> None:
    log = fill(rig)
    watch.handed.clear()
    key = TopicPartition("t", 0)
    watch.meanwhile.append(lambda: (rig.replicas.partitions.pop(key), rig.logs.delete_log(key)))
    error, _, data = rig.fetch(("t", 0, 0, 40_000))["t", 0]
    assert (error, len(data)) == (3, 0)
    assert not os.path.exists(log.directory)


def test_a_segment_deleted_meanwhile(rig: Rig, watch: Watch) -> None:
    log = fill(rig)
    watch.handed.clear()
    watch.meanwhile.append(lambda: log.truncate_fully_and_start_at(100))
    error, _, data = rig.fetch(("t", 0, 0, 40_000))["t", 0]
    assert (error, len(data)) == (1, 0)
    assert watch.handed == ["read_in_index"]


def test_leadership_lost_meanwhile(rig: Rig, watch: Watch) -> None:
    fill(rig)
    watch.meanwhile.append(lambda: rig.follow())
    assert rig.fetch(("t", 0, 0, 40_000))["t", 0][0] == 6


def test_a_disk_that_fails_while_it_is_read_in(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(rig)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    reported: list[DiskFailure] = []
    monkeypatch.setattr(rig.failures, "report", lambda found: reported.extend(found) or [])
    monkeypatch.setattr(rig.runtime, "blocking", fail)
    error, hw, data = rig.fetch(("t", 0, 0, 40_000))["t", 0]
    assert (error, hw, len(data)) == (-1, -1, 0)
    assert [failure.error.errno for failure in reported] == [errno.EIO]
    rig.append("new")
    assert rig.fetch(("t", 0, COUNT, 40_000))["t", 0][0] == 0


def test_offsets_by_time_ask_the_disk_on_another_thread(rig: Rig, watch: Watch) -> None:
    fill(rig)
    watch.handed.clear()

    def ask(time: int) -> Any:
        asked = OffsetsTopic("t", [OffsetsPartition(0, time, 1)])
        return by_key(rig.call(OffsetsRequest(-1, [asked])))["t", 0]

    assert (ask(-1), ask(-2)) == ((0, [COUNT]), (0, [0]))
    assert watch.handed == []
    assert ask(rig.clock.millis())[0] == 0
    assert watch.handed == ["_stat_all"]


def test_loading_group_offsets(rig: Rig, watch: Watch) -> None:
    key = ("__consumer_offsets", 0)
    partition = rig.lead(*key)
    rig.runtime.run_spawned()
    group = next(
        name for name in map(str, range(100)) if rig.offsets.partition_for(name).partition == 0
    )
    commit_offsets(rig, group, 500)
    log = partition.any_log()
    rig.clock.now += 2 * FRESH_MS / 1000
    log.flush()
    chill(log)
    watch.handed.clear()
    rig.follow(*key)
    rig.lead(*key)
    rig.runtime.run_spawned()
    assert watch.waited == []
    assert "read_in" in watch.handed
    found = rig.offsets.fetch(GroupPartition(group, "t", 499))
    assert found is not None and found.offset == 499


def test_a_follower_that_compares_its_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = LeaderAndFollower(tmp_path)
    sets = [message_set(str(number) * SIZE) for number in range(10)]
    pair.alone(*sets)
    for data in sets:
        pair.leader.produce(("t", 0, data))
    watch = Watch(monkeypatch, pair.follower)
    pair.follower.clock.now += 2 * FRESH_MS / 1000
    chill(pair.log)
    pair.copy.high_watermark = 3
    pair.follow()
    pair.steps(1)
    assert pair.asked() == [3]
    assert "read_in" in watch.handed
    pair.steps(2)
    assert pair.same()
    pair.close()


def commit_offsets(rig: Rig, group: str, count: int) -> None:
    now = rig.clock.millis()
    entries = {
        GroupPartition(group, "t", number): Committed(number, "m" * 100, now)
        for number in range(count)
    }
    assert rig.offsets.commit(group, entries) == 0
