"""Compaction of transactions: aborted messages go, markers stay for as long as they are needed."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from kafka08.log.cleaning.cleaner_job import CleanedGroup, Job, SealedSegment
from kafka08.log.cleaning.compaction import clean
from kafka08.log.cleaning.throttler import Throttler
from kafka08.log.log import Log
from kafka08.message.batch import RECORDS_AT, header_of
from kafka08.message.markers import ABORT, COMMIT, marker_of
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from tests.log.support import open_log, writable
from tests.log.test_transactions import end, verify
from tests.message.batches import batch


def put(log: Log, producer: int, key: str, value: str | None, *, codec: int = 0) -> None:
    """A message in the producer's transaction."""
    verify(log, producer)
    states = log.producers.states
    sequence = states[producer].last_sequence + 1 if producer in states else 0
    record = (key.encode(), None if value is None else value.encode(), 0, [])
    data = batch(
        [record], codec=codec, attributes=0x10, producer_id=producer, producer_epoch=0,
        base_sequence=sequence,
    )  # fmt: skip
    log.append(writable(data))


def compact(log: Log, *, below: int = 0, segment_bytes: int = 1 << 20) -> None:
    """A pass over all that is there, with the swap."""
    log.roll()
    segments = log.segments
    states = log.producers.states
    job = Job(
        directory=log.directory,
        sources=[
            SealedSegment(one.base_offset, following.base_offset, one.size, 0)
            for one, following in pairwise(segments)
        ],
        first_dirty_offset=0,
        tombstones_below=below,
        max_entries=1000,
        io_buffer_bytes=4096,
        segment_bytes=segment_bytes,
        segment_index_bytes=1024,
        index_interval_bytes=50,
        max_message_bytes=1 << 20,
        producer_ends=states.last_offsets,
        producer_epochs=states.epochs_alone,
        aborted=[each[:3] for each in log.aborted.between(0, log.log_end_offset)],
    )
    done: list[CleanedGroup] = []
    clean(job, lambda line: None, done.append, Throttler(float("inf"), -1))
    for group in done:
        if group.changed:
            log.files.prepare_swap(group.bases)
            log.files.replace(0)


def content(log: Log) -> list[tuple[int, str, str | None]]:
    """(offset, key, value), or the kind of a marker."""
    found: list[tuple[int, str, str | None]] = []
    for segment in log.segments:
        data = Path(segment.path).read_bytes()
        for entry in iter_entries(data):
            one = data[entry.position : entry.stop]
            header = header_of(one)
            if header.is_control:
                kind = {ABORT: "abort", COMMIT: "commit"}[marker_of(one[RECORDS_AT:])[0]]
                found.append((header.base_offset, kind, None))
            elif not header.count:
                found.append((header.base_offset, "empty", None))
            found += [
                (m.offset, (m.key or b"").decode(), None if m.value is None else m.value.decode())
                for m in iter_messages(one)
            ]
    return found


@pytest.mark.scenario("transactions-34")
@pytest.mark.parametrize("codec", range(5))
def test_aborted_messages_go_and_supersede_none(tmp_path: Path, codec: int) -> None:
    log = open_log(tmp_path)
    put(log, 7, "a", "committed", codec=codec)
    end(log, 7, COMMIT)
    put(log, 8, "a", "aborted", codec=codec)
    put(log, 7, "b", "committed", codec=codec)
    put(log, 8, "c", "aborted", codec=codec)
    end(log, 8, ABORT)
    end(log, 7, COMMIT)
    put(log, 8, "c", "committed", codec=codec)
    end(log, 8, COMMIT)
    compact(log)
    assert content(log) == [
        (0, "a", "committed"), (1, "commit", None), (3, "b", "committed"), (5, "abort", None),
        (6, "commit", None), (7, "c", "committed"), (8, "commit", None),
    ]  # fmt: skip
    assert not log.aborted.between(0, 9)


@pytest.mark.scenario("transactions-35")
def test_markers_stay_as_long_as_their_messages_and_then_as_tombstones(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    put(log, 7, "a", "old")
    end(log, 7, COMMIT)
    put(log, 7, "kept", "x")
    end(log, 7, COMMIT)
    put(log, 8, "a", "aborted")
    end(log, 8, ABORT)
    put(log, 8, "a", "new")
    end(log, 8, COMMIT)
    put(log, 7, "z", "x")
    end(log, 7, COMMIT)
    markers = [(1, "commit", None), (3, "commit", None), (5, "abort", None)]
    rest = [(6, "a", "new"), (7, "commit", None), (8, "z", "x"), (9, "commit", None)]
    compact(log)
    kept = (2, "kept", "x")
    assert content(log) == sorted([*markers, kept, *rest])
    compact(log, below=4)
    assert content(log) == sorted([*markers[1:], kept, *rest])
    compact(log, below=1 << 40)
    assert content(log) == sorted([markers[1], kept, *rest])


def test_the_last_batch_of_a_producer_keeps_its_marker(tmp_path: Path) -> None:
    """Without that the empty batch would begin a transaction after the next crash."""
    log = open_log(tmp_path)
    put(log, 7, "a", "aborted")
    end(log, 7, ABORT)
    put(log, 8, "a", "x")
    end(log, 8, COMMIT)
    put(log, 9, "a", "y")
    end(log, 9, COMMIT)
    compact(log, below=1 << 40)
    assert content(log) == [
        (0, "empty", None), (1, "abort", None), (2, "empty", None), (3, "commit", None),
        (4, "a", "y"), (5, "commit", None),
    ]  # fmt: skip
    for path in Path(log.directory).glob("*.snapshot"):
        path.unlink()
    again = open_log(tmp_path)
    assert not again.producers.states.open
    assert again.producers.stable_offset(again.log_end_offset) == again.log_end_offset


def test_a_producer_of_which_there_is_a_marker_alone_keeps_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    put(log, 7, "a", "x")
    end(log, 7, ABORT, epoch=1)
    put(log, 8, "b", "x")
    end(log, 8, COMMIT)
    compact(log, below=1 << 40)
    assert (1, "abort", None) in content(log)
    end(log, 7, ABORT, epoch=2)
    put(log, 8, "b", "y")
    end(log, 8, COMMIT)
    compact(log, below=1 << 40)
    assert [each[0] for each in content(log) if each[1] == "abort"] == [4]


def test_a_transaction_across_groups(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    put(log, 7, "a", "x" * 300)
    log.roll()
    put(log, 8, "b", "aborted" * 40)
    log.roll()
    end(log, 7, COMMIT)
    end(log, 8, ABORT)
    put(log, 8, "c", "x")
    end(log, 8, COMMIT)
    compact(log, below=1 << 40, segment_bytes=350)
    assert [each[:2] for each in content(log)] == [
        (0, "a"), (2, "commit"), (4, "c"), (5, "commit")
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_readers_of_committed_messages_see_the_same_table(tmp_path: Path, seed: int) -> None:
    """At random, with several passes: the last committed value of each key stays readable, and
    nothing that was aborted is."""
    rng = random.Random(seed)
    log = open_log(tmp_path, segment_bytes=1500)
    table: dict[str, str | None] = {}
    open_: dict[int, dict[str, str | None]] = {}
    for step in range(200):
        producer = rng.randrange(4)
        if rng.random() < 0.7:
            key, value = rng.choice("abcdef"), rng.choice([None, str(step)])
            put(log, producer, key, value, codec=rng.choice([0, 0, 1]))
            open_.setdefault(producer, {})[key] = value
        elif producer in open_:
            # Which transaction has a key last depends on the offsets: one at a time has it.
            written = open_.pop(producer)
            shared = {key for others in open_.values() for key in others}
            commit = rng.random() < 0.6 and not shared & written.keys()
            end(log, producer, COMMIT if commit else ABORT)
            table.update(written if commit else {})
        if rng.random() < 0.05:
            for left in list(open_):
                end(log, left, ABORT)
                del open_[left]
            compact(log, below=rng.choice([0, log.log_end_offset // 2, 1 << 40]))
            assert committed(log) == {k: v for k, v in table.items() if v is not None}
    for left in open_:
        end(log, left, ABORT)
    assert committed(log) == {k: v for k, v in table.items() if v is not None}


def committed(log: Log) -> dict[str, str]:
    """The table that a reader of committed transactions has, fetch by fetch."""
    found: dict[str, str] = {}
    for segment in log.segments:
        data = Path(segment.path).read_bytes()
        waiting = sorted(
            log.aborted.between(segment.base_offset, log.log_end_offset),
            key=lambda each: -each.first_offset,
        )
        out: set[int] = set()
        for entry in iter_entries(data):
            one = data[entry.position : entry.stop]
            header = header_of(one)
            while waiting and waiting[-1].first_offset <= header.last_offset:
                out.add(waiting.pop().producer_id)
            if header.is_control:
                if marker_of(one[RECORDS_AT:])[0] == ABORT:
                    out.discard(header.producer_id)
            elif header.producer_id not in out:
                for message in iter_messages(one):
                    key = (message.key or b"").decode()
                    found.pop(key, None)
                    if message.value is not None:
                        found[key] = message.value.decode()
    return found
