"""Logs with messages of formats 1 and 2: stored as sent, recovered, replicated, compacted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka08.errors import InvalidRecordError, KafkaError
from kafka08.log.cleaning.cleaner_job import Job, SealedSegment
from kafka08.log.cleaning.compaction import clean
from kafka08.log.cleaning.throttler import Throttler
from kafka08.log.log import Log
from kafka08.log.recovery.divergence import compare
from kafka08.log.segments import integrity
from kafka08.message.batch import header_of
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from tests.log.support import append, open_log, writable
from tests.message.batches import batch, golden, simple, timed, timed_wrapper
from tests.message.sets import plain, wrapper

TWO = simple(b"a", b"b")
SETS = [
    plain([(b"k", b"v")] * 2),
    timed([(b"k", b"v")] * 3),
    batch(TWO),
    timed_wrapper(timed([(b"k", b"v")] * 2), 1, time=1001),
    batch(simple(b"x" * 90, b"y"), codec=4),
    wrapper(plain([(b"k", b"v")] * 2), 2),
]


def filled(path: Path, times: int = 1, **changes) -> Log:
    log = open_log(path, **changes)
    for _ in range(times):
        for data in SETS:
            log.append(writable(data))
    return log


def stored(log: Log) -> bytes:
    return b"".join(Path(segment.path).read_bytes() for segment in log.segments)


@pytest.mark.scenario("modern-9")
def test_everything_is_stored_as_sent(tmp_path):
    log = filled(tmp_path)
    data = stored(log)
    assert [m.offset for m in iter_messages(data)] == list(range(13))
    assert log.log_end_offset == 13
    batches = [data[e.position : e.stop] for e in iter_entries(data) if e.magic == 2]
    for sent, kept in zip((SETS[2], SETS[4]), batches, strict=True):
        assert kept[16:] == sent[16:]
        assert header_of(kept).leader_epoch == -1


@pytest.mark.parametrize("offset", range(13))
def test_a_read_begins_with_the_entry_that_holds_the_offset(tmp_path, offset):
    log = filled(tmp_path)
    data = log.read(offset, 1 << 20).read()
    first = next(iter_messages(data)).offset
    assert first <= offset
    inside = {6: 5, 8: 7, 10: 9, 12: 11}
    assert first == inside.get(offset, offset)
    # a consumer's bound that a batch contains keeps all of it out
    assert all(m.offset < offset for m in iter_messages(log.read(0, 1 << 20, offset).read()))


@pytest.mark.parametrize("cut", [0, 1, 50])
def test_recovery_and_the_index(tmp_path, cut):
    log = filled(tmp_path, times=20)
    data, index = stored(log), Path(log.segments[0].index.path)
    log.close()
    entries = list(iter_entries(data))
    log_path = Path(log.segments[0].path)
    index.unlink()
    os.truncate(log_path, len(data) - cut)
    again = open_log(tmp_path)
    whole = [e for e in entries if e.stop <= len(data) - cut]
    assert again.log_end_offset == whole[-1].offset + 1
    assert again.segments[0].index.entries > 5
    for offset in range(0, again.log_end_offset, 7):
        assert next(iter_entries(again.read(offset, 1 << 20).read())).offset >= offset
        position = again.read(offset, 1 << 20).position
        assert all(e.offset < offset for e in entries if e.position < position)
    again.close()
    assert open_log(tmp_path, clean_shutdown=True).log_end_offset == again.log_end_offset


def test_damage_in_a_batch_cuts_the_log(tmp_path):
    log = filled(tmp_path)
    data = bytearray(stored(log))
    log.close()
    at = next(e for e in iter_entries(data) if e.magic == 2)
    data[at.stop - 1] ^= 1
    Path(log.segments[0].path).write_bytes(data)
    found = integrity.find_damage(log.segments[0].path)
    assert found is not None
    assert (found.position, found.reason) == (at.position, "wrong crc")
    assert open_log(tmp_path).log_end_offset == 5


@pytest.mark.scenario("modern-9", "modern-52")
def test_a_follower_stores_the_same_bytes(tmp_path):
    leader = filled(tmp_path / "leader")
    follower = open_log(tmp_path / "follower")
    follower.append(writable(leader.read(0, 1 << 20).read()), assign_offsets=False)
    assert stored(follower) == stored(leader)
    assert follower.log_end_offset == leader.log_end_offset
    with pytest.raises(KafkaError, match="Out of order"):
        follower.append(writable(leader.read(12, 1 << 20).read()), assign_offsets=False)


def test_truncation_takes_a_batch_as_a_whole(tmp_path):
    log = filled(tmp_path)
    log.truncate_to(6)
    assert [m.offset for m in iter_messages(stored(log))] == list(range(5))
    log.truncate_to(5)
    append(log, "next")
    assert [m.offset for m in iter_messages(stored(log))] == list(range(6))


def test_what_consumers_may_be_sent_as_it_is(tmp_path):
    log = open_log(tmp_path)
    file = log.segments[0].file
    log.append(writable(SETS[0]))
    plain_end = log.size
    assert (file.sendable_until, file.later_until) == (plain_end, plain_end)
    for data in SETS[1:5]:
        log.append(writable(data))
        assert (file.sendable_until, file.later_until) == (plain_end, log.size)
    later_end = log.size
    log.append(writable(SETS[5]))
    log.append(writable(SETS[2]))
    assert (file.sendable_until, file.later_until) == (plain_end, later_end)


@pytest.mark.scenario("modern-15")
def test_a_compacted_topic_refuses_records_without_a_key(tmp_path):
    log = open_log(tmp_path, cleanup_policy="compact")
    keyless = simple(b"a", key=None)
    for data in (batch(keyless), batch(keyless, codec=1), timed([(None, b"a")])):
        with pytest.raises(InvalidRecordError):
            log.append(writable(data))
    assert log.append(writable(batch(TWO))).count == 2


@pytest.mark.scenario("modern-57")
def test_replicas_that_were_cleaned_differently_agree():
    full = batch([(b"a", b"1", 0, []), (b"b", b"2", 0, [])], 4)
    less = batch([(b"b", b"2", 0, [])], 4, deltas=[1], last_delta=1)
    other = batch([(b"b", b"3", 0, [])], 4, deltas=[1], last_delta=1)
    assert compare(full, memoryview(less), 4, 4, compacted=True) == (6, False, 6)
    assert compare(full, memoryview(other), 4, 4, compacted=True) == (4, True, 4)
    assert compare(full, memoryview(less), 4, 4, compacted=False) == (4, True, 4)
    assert compare(full + full[:9], memoryview(full), 4, 4, compacted=False) == (6, False, 6)


def cleaned(tmp_path: Path, log: Log, **changes) -> bytes:
    """The log's first segment after one pass."""
    log.roll()
    first, second = log.segments
    job = Job(
        directory=log.directory,
        sources=[SealedSegment(0, second.base_offset, first.size, 0)],
        first_dirty_offset=0,
        tombstones_below=0,
        max_entries=1000,
        io_buffer_bytes=4096,
        segment_bytes=1 << 20,
        segment_index_bytes=1024,
        index_interval_bytes=50,
        max_message_bytes=1 << 20,
        **changes,
    )
    clean(job, lambda line: None, lambda group: None, Throttler(float("inf"), -1))
    return Path(job.path(0) + ".cleaned").read_bytes()


@pytest.mark.scenario("modern-57")
@pytest.mark.parametrize("codec", range(5))
def test_compaction_takes_records_out_of_batches(tmp_path, codec):
    log = open_log(tmp_path)
    four = [
        (b"a", b"1", 3, [(b"h", b"x")]),
        (b"b", b"2", 5, []),
        (b"a", b"3", 7, []),
        (b"c", b"4", 9, []),
    ]
    log.append(writable(batch(four, codec=codec)))
    log.append(writable(batch([(b"c", b"5", 0, [])], codec=codec)))
    log.append(writable(batch([(b"gone", b"5", 0, [])], codec=codec)))
    one = {"codec": codec, "producer_id": 7, "producer_epoch": 0}
    log.append(writable(batch([(b"gone", b"6", 0, [])], base_sequence=0, **one)))
    log.append(writable(batch([(b"gone", b"6", 0, [])], base_sequence=1, **one)))
    log.append(writable(batch([(b"gone", b"7", 0, [])], codec=codec)))
    before = stored(log)
    data = cleaned(tmp_path, log, producer_ends=log.producers.states.last_offsets)
    assert [m[:3] for m in iter_messages(data)] == [
        (1, b"b", b"2"), (2, b"a", b"3"), (4, b"c", b"5"), (8, b"gone", b"7"),
    ]  # fmt: skip
    first = header_of(data)
    was = header_of(before)
    assert first._replace(size=0, crc=0) == was._replace(size=0, crc=0, count=2)
    empty = [header_of(data, e.position) for e in iter_entries(data)][2]
    assert (empty.base_offset, empty.count, empty.producer_id) == (7, 0, 7)
    assert all(e.magic == 2 for e in iter_entries(data))
    # a recorded one of Kafka's own: base offset and last offset delta stay, offsets are gaps
    theirs = golden("fetch v4 of a compacted log with gaps")
    assert [m.offset for m in iter_messages(theirs)] != list(
        range(len(list(iter_messages(theirs))))
    )


@pytest.mark.scenario("modern-57")
@pytest.mark.parametrize("codec", range(4))
def test_compaction_of_format_1(tmp_path, codec):
    log = open_log(tmp_path)
    inner = timed([(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4")])
    log.append(writable(timed_wrapper(inner, codec, time=1003) if codec else inner))
    log.append(writable(timed([(b"c", b"5")])))
    data = cleaned(tmp_path, log)
    assert [m[:3] for m in iter_messages(data)] == [
        (1, b"b", b"2"),
        (2, b"a", b"3"),
        (4, b"c", b"5"),
    ]
    assert all(e.magic == 1 for e in iter_entries(data))


@pytest.mark.scenario("modern-57")
def test_compaction_keeps_control_batches(tmp_path):
    control = batch([(b"\0\0\0\1", b"v", 0, [])], 5, attributes=0x30)
    log = open_log(tmp_path)
    follower = [batch([(b"a", b"1", 0, [])], 0), control, batch([(b"a", b"2", 0, [])], 9)]
    log.append(writable(b"".join(follower)), assign_offsets=False)
    assert cleaned(tmp_path, log) == b"".join(follower[1:])
