"""Transactions in a log: what is stable and aborted, restarts, truncations, crashes anywhere."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
    UnsupportedForMessageFormatError,
)
from kafka08.log import numbering
from kafka08.log.log import Log
from kafka08.log.producer_state import BatchMetadata
from kafka08.log.producers import Verification
from kafka08.log.segments.transaction_index import AbortedTransaction
from kafka08.message.markers import ABORT, COMMIT, IN_TRANSACTION, encode_marker
from kafka08.message.scan import plain_producer_batches
from tests.fakes.runtime import FakeClock
from tests.log.faulty_files import Crash, FaultyFiles
from tests.log.support import append, config, crash_copy, fill, no_space, open_log, writable
from tests.log.test_producers import produced

ANY = 1 << 31


def ask(
    log: Log, producer: int, sequence: int = 0, *, epoch: int = 0, now: int = 0
) -> Verification | None:
    return log.producers.verification(producer, epoch, sequence, now)


def verify(log: Log, producer: int, sequence: int = ANY, *, epoch: int = 0) -> None:
    """``sequence``: that of the batch that comes now."""
    asked = ask(log, producer, sequence, epoch=epoch)
    if asked is not None:
        log.producers.confirm(producer, asked)


def write(log: Log, producer: int, first: int, count: int = 1, **more: Any) -> int:
    """A batch in the producer's transaction, which the coordinator knows; its offset."""
    verify(log, producer, first, epoch=more.get("epoch", 0))
    data = produced(producer, first, count, attributes=0x10, **more)
    return log.append(writable(data)).first_offset


def end(log: Log, producer: int, kind: int, *, epoch: int = 0, coordinator: int = 0) -> int:
    """A marker; its offset."""
    data = writable(encode_marker(producer, epoch, kind, coordinator, 1000))
    numbered = numbering.of_coordinator(data, log.log_end_offset, log.rules, log.config)
    return log.append(data, numbered=numbered).first_offset


def aborted(log: Log) -> list[AbortedTransaction]:
    return [entry for segment in log.segments for entry in segment.aborted.entries]


def facts(log: Log) -> tuple[Any, ...]:
    """All that readers and producers depend on."""
    states = log.producers.states
    known = {id_: (states[id_].epoch, states[id_].coordinator_epoch) for id_ in states}
    return list(states.open.items()), known, aborted(log), log.producers.stable_offset(1 << 40)


@pytest.mark.scenario("transactions-29", "transactions-30")
def test_nothing_is_stable_from_an_open_transaction_on(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, "before")
    assert log.producers.stable_offset(1) == 1
    assert write(log, 7, 0) == 1
    append(log, "between")
    assert write(log, 8, 0) == 3
    assert [log.producers.stable_offset(hw) for hw in (0, 1, 4)] == [0, 1, 1]
    assert end(log, 7, COMMIT) == 4
    # its marker is not committed
    assert [log.producers.stable_offset(hw) for hw in (4, 5)] == [1, 3]
    assert end(log, 8, ABORT) == 5
    assert [log.producers.stable_offset(hw) for hw in (4, 5, 6)] == [1, 3, 6]
    log.producers.committed(5)
    assert list(log.producers.uncommitted) == [(3, 5)]
    log.producers.committed(6)
    assert not log.producers.uncommitted and log.producers.stable_offset(6) == 6


@pytest.mark.scenario("transactions-32")
def test_what_is_aborted(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    write(log, 7, 0)
    write(log, 8, 0)
    end(log, 7, ABORT)  # 2
    write(log, 9, 0)
    log.roll()
    end(log, 8, COMMIT)
    end(log, 9, ABORT)  # 5
    write(log, 7, 1)
    end(log, 7, ABORT)  # 7
    first, second, third = (7, 0, 2, 1), (9, 3, 5, 6), (7, 6, 7, 8)
    assert aborted(log) == [first, second, third]
    assert log.aborted.between(0, 1) == [first]
    assert log.aborted.between(0, 4) == [first, second]
    assert log.aborted.between(0, 8) == log.aborted.between(2, 8) == [first, second, third]
    assert log.aborted.between(3, 4) == log.aborted.between(5, 6) == [second]
    assert log.aborted.between(8, 9) == []


@pytest.mark.scenario("transactions-13")
def test_a_transaction_that_the_coordinator_does_not_know_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = produced(7, 0, attributes=0x10)
    with pytest.raises(InvalidTxnStateError):
        log.append(writable(data))
    asked = ask(log, 7)
    assert asked is not None and ask(log, 7) is asked
    with pytest.raises(InvalidTxnStateError):
        log.append(writable(data))
    assert write(log, 7, 0) == 0
    assert ask(log, 7) is None
    assert log.append(writable(produced(7, 1, attributes=0x10))).first_offset == 1


def test_no_batch_overtakes_one_whose_coordinator_did_not_answer(tmp_path: Path) -> None:
    """The producer sends the next batch before it knows; the log does not know the producer."""
    log = open_log(tmp_path)
    ask(log, 7, 0)  # and no answer
    for sequence in (2, 5):
        with pytest.raises(OutOfOrderSequenceError):
            write(log, 7, sequence, 3)
    assert [write(log, 7, 0, 2), write(log, 7, 2, 3), write(log, 7, 5, 3)] == [0, 2, 5]


def test_a_new_epoch_waits_for_no_batch_of_an_older_one(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    before = ask(log, 7, 0)
    assert before is not None
    after = ask(log, 7, 4, epoch=1)
    assert after is not None and after is not before
    log.producers.confirm(7, before)
    with pytest.raises(InvalidTxnStateError):
        log.append(writable(produced(7, 4, epoch=1, attributes=0x10)))
    assert write(log, 7, 4, epoch=1) == 0


def test_questions_are_forgotten_as_producers_are(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    asked = ask(log, 7, 0, now=10)
    assert log.producers.expire(10) == 0 and ask(log, 7, 3) is asked
    assert log.producers.expire(11) == 0
    assert write(log, 7, 3) == 0


@pytest.mark.scenario("transactions-14")
def test_a_marker_makes_an_answer_void(tmp_path: Path) -> None:
    """Otherwise a write that comes late would begin a transaction that nobody ends."""
    log = open_log(tmp_path)
    for confirm_first in (True, False):
        asked = ask(log, 7)
        assert asked is not None
        if confirm_first:
            log.producers.confirm(7, asked)
        end(log, 7, ABORT)
        log.producers.confirm(7, asked)
        with pytest.raises(InvalidTxnStateError):
            log.append(writable(produced(7, 0, attributes=0x10)))
    assert not log.producers.states.open


def test_a_batch_comes_again_within_its_transaction_alone(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    write(log, 7, 0)
    again = log.append(writable(produced(7, 0, attributes=0x10)))
    assert (again.first_offset, again.valid_bytes) == (0, 0)
    end(log, 7, COMMIT)
    with pytest.raises(OutOfOrderSequenceError):
        log.append(writable(produced(7, 0, attributes=0x10)))
    assert not log.producers.states.open


@pytest.mark.scenario("transactions-22")
def test_markers_are_fenced(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    write(log, 7, 0, epoch=2)
    end(log, 7, COMMIT, epoch=2, coordinator=5)
    before = log.log_end_offset
    with pytest.raises(TransactionCoordinatorFencedError):
        end(log, 7, ABORT, epoch=2, coordinator=4)
    with pytest.raises(InvalidProducerEpochError):
        end(log, 7, ABORT, epoch=1, coordinator=6)
    assert log.log_end_offset == before


@pytest.mark.scenario("transactions-51")
@pytest.mark.parametrize("where", ["topic", "replicas"])
def test_a_format_without_transactions(tmp_path: Path, where: str) -> None:
    log = open_log(tmp_path, **({"message_format_version": "0.10.2"} if where == "topic" else {}))
    if where == "replicas":
        log.rules = log.rules._replace(max_format=0)
    with pytest.raises(UnsupportedForMessageFormatError):
        write(log, 7, 0)
    with pytest.raises(UnsupportedForMessageFormatError):
        end(log, 7, COMMIT)
    assert not log.log_end_offset


def history(log: Log) -> None:
    """Three segments: transactions that are committed, aborted, and open, across them."""
    write(log, 7, 0)
    write(log, 8, 0)
    append(log, "x" * 100)
    end(log, 7, ABORT)
    log.roll()
    write(log, 9, 0, 2)
    end(log, 8, COMMIT, coordinator=3)
    write(log, 7, 1)
    log.roll()
    end(log, 9, ABORT, epoch=1)  # a timeout
    write(log, 8, 1)
    end(log, 7, ABORT)
    write(log, 7, 2)


def test_a_follower_knows_what_the_leader_knows(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "a"), open_log(tmp_path / "b")
    history(leader)
    while follower.log_end_offset < leader.log_end_offset:
        data = leader.read(follower.log_end_offset, 1 << 20).read()
        follower.append(writable(data), assign_offsets=False)
    assert facts(follower) == facts(leader)
    assert list(follower.producers.uncommitted) == list(leader.producers.uncommitted)


@pytest.mark.scenario("transactions-24", "transactions-25", "transactions-26")
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("lost", ["nothing", "snapshots", "last snapshot", "indexes"])
def test_a_restart(tmp_path: Path, clean: bool, lost: str) -> None:
    """All that is lost in a crash is made again; after a clean stop all but the indexes."""
    log = open_log(tmp_path)
    history(log)
    expected = facts(log)
    log.flush() if clean else None
    log.close()
    directory = Path(log.directory)
    found = sorted(directory.glob("*.snapshot"))
    if lost == "snapshots":
        for path in found:
            path.unlink()
    elif lost == "last snapshot":
        found[-1].write_bytes(found[-1].read_bytes()[:-7])
    elif lost == "indexes" and not clean:
        for path in directory.glob("*.txnindex"):
            path.unlink()
    again = open_log(
        tmp_path, clean_shutdown=clean, recovery_point=log.log_end_offset if clean else 0
    )
    if lost == "snapshots" and clean:
        return  # without any, the log had no producers
    assert facts(again) == expected


@pytest.mark.parametrize("before", (0, 1))
def test_an_entry_without_its_marker_goes_at_the_start(before: int, tmp_path: Path) -> None:
    """``before`` it the segment has messages of format 0, or nothing."""
    log = open_log(tmp_path)
    verify(log, 1)
    write(log, 1, 0)
    log.roll()
    fill(log, before)
    marker = 1 + before
    log.files.active.aborted.append([AbortedTransaction(1, 0, marker, marker + 1)])
    again = open_log(crash_copy(log, tmp_path / "crashed").parent, recovery_point=1)
    assert aborted(again) == []
    end(again, 1, ABORT)
    assert aborted(again) == [AbortedTransaction(1, 0, marker, marker + 1)]


def test_an_entry_that_a_power_cut_has_torn_goes_at_the_start(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    verify(log, 1)
    write(log, 1, 0)
    log.roll()
    log.files.active.aborted.append([AbortedTransaction(0, 0, 0, 2)])
    again = open_log(crash_copy(log, tmp_path / "crashed").parent, recovery_point=1)
    assert aborted(again) == []


def test_a_damaged_index_is_made_again_after_a_clean_stop_too(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    history(log)
    expected = facts(log)
    log.flush()
    log.close()
    path = min(Path(log.directory).glob("*.txnindex"))
    path.write_bytes(b"\0\7" + path.read_bytes()[2:])
    again = open_log(tmp_path, clean_shutdown=True, recovery_point=log.log_end_offset)
    assert facts(again) == expected


@pytest.mark.scenario("transactions-23")
@pytest.mark.parametrize("offset", range(15))
def test_a_truncation(tmp_path: Path, offset: int) -> None:
    """Leads to what a log that never had more knows."""
    log = open_log(tmp_path / "a")
    history(log)
    log.truncate_to(min(offset, log.log_end_offset))
    shorter = open_log(tmp_path / "b")
    while data := log.read(shorter.log_end_offset, 1 << 20).read():
        shorter.append(writable(data), assign_offsets=False)
        if shorter.log_end_offset >= log.log_end_offset:
            break
    found, expected = facts(log), facts(shorter)
    assert found[0] == expected[0] and found[2:] == expected[2:]
    log.truncate_fully_and_start_at(40)
    assert facts(log) == ([], {}, [], 1 << 40)


@pytest.mark.scenario("transactions-36")
def test_retention_takes_the_indexes_with_their_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, file_delete_delay_ms=0)
    history(log)
    log.roll()
    log.delete_records(log.log_end_offset)
    assert log.delete_old_segments() == 3
    log.files.remove_due(1 << 60)
    assert not aborted(log) and not list(Path(log.directory).glob("*.txnindex*"))
    assert list(log.producers.states.open) == [8, 7]


@pytest.mark.scenario("transactions-37")
def test_records_of_an_open_transaction_that_are_deleted_hold_nothing_back(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(3):
        write(log, 7, sequence)
    append(log, "after")
    log.delete_records(2)
    start = log.first_offset
    assert [log.producers.stable_offset(hw, start) for hw in (1, 2, 3, 4)] == [1, 2, 2, 2]
    assert log.producers.stable_offset(4) == 0


def test_without_room_for_the_index_the_marker_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    write(log, 7, 0)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", no_space)
        with pytest.raises(OSError, match="No space"):
            end(log, 7, ABORT)
    assert (log.log_end_offset, list(log.producers.states.open), aborted(log)) == (1, [7], [])
    end(log, 7, ABORT)
    assert aborted(log) == [(7, 0, 1, 2)]


def test_without_room_for_the_marker_the_index_forgets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    write(log, 7, 0)
    pwrite = os.pwrite

    def full(fd: int, data: bytes, position: int) -> int:
        return pwrite(fd, data, position) if len(data) == 34 else no_space()

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space"):
            end(log, 7, ABORT)
    assert aborted(log) == [] and aborted(open_log(crash_copy(log, tmp_path / "b").parent)) == []


# Crashes anywhere, against the batches that are left in the files


class Run:
    """A log with transactions of a few producers, driven at random."""

    def __init__(self, root: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = FakeClock()
        self.files = FaultyFiles(str(root), self.clock.millis, random.Random(seed + 1))
        self.directory = root / "t-0"
        self.recovery_point = 0
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        self.log = self.open(clean=False)

    def open(self, *, clean: bool) -> Log:
        return Log(
            str(self.directory),
            config(segment_bytes=900, segment_ms=1 << 50),
            recovery_point=self.recovery_point,
            clean_shutdown=clean,
            clock=self.clock,
        )

    def step(self) -> None:
        actions = [self.write] * 8 + [self.end] * 5 + [self.flush, self.roll, self.cut]
        self.rng.choice(actions)()

    def write(self) -> None:
        producer, states = self.rng.randrange(5), self.log.producers.states
        first, epoch = 0, 0
        if producer in states:
            known = states[producer]
            first, epoch = known.last_sequence + 1, known.epoch
        if self.rng.random() < 0.1:
            append(self.log, "plain")
        write(self.log, producer, first, self.rng.randint(1, 3), epoch=epoch)
        self.counts["batches"] += 1

    def end(self) -> None:
        states = self.log.producers.states
        producer = self.rng.choice([*states.open, self.rng.randrange(5)])
        epoch = states[producer].epoch if producer in states else 0
        epoch += self.rng.random() < 0.2
        kind = self.rng.choice((ABORT, COMMIT))
        self.counts["aborted"] += kind == ABORT and producer in states.open
        end(self.log, producer, kind, epoch=epoch)

    def flush(self) -> None:
        self.log.flush()
        self.recovery_point = self.log.recovery_point

    def roll(self) -> None:
        self.log.roll()

    def cut(self) -> None:
        to = max(0, self.log.log_end_offset - self.rng.choice((0, 1, 3, 10, 40)))
        self.log.truncate_to(to)
        self.recovery_point = min(self.recovery_point, to)
        self.check("a cut")

    def restart(self, how: str) -> None:
        """A clean stop, or a kill or power cut at a file operation of what comes next."""
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
        """The log knows what its files say."""
        self.counts[how] += 1
        opened: dict[int, int] = {}
        found = []
        epochs: dict[int, int] = {}
        for segment in self.log.segments:
            data = Path(segment.path).read_bytes()[: segment.size]
            for row in plain_producer_batches(data, 0, len(data)):
                batch = BatchMetadata._make(row)
                epochs[batch.producer_id] = batch.epoch
                if batch.part == IN_TRANSACTION:
                    opened.setdefault(batch.producer_id, batch.base_offset)
                elif batch.producer_id in opened:
                    first = opened.pop(batch.producer_id)
                    stable = min(opened.values(), default=batch.base_offset + 1)
                    if batch.part == ABORT:
                        found.append((batch.producer_id, first, batch.base_offset, stable))
        states = self.log.producers.states
        assert states.open == opened and list(states.open.values()) == sorted(opened.values())
        assert aborted(self.log) == found, how
        assert {id_: states[id_].epoch for id_ in states} == epochs
        stable = min([self.log.log_end_offset, *opened.values()])
        assert self.log.producers.stable_offset(self.log.log_end_offset) == stable


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_no_crash_loses_an_abort_or_ends_a_transaction(first: int, tmp_path: Path) -> None:
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
    assert min(counts[how] for how in ("clean stop", "kill", "power cut", "a cut")) > 10
    assert counts["aborted"] > 100
