"""The producers of a log: snapshots, restarts, truncations, deletions, and crashes anywhere."""

from __future__ import annotations

import builtins
import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import InvalidRecordError, OutOfOrderSequenceError
from kafka08.log.log import Log
from kafka08.log.producer_state import BatchMetadata
from kafka08.log.producers import ProducerStateManager
from kafka08.message.scan import plain_producer_batches
from tests.fakes.runtime import FakeClock
from tests.log.faulty_files import Crash, FaultyFiles
from tests.log.support import append, config, crash_copy, last_batches, no_space, open_log, writable
from tests.message.batches import batch, simple


def produced(producer: int, first: int, count: int = 1, *, epoch: int = 0, **more: Any) -> bytes:
    values = [b"%d" % n for n in range(count)]
    fields = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": first}
    return batch(simple(*values), **more, **fields)


def send(log: Log, producer: int, first: int, count: int = 1, **more: Any) -> tuple[int, int]:
    """(offset, bytes written)."""
    info = log.append(writable(produced(producer, first, count, **more)))
    assert info.count == count and info.last_offset == info.first_offset + count - 1
    return info.first_offset, info.valid_bytes


def snapshots(log: Log) -> list[int]:
    return sorted(int(path.stem) for path in Path(log.directory).glob("*.snapshot"))


def known(log: Log) -> dict[int, list[int]]:
    """The base offsets of the batches that are known, by producer."""
    found = last_batches(log.producers.states)
    return {producer: [each.base_offset for each in batches] for producer, batches in found.items()}


def test_a_batch_that_comes_again_is_not_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, "before")
    before = log.size
    assert send(log, 7, 0, 3) == (1, log.size - before)
    size = log.size
    assert send(log, 7, 0, 3) == (1, 0)
    assert (log.size, log.log_end_offset) == (size, 4)
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 7, 4)
    assert (log.size, log.log_end_offset) == (size, 4)
    assert send(log, 7, 3)[0] == 4


def test_a_batch_that_was_not_written_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    send(log, 7, 0)

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", refuse)
        with pytest.raises(OSError, match="no"):
            send(log, 7, 1)
    assert send(log, 7, 1)[0] == 1


def test_a_producer_sends_one_batch_at_a_time(tmp_path: Path) -> None:
    producers = ProducerStateManager(str(tmp_path))
    one = produced(7, 0)
    assert producers.check(writable(one), 9) == ((BatchMetadata(7, 0, 0, 9, 0, 1000),), None)
    assert producers.check(writable(batch(simple(b"a")) * 2), 9) == ((), None)
    for data in (one + one, one + batch(simple(b"a")), batch(simple(b"a")) + one):
        with pytest.raises(InvalidRecordError):
            producers.check(writable(data), 9)


def test_a_repeated_batch_waits_for_the_disk_like_the_first(tmp_path: Path) -> None:
    log = open_log(tmp_path, flush_messages=1)
    send(log, 7, 0)
    log.recovery_point = 0  # the first try failed to sync
    assert send(log, 7, 0) == (0, 0)
    assert log.recovery_point == 1


def test_a_follower_knows_what_it_copies(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "a"), open_log(tmp_path / "b")
    for sequence in range(3):
        send(leader, 7, sequence)
        append(leader, "between")
        send(leader, 8, sequence * 2, 2)
    data = leader.read(0, 1 << 20).read()
    follower.append(writable(data), assign_offsets=False)
    assert known(follower) == known(leader) == {7: [0, 4, 8], 8: [2, 6, 10]}


def test_logs_without_producers_have_no_snapshots(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200)
    for _ in range(5):
        append(log, "x" * 50)
        log.append(writable(batch(simple(b"x" * 50))))
    log.close()
    again = open_log(tmp_path, clean_shutdown=True)
    again.close()
    assert len(log.segments) > 3 and not snapshots(again)


def test_a_snapshot_for_each_segment_and_for_a_clean_stop(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, "a")
    log.roll()
    send(log, 7, 0, 2)
    log.roll()
    append(log, "a")
    log.roll()
    assert snapshots(log) == [3, 4]
    send(log, 7, 2)
    log.flush()
    log.close()
    assert snapshots(log) == [3, 4, 5]
    again = open_log(tmp_path, clean_shutdown=True)
    assert known(again) == {7: [4]}
    assert send(again, 7, 2) == (4, 0)
    append(again, "a")
    again.close()
    assert snapshots(again) == [3, 4, 5, 6]
    assert snapshots(open_log(tmp_path, clean_shutdown=True)) == [3, 4, 6]


def test_a_clean_start_reads_only_what_is_behind_the_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    send(log, 7, 0)
    log.close()
    monkeypatch.setattr("kafka08.log.producers.stretches", None)
    assert known(open_log(tmp_path, clean_shutdown=True)) == {7: [0]}


@pytest.mark.scenario("modern-45")
@pytest.mark.parametrize("point", [0, 2, 3, 4])
def test_after_a_crash_the_log_is_read(tmp_path: Path, point: int) -> None:
    log = open_log(tmp_path)
    send(log, 7, 0)
    append(log, "a")
    log.roll()
    send(log, 8, 0)
    send(log, 7, 1)
    again = open_log(crash_copy(log, tmp_path / "x").parent, recovery_point=point)
    assert known(again)[8] == [2] and known(again)[7][-1] == 3
    assert send(again, 7, 1) == (3, 0)


@pytest.mark.parametrize("damage", [b"", b"\0", None])
@pytest.mark.parametrize("clean", [False, True])
def test_a_damaged_snapshot_is_made_again(
    tmp_path: Path, damage: bytes | None, clean: bool
) -> None:
    log = open_log(tmp_path)
    send(log, 6, 0)
    log.roll()
    send(log, 7, 0)
    log.roll()
    send(log, 8, 0)
    log.flush()
    log.close()
    assert snapshots(log) == [1, 2, 3]
    for offset in (2, 3):
        path = Path(log.directory) / f"{offset:020d}.snapshot"
        data = path.read_bytes()
        path.write_bytes(damage if damage is not None else data[:-1] + b"\7")
    again = open_log(tmp_path, clean_shutdown=clean, recovery_point=3)
    assert known(again) == {6: [0], 7: [1], 8: [2]}
    assert snapshots(again) == [1, 2]
    again.roll()
    again.close()
    for offset in (1, 2, 3):
        (Path(log.directory) / f"{offset:020d}.snapshot").write_bytes(b"")
    assert known(open_log(tmp_path, clean_shutdown=clean)) == {6: [0], 7: [1], 8: [2]}


def test_a_snapshot_of_a_lost_future_is_not_used(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 7, 0)
    log.roll()
    send(log, 8, 0)
    log.roll()
    copy = crash_copy(log, tmp_path / "x")
    for path in copy.glob(f"{1:020d}.*"):
        if path.suffix != ".snapshot":
            path.unlink()
    (copy / f"{2:020d}.log").unlink()
    again = open_log(copy.parent, recovery_point=1)
    assert known(again) == {7: [0]} and snapshots(again) == [1]
    assert send(again, 8, 5)[0] == 1


def test_deleted_segments_take_their_snapshots_along(tmp_path: Path) -> None:
    clock = FakeClock()
    log = open_log(tmp_path, clock, retention_bytes=150, segment_ms=1 << 40)
    for producer in range(6):
        send(log, producer, 0)
        log.roll()
    assert snapshots(log) == [1, 2, 3, 4, 5, 6]
    log.delete_old_segments()
    start = log.log_start_offset
    assert start > 1 and snapshots(log) == list(range(start, 7))
    log.flush()
    copy = crash_copy(log, tmp_path / "x")
    again = open_log(copy.parent, clock, recovery_point=start)
    assert list(known(again)) == list(range(6))  # also those of the deleted segments


@contextmanager
def no_room_for_snapshots() -> Iterator[None]:
    real = builtins.open

    def full(path: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
        if mode != "rb" and str(path).endswith(".snapshot"):
            no_space()
        return real(path, mode, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "open", full)
        yield


def three_snapshots(tmp_path: Path) -> Path:
    """A crashed log with the batches of three producers, one in each segment."""
    log = open_log(tmp_path)
    for producer in range(3):
        send(log, producer, 0)
        log.roll()
    log.flush()
    copy = crash_copy(log, tmp_path / "x")
    assert len(list(copy.glob("*.snapshot"))) == 3
    return copy


def test_a_start_on_a_full_disk_leaves_out_snapshots(tmp_path: Path) -> None:
    copy = three_snapshots(tmp_path)
    for path in (copy / f"{2:020d}.snapshot", copy / f"{3:020d}.snapshot"):
        path.unlink()
    with no_room_for_snapshots():
        again = open_log(copy.parent, recovery_point=3)
    everybody = {0: [0], 1: [1], 2: [2]}
    assert known(again) == everybody and snapshots(again) == [1]
    again.producers.remove_below(2)  # as retention does
    assert known(open_log(copy.parent, recovery_point=3)) == everybody
    assert snapshots(again) == [1, 2, 3]


def test_without_a_snapshot_the_recovery_point_stays_until_there_is_one(tmp_path: Path) -> None:
    """That of the second segment may include lost batches. It goes, and there is no room."""
    log = open_log(tmp_path)
    send(log, 7, 0)
    log.roll()
    send(log, 8, 0)
    copy = crash_copy(log, tmp_path / "x")
    both = {7: [0], 8: [1]}
    for _ in range(2):
        with no_room_for_snapshots():
            again = open_log(copy.parent)
        again.flush()
        assert known(again) == both and snapshots(again) == []
        assert again.recovery_point == 0
    again.flush()
    again.roll()
    assert snapshots(again) == [2]
    again.flush()
    assert again.recovery_point == 2
    assert known(open_log(copy.parent, recovery_point=2)) == both


def test_a_corrupt_snapshot_stays_until_there_is_another(tmp_path: Path) -> None:
    copy = three_snapshots(tmp_path)
    for path in copy.glob("*.snapshot"):
        path.write_bytes(b"corrupt")
    with no_room_for_snapshots(), pytest.raises(OSError, match="No space left"):
        open_log(copy.parent, recovery_point=3)
    again = open_log(copy.parent, recovery_point=3)
    assert known(again) == {0: [0], 1: [1], 2: [2]} and snapshots(again) == [1, 2, 3]


def test_truncation_takes_batches_back(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(8):
        send(log, 7, sequence)
        if sequence in (2, 6):
            log.roll()
    assert (known(log), snapshots(log)) == ({7: [3, 4, 5, 6, 7]}, [3, 7])
    log.truncate_to(6)
    assert (known(log), snapshots(log)) == ({7: [3, 4, 5]}, [3])
    assert send(log, 7, 6)[0] == 6
    log.truncate_to(3)  # more than is known: read again
    assert (known(log), snapshots(log)) == ({7: [2]}, [3])
    assert send(log, 7, 3)[0] == 3
    log.truncate_to(2)
    assert (known(log), snapshots(log)) == ({7: [0, 1]}, [])
    log.truncate_to(0)
    assert known(log) == {}
    send(log, 7, 0)
    log.roll()
    log.truncate_fully_and_start_at(50)
    assert (known(log), snapshots(log)) == ({}, [])


def test_a_batch_that_is_cut_in_the_middle_is_gone(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 7, 0, 2)
    send(log, 7, 2, 4)
    log.truncate_to(4)
    assert known(log) == {7: [0]}


def test_control_batches_of_a_later_broker(tmp_path: Path) -> None:
    """Its data directory can have transactions: data, then a marker with an offset of its own."""
    log = open_log(tmp_path)
    marker = batch(
        [(b"\0\0\0\1", b"\0\0\0\0\0\0", 0, [])], 2, attributes=0x30, producer_id=7, producer_epoch=0
    )
    data = produced(7, 0, 2, attributes=0x10) + marker + produced(7, 2, base=3)
    log.append(writable(data), assign_offsets=False)
    log.roll()
    for clean in (True, False):
        log.close()
        log = open_log(tmp_path, clean_shutdown=clean)
        assert known(log)[7][-1] == 3
        with pytest.raises(OutOfOrderSequenceError):
            send(log, 7, 4)
        assert log.log_end_offset == 4


def test_the_files_of_kafka_3_9_are_understood(tmp_path: Path) -> None:
    data = bytes.fromhex(
        "00018e90e50e00000002"
        "0000000000000021000100000002000000000000001700000002"
        "0000018bcfe58f12ffffffffffffffffffffffff"
        "000000000000002200000000000900000000000000"
        "1a000000020000018bcfe58f12ffffffffffffffffffffffff"
    )
    log = open_log(tmp_path)
    log.truncate_fully_and_start_at(27)
    log.close()
    (Path(log.directory) / f"{27:020d}.snapshot").write_bytes(data)
    log = open_log(tmp_path, clean_shutdown=True)
    assert known(log) == {33: [21], 34: [24]}
    assert send(log, 33, 0, 3, epoch=1) == (21, 0)
    assert send(log, 34, 10)[0] == 27


def test_files_that_are_not_snapshots_are_left_alone(tmp_path: Path) -> None:
    names = ["x.snapshot", "1.snapshot", f"{3:020d}.snapshot.bak"]
    log = open_log(tmp_path)
    send(log, 7, 0)
    for name in names:
        (Path(log.directory) / name).write_bytes(b"?")
    log.close()
    found = ProducerStateManager(log.directory)
    found.load(log.segments, 1, 0, clean=True)
    assert found.snapshots == [1]
    assert all((Path(log.directory) / name).exists() for name in names)


# Crashes anywhere, against the batches that are left in the files


class Run:
    """A log with a few producers, driven at random. ``sent`` is what may be in it, in order."""

    def __init__(self, root: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = FakeClock()
        self.files = FaultyFiles(str(root), self.clock.millis, random.Random(seed + 1))
        self.directory = root / "t-0"
        self.recovery_point = 0
        self.sent: list[BatchMetadata] = []
        self.doubtful: set[BatchMetadata] = set()  # of deleted segments, before a power cut
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        self.log = self.open(clean=False)

    def open(self, *, clean: bool) -> Log:
        return Log(
            str(self.directory),
            config(segment_bytes=700, retention_bytes=2500, segment_ms=1 << 50),
            recovery_point=self.recovery_point,
            clean_shutdown=clean,
            clock=self.clock,
        )

    def last(self) -> dict[int, BatchMetadata]:
        return {each.producer_id: each for each in self.sent}

    def step(self) -> None:
        actions = [self.send] * 12 + [self.again, self.flush, self.roll, self.cut, self.retain]
        self.rng.choice(actions)()

    def send(self) -> None:
        producer, count = self.rng.randrange(6), self.rng.randint(1, 3)
        last = self.last().get(producer)
        first = 0 if last is None else last.last_sequence + 1
        epoch = 0 if last is None else last.epoch
        if self.rng.random() < 0.1:
            first, epoch = 0, epoch + 1
        batch_ = BatchMetadata(producer, epoch, first, self.log.log_end_offset, count - 1, 0)
        self.sent.append(batch_)
        if self.rng.random() < 0.2:
            append(self.log, "plain")
            self.sent[-1] = batch_._replace(base_offset=self.log.log_end_offset)
        offset, _ = send(self.log, producer, first, count, epoch=epoch)
        assert offset == self.sent[-1].base_offset

    def again(self) -> None:
        for producer, batches in last_batches(self.log.producers.states).items():
            for each in batches:
                found = send(
                    self.log, producer, each.first_sequence, each.last_delta + 1, epoch=each.epoch
                )
                assert found == (each.base_offset, 0)

    def flush(self) -> None:
        self.log.flush()
        self.recovery_point = self.log.recovery_point

    def roll(self) -> None:
        self.log.roll()

    def cut(self) -> None:
        start, end = self.log.log_start_offset, self.log.log_end_offset
        to = max(start, end - self.rng.choice((0, 1, 3, 10, 40)))
        self.log.truncate_to(to)
        self.recovery_point = min(self.recovery_point, to)
        self.sent = [each for each in self.sent if each.last_offset < to]

    def retain(self) -> None:
        self.log.delete_old_segments()
        self.log.files.remove_due(1 << 60)

    def restart(self, how: str) -> None:
        """A clean stop, or a kill or power cut at a file operation of what comes next."""
        self.counts[how] += 1
        if how == "clean stop":
            self.flush()
            self.log.close()
            self.recovery_point = self.log.log_end_offset
        else:
            self.files.crash_at = self.files.calls + self.rng.randint(1, 12)
            try:
                while True:
                    self.step()
            except Crash:
                self.counts["crash"] += 1
            self.files.revive(power_cut=how == "power cut")
        self.log = self.open(clean=how == "clean stop")
        self.recovery_point = self.log.recovery_point
        self.check(how)

    def check(self, how: str) -> None:
        """The last batch of each producer in the files is known, and no batch that is not there.
        Those of deleted segments are known too, unless the power went before a flush."""
        in_files = [
            BatchMetadata._make(row)._replace(timestamp=0)
            for segment in self.log.segments
            for row in rows_of(Path(segment.path))
        ]
        deleted = [each for each in self.sent if each.last_offset < self.log.log_start_offset]
        self.sent = [*deleted, *in_files]
        known = {
            producer: [each._replace(timestamp=0) for each in batches]
            for producer, batches in last_batches(self.log.producers.states).items()
        }
        if how == "power cut":
            self.doubtful.update(deleted)
        for producer, last in self.last().items():
            if last not in self.doubtful:
                assert known[producer][-1] == last
        for batches in known.values():
            assert set(batches) <= set(self.sent)
            assert all(a.last_offset < b.base_offset for a, b in pairwise(batches))
        ends = {producer: batches[-1].base_offset for producer, batches in known.items()}
        self.sent = [e for e in self.sent if e.base_offset <= ends.get(e.producer_id, -1)]


def rows_of(path: Path) -> list[tuple[int, ...]]:
    data = path.read_bytes()
    return list(plain_producer_batches(data, 0, len(data)))


@pytest.mark.parametrize("first", (0, 10))
def test_no_crash_makes_a_producer_forgotten_or_remembered_wrongly(
    first: int, tmp_path: Path
) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + 10):
        root = tmp_path / str(seed)
        root.mkdir()
        run = Run(root, seed)
        with run.files:
            run.start()
            for _ in range(12):
                for _ in range(run.rng.randint(0, 30)):
                    run.step()
                run.restart(run.rng.choice(("clean stop", "kill", "power cut")))
        counts += run.counts
        shutil.rmtree(root)
    assert min(counts[how] for how in ("clean stop", "kill", "power cut")) > 10
