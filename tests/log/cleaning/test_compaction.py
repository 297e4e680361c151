"""Compaction of files against a plain reading of what it means."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka08.errors import KafkaError
from kafka08.log.cleaning.cleaner import LogCleaner
from kafka08.log.cleaning.cleaner_job import Job, SealedSegment
from kafka08.log.cleaning.compaction import clean, group_segments
from kafka08.log.cleaning.throttler import SharedTime, Throttler
from kafka08.log.log import Log
from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry
from kafka08.message.scan import iter_entries
from kafka08.message.sets import encode_set, iter_messages
from tests.fakes.runtime import FakeClock
from tests.log.cleaning.support import (
    Found,
    clean_once,
    cleaner_of,
    compacted_log,
    contents,
    keys,
    put,
    put_keys,
    survivors,
)
from tests.log.support import open_log, writable
from tests.message.batches import batch, timed
from tests.message.sets import has_absolute_offsets

NO_LIMIT = Throttler(float("inf"), -1)

# A key of each kind: short, as long as a digest, longer, missing.
some_keys = st.sampled_from([b"", b"a", b"b", b"c", b"d" * 16, b"e" * 17, b"f" * 100, None])
some_values = st.none() | st.binary(max_size=12) | st.just(b"long" * 30)
some_messages = st.lists(st.tuples(some_keys, some_values), min_size=1, max_size=6)


@st.composite
def produced(draw: st.DrawFn) -> bytes:
    """A set as producers send them: plain, wrapped, nested, several of these."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        messages = draw(some_messages)
        codec = draw(st.sampled_from([0, 0, 1, 2, 3]))
        data = encode_set(messages, codec)
        if codec and draw(st.integers(0, 3)) == 0:
            data = encode_entry(b"outer", compress(2, data + encode_set(messages)), 0, 2)
        parts.append(data)
    return b"".join(parts)


@given(
    batches=st.lists(produced(), min_size=1, max_size=12),
    later=st.lists(produced(), max_size=4),
    segment_bytes=st.sampled_from([150, 600, 5000]),
    buffer_size=st.sampled_from([0, 9000, 524288]),
    room=st.sampled_from([1, 3, 1000]),
)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_the_last_message_of_each_key_survives(batches, later, segment_bytes, buffer_size, room):
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafka08.log.cleaning.cleaner.max_entries", lambda *_: room)
        log = compacted_log(directory, segment_bytes=max(segment_bytes, 5000))
        cleaner = cleaner_of(log, log_cleaner_io_buffer_size=buffer_size)
        for round_ in (batches, later):
            for data in round_:
                log.config = log.config.override({"cleanup.policy": "delete"})  # keys may miss
                log.append(writable(data))
                log.config = log.config.override({"cleanup.policy": "compact"})
                if log.segments[-1].size > segment_bytes:
                    log.roll()
            before, end = contents(log), log.segments[-1].base_offset
            size = log.size
            while clean_once(cleaner):
                pass
            assert contents(log) == survivors(before, end)
            assert end == log.log_start_offset or cleaner.checkpoint(log) == end
            assert log.size <= size + 200 * len(log.segments)  # rewritten wrappers
            check_files(log)
        reopened = open_log(directory, config=log.config)
        assert contents(reopened) == contents(log)
        assert reopened.log_end_offset == log.log_end_offset


def check_files(log: Log) -> None:
    """Indexes are true, wrappers say their offsets, nothing is left over."""
    for segment in log.segments:
        data = Path(segment.path).read_bytes()
        positions = {}
        previous = segment.base_offset - 1
        for entry in iter_entries(data):
            positions[entry.position] = (previous, entry.offset)
            previous = entry.offset
        for slot in range(segment.index.entries):
            offset, position = segment.index.entry(slot)
            low, high = positions[position]
            assert low < offset <= high and offset > segment.base_offset
            assert offset == next(iter_messages(data[position:])).offset
    names = {path.name for path in Path(log.directory).iterdir()} - {"cleaning-times"}
    assert {name.split(".", 1)[1] for name in names} <= {
        "log",
        "index",
        "log.deleted",
        "index.deleted",
    }


@pytest.mark.parametrize("codec", [0, 1])
def test_index_entries_have_the_first_offset_at_their_position(tmp_path, codec):
    """Also where messages before them are removed; dump-log reports other entries as wrong."""
    log = compacted_log(tmp_path, segment_bytes=60_000, index_interval_bytes=100)
    for number in range(100):
        keys = (b"again", b"%d" % number, b"again", b"last %d" % (number % 7))
        log.append(writable(encode_set([(key, b"v" * 30) for key in keys], codec, 0)))
    log.roll()
    put_keys(log, "x")
    assert clean_once(cleaner_of(log))
    assert log.segments[0].index.entries > 10
    check_files(log)


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_survivors_of_a_wrapper_stay_wrapped(tmp_path, codec):
    log = compacted_log(tmp_path)
    inner = encode_set([(k, b"v" * 30) for k in (b"a", b"b", b"a", b"c", b"d")])
    log.append(writable(encode_entry(b"outer", compress(codec, inner), 0, codec)))
    put_keys(log, "d")
    log.roll()
    put_keys(log, "x")
    assert clean_once(cleaner_of(log))
    data = Path(log.segments[0].path).read_bytes()
    wrapper, plain = iter_entries(data)
    # b, a and c; d came again later. The wrapper has the offset of c.
    assert (wrapper.codec, wrapper.offset, plain.offset) == (codec, 3, 5)
    assert has_absolute_offsets(data[: wrapper.size_total])
    assert [m[:2] for m in contents(log)] == [(1, b"b"), (2, b"a"), (3, b"c"), (5, b"d"), (6, b"x")]
    assert data[18:27] == b"\0\0\0\5outer"


def test_what_survives_as_a_whole_is_not_touched(tmp_path):
    log = compacted_log(tmp_path)
    log.append(writable(encode_set([(b"a", b"1"), (b"b", b"2")], 1, 0)))
    log.append(writable(encode_set([(b"c", b"3"), (b"d", b"4")], 2, 2)))
    log.append(writable(encode_set([(b"x", b"5")])))
    log.roll()
    put_keys(log, "y")
    path = Path(log.segments[0].path)
    before, node = path.read_bytes(), os.stat(path).st_ino
    assert clean_once(cleaner_of(log))
    # not even copied
    assert (path.read_bytes(), os.stat(path).st_ino) == (before, node)
    put_keys(log, "x")
    log.roll()
    put_keys(log, "y")
    assert clean_once(cleaner_of(log))
    assert path.read_bytes()[: len(before) - 28] == before[:-28]  # all but the plain x


def test_wrong_inner_offsets_are_put_right_on_the_way(tmp_path):
    log = compacted_log(tmp_path)
    put_keys(log, "z")
    log.append(writable(encode_set([(b"a", b"1"), (b"b", b"2")], 2)))
    log.roll()
    put_keys(log, "y")
    before = contents(log)
    assert clean_once(cleaner_of(log))
    assert contents(log) == before
    data = Path(log.segments[0].path).read_bytes()
    _, wrapper = iter_entries(data)
    assert has_absolute_offsets(data[wrapper.position :])


def test_a_wrapper_that_would_get_too_large_stays_as_it_is(tmp_path):
    log = compacted_log(tmp_path, segment_bytes=10**6)
    rng = random.Random(7)
    pairs = [(b"k", rng.randbytes(50)) for _ in range(100)]
    inner = encode_set(pairs)
    # all messages the same length, offsets all 0: compresses better than rising ones
    same = b"".join(
        [bytes(8) + inner[e.position + 8 : e.position + e.size_total] for e in iter_entries(inner)]
    )
    log.append(writable(encode_entry(None, compress(1, same), 0, 1)))
    log.roll()
    put_keys(log, "y")
    log.config = log.config.override({"max.message.bytes": "100"})
    cleaner = cleaner_of(log)
    assert clean_once(cleaner)
    assert [m[0] for m in contents(log)] == [99, 100]


HOUR = 3_600_000


def hourly(tmp_path: Path, clock: FakeClock, magic: int) -> Log:
    """A log that keeps tombstones for an hour; ``put_dated`` fills it."""
    return compacted_log(
        tmp_path,
        clock,
        delete_retention_ms=HOUR,
        segment_bytes=10**6,
        message_format_version=["0.9.0", "0.10.0", "3.0"][magic],
    )


def put_dated(log: Log, magic: int, text: str, time: int) -> None:
    """``put_keys`` in a message format with these dates, in a segment of its own."""
    for letter in text:
        key, value = letter.lower().encode(), None if letter.isupper() else b"v" * 40
        sets = (
            encode_set([(key, value)]),
            timed([(key, value)], time=time),
            batch([(key, value, 0, [])], time=time),
        )
        log.append(writable(sets[magic]))
    log.roll()


@pytest.mark.parametrize("magic", [0, 1, 2])
class TestTombstones:
    """Those written a moment ago stay for an hour, whatever the dates of messages and files."""

    def clean(self, log: Log, cleaner: LogCleaner, magic: int, date: int) -> str:
        put_dated(log, magic, "zz", date)  # makes the log dirty
        assert clean_once(cleaner)
        return keys(log)

    @pytest.mark.parametrize("offset", [0, -10 * HOUR, 2 * HOUR, None])
    def test_they_outlive_any_date(self, tmp_path, magic, offset):
        """``offset``: how far the dates of other messages lie from the clock; None: in 1970."""
        clock = FakeClock()
        date = 1 if offset is None else clock.now_ms + offset
        log = hourly(tmp_path, clock, magic)
        cleaner = cleaner_of(log, clock)
        put_dated(log, magic, "abA", date)
        assert "a" in self.clean(log, cleaner, magic, date)
        for _ in range(3):
            clock.now_ms += 1000
            assert "a" in self.clean(log, cleaner, magic, date)
        clock.now_ms += HOUR
        assert self.clean(log, cleaner, magic, date) == "bz"

    def test_they_stay_while_a_replica_may_not_have_them(self, tmp_path, magic):
        """It would keep what they delete when it is back."""
        clock = FakeClock()
        log = hourly(tmp_path, clock, magic)
        cleaner = cleaner_of(log, clock)
        put_dated(log, magic, "abA", clock.now_ms)
        for _ in range(3):
            put_dated(log, magic, "zz", clock.now_ms)
            assert clean_once(cleaner, is_everywhere=False)
            assert "a" in keys(log)
            clock.now_ms += HOUR
        assert self.clean(log, cleaner, magic, clock.now_ms) == "bz"

    def test_one_date_far_ahead_ages_nothing(self, tmp_path, magic):
        clock = FakeClock()
        log = hourly(tmp_path, clock, magic)
        cleaner = cleaner_of(log, clock)
        put_dated(log, magic, "ab", clock.now_ms)
        put_dated(log, magic, "cA", clock.now_ms)
        log.config = log.config.override({"segment.bytes": "200"})  # its segment stays alone
        assert "a" in self.clean(log, cleaner, magic, clock.now_ms + 2 * HOUR)
        clock.now_ms += 1000
        assert "a" in self.clean(log, cleaner, magic, clock.now_ms)

    def test_dates_that_stand_still_do_not_keep_them(self, tmp_path, magic):
        clock = FakeClock()
        date = clock.now_ms
        log = hourly(tmp_path, clock, magic)
        cleaner = cleaner_of(log, clock)
        put_dated(log, magic, "aA", date)
        assert "a" in self.clean(log, cleaner, magic, date)
        clock.now_ms += HOUR
        assert self.clean(log, cleaner, magic, date) == "z"

    @pytest.mark.parametrize("file_date", [1, 2**33])
    def test_the_times_of_files_do_not_count(self, tmp_path, magic, file_date):
        """A directory that was copied has any."""
        clock = FakeClock()
        log = hourly(tmp_path, clock, magic)
        cleaner = cleaner_of(log, clock)
        put_dated(log, magic, "aA", clock.now_ms)
        for seconds in (0, 1, HOUR // 1000 - 1):
            for segment in log.segments:
                os.utime(segment.path, (file_date, file_date))
            clock.now_ms += seconds * 1000 - (seconds > 1) * 1000
            assert "a" in self.clean(log, cleaner, magic, clock.now_ms)
        clock.now_ms += 1000
        assert "a" not in self.clean(log, cleaner, magic, clock.now_ms)

    def test_each_waits_from_its_own_first_cleaning(self, tmp_path, magic):
        clock = FakeClock()
        log = hourly(tmp_path, clock, magic)
        cleaner = cleaner_of(log, clock)
        put_dated(log, magic, "aA", clock.now_ms)
        assert keys(log) and self.clean(log, cleaner, magic, clock.now_ms)
        clock.now_ms += HOUR // 2
        put_dated(log, magic, "bB", clock.now_ms)
        assert self.clean(log, cleaner, magic, clock.now_ms) == "abz"
        clock.now_ms += HOUR // 2
        assert self.clean(log, cleaner, magic, clock.now_ms) == "bz"
        clock.now_ms += HOUR // 2
        assert self.clean(log, cleaner, magic, clock.now_ms) == "z"

    def test_a_restart_does_not_begin_the_wait_again(self, tmp_path, magic):
        clock = FakeClock()
        log = hourly(tmp_path, clock, magic)
        put_dated(log, magic, "aA", clock.now_ms)
        assert "a" in self.clean(log, cleaner_of(log, clock), magic, clock.now_ms)
        clock.now_ms += HOUR
        log.flush()
        log.close()
        again = Log(log.directory, log.config, recovery_point=log.log_end_offset, clock=clock)
        assert self.clean(again, cleaner_of(again, clock), magic, clock.now_ms) == "z"

    def test_a_truncation_does(self, tmp_path, magic):
        clock = FakeClock()
        log = hourly(tmp_path, clock, magic)
        cleaner = cleaner_of(log, clock)
        put_dated(log, magic, "aAbc", clock.now_ms)
        assert "a" in self.clean(log, cleaner, magic, clock.now_ms)
        clock.now_ms += HOUR
        log.truncate_to(4)
        cleaner.truncated()
        put_dated(log, magic, "B", clock.now_ms)
        found = self.clean(log, cleaner, magic, clock.now_ms)
        assert "a" in found and "b" in found
        clock.now_ms += HOUR
        assert self.clean(log, cleaner, magic, clock.now_ms) == "cz"

    def test_a_replica_that_was_fetched_again_waits_itself(self, tmp_path, magic):
        clock = FakeClock()
        log = hourly(tmp_path, clock, magic)
        cleaner = cleaner_of(log, clock)
        put_dated(log, magic, "aA", clock.now_ms)
        assert "a" in self.clean(log, cleaner, magic, clock.now_ms)
        clock.now_ms += HOUR
        log.truncate_fully_and_start_at(0)
        cleaner.truncated()
        put_dated(log, magic, "aA", clock.now_ms)
        assert "a" in self.clean(log, cleaner, magic, clock.now_ms)

    def test_a_clock_that_was_set_back_counts_from_then_on(self, tmp_path, magic):
        clock = FakeClock()
        log = hourly(tmp_path, clock, magic)
        cleaner = cleaner_of(log, clock)
        put_dated(log, magic, "aA", clock.now_ms)
        assert "a" in self.clean(log, cleaner, magic, clock.now_ms)
        clock.now_ms -= 1000 * HOUR
        assert "a" in self.clean(log, cleaner, magic, clock.now_ms)
        clock.now_ms += HOUR
        assert "a" not in self.clean(log, cleaner, magic, clock.now_ms)

    def test_without_retention_the_next_cleaning_takes_them(self, tmp_path, magic):
        clock = FakeClock()
        log = hourly(tmp_path, clock, magic)
        log.config = log.config.override({"delete.retention.ms": "0"})
        cleaner = cleaner_of(log, clock)
        put_dated(log, magic, "aA", clock.now_ms)
        assert "a" in self.clean(log, cleaner, magic, clock.now_ms)
        assert self.clean(log, cleaner, magic, clock.now_ms) == "z"


class TestFiles:
    def test_the_last_message_stays(self, tmp_path):
        # a follower could never reach the log's end otherwise
        log = compacted_log(tmp_path, delete_retention_ms=-(10**15), segment_bytes=200)
        put_keys(log, "ab")
        log.roll()
        put_keys(log, "cAB")
        log.roll()
        sources = [
            SealedSegment(0, 2, log.segments[0].size, 8),
            SealedSegment(2, 5, log.segments[1].size, 8),
        ]
        found = job(Path(log.directory), sources, tombstones_below=5, segment_bytes=10**6)
        clean(found, lambda line: None, lambda group: None, NO_LIMIT)
        left = iter_messages(Path(found.path(0) + ".cleaned").read_bytes())
        assert [m.offset for m in left] == [2, 4]

    def test_mtime_is_kept(self, tmp_path):
        log = compacted_log(tmp_path, segment_bytes=10**5)
        put_keys(log, "aab")
        log.roll()
        put_keys(log, "bcc")
        log.roll()
        put_keys(log, "x")
        times = [1_300_000_000_123_000_000, 1_350_000_000_456_000_000]
        for segment, at in zip(log.segments, times, strict=False):
            os.utime(segment.path, ns=(at, at))
        assert clean_once(cleaner_of(log))
        assert [s.base_offset for s in log.segments] == [0, 6]
        assert os.stat(log.segments[0].path).st_mtime_ns == times[1]


def job(directory: Path, sources: list[SealedSegment], **changes: object) -> Job:
    given = {
        "directory": str(directory),
        "sources": sources,
        "first_dirty_offset": 0,
        "tombstones_below": 0,
        "max_entries": 1000,
        "io_buffer_bytes": 4096,
        "segment_bytes": 1000,
        "segment_index_bytes": 80,
        "index_interval_bytes": 100,
        "max_message_bytes": 10**6,
    }
    return Job(**{**given, **changes})  # type: ignore[arg-type]


def test_groups_fit_a_segment_its_index_and_32_bits(tmp_path):
    def bases(sources: list[SealedSegment], end: int = 1 << 40) -> list[list[int]]:
        return [[s.base_offset for s in g] for g in group_segments(job(tmp_path, sources), end)]

    small = [SealedSegment(i * 10, i * 10 + 10, 300, 8) for i in range(7)]
    assert bases(small) == [[0, 10, 20], [30, 40, 50], [60]]
    assert bases(small, 30) == [[0, 10, 20]]
    assert bases(small, 31) == [[0, 10, 20], [30]]
    assert bases([s._replace(size=500) for s in small[:2]]) == [[0], [10]]  # 1000 is no more
    indexed = [s._replace(size=0, index_size=40) for s in small[:3]]
    assert bases(indexed) == [[0], [10], [20]]
    far = [
        SealedSegment(0, 10, 1, 0),
        SealedSegment(10, 1 << 31, 1, 0),
        SealedSegment(1 << 31, (1 << 31) + 1, 1, 0),
    ]
    assert bases(far) == [[0, 10], [1 << 31]]
    assert bases([SealedSegment(0, 1, 5000, 0), SealedSegment(1, 2, 5000, 0)]) == [[0], [1]]


@pytest.mark.parametrize("size", [10, 5000, 300_000])
def test_entries_of_any_size_whatever_the_buffer(tmp_path, size):
    log = compacted_log(tmp_path, segment_bytes=10**7)
    for key in (b"a", b"b" * size, b"a", b"b" * size):
        put(log, (key, b"v" * size))
    log.roll()
    put_keys(log, "x")
    assert clean_once(cleaner_of(log, log_cleaner_io_buffer_size=0))
    assert [m[0] for m in contents(log)] == [2, 3, 4]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[:-1] + b"?", id="crc"),
        pytest.param(lambda data: data[:-1], id="cut"),
        pytest.param(lambda data: data + b"\0" * 40, id="size"),
        pytest.param(lambda data: data + data, id="order"),
        pytest.param(
            lambda data: data + encode_entry(None, b"no gzip", 50, 1), id="undecodable wrapper"
        ),
    ],
)
@pytest.mark.parametrize("first_dirty", [0, 3])
def test_damage_ends_the_cleaning_with_an_error(tmp_path, damage, first_dirty):
    """Whether the map meets it or only the copy."""
    data = damage(encode_set([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]))
    more = encode_set([(b"a", b"1"), (b"b", b"2")], base_offset=60)
    (tmp_path / f"{0:020d}.log").write_bytes(data)
    (tmp_path / f"{60:020d}.log").write_bytes(more)
    sources = [SealedSegment(0, 60, len(data), 0), SealedSegment(60, 62, len(more), 0)]
    first = 60 if first_dirty else 0
    names = sorted(os.listdir(tmp_path))
    with pytest.raises(KafkaError):
        clean(job(tmp_path, sources, first_dirty_offset=first), lambda _: None, print, NO_LIMIT)
    assert (tmp_path / names[0]).read_bytes() == data


def test_a_map_that_is_full_ends_at_a_segment_base_if_it_can(tmp_path):
    data = [encode_set([(b"%d" % i, b"")], base_offset=i) for i in range(6)]
    sources = []
    for base in (0, 2, 4):
        (tmp_path / f"{base:020d}.log").write_bytes(data[base] + data[base + 1])
        sources.append(SealedSegment(base, base + 2, len(data[base]) * 2, 0))
    ends = []
    for room in range(1, 9):
        found = clean(
            job(tmp_path, sources, max_entries=room), lambda _: None, lambda _: None, NO_LIMIT
        )
        ends.append(found[0])
    assert ends == [1, 2, 2, 2, 4, 4, 6, 6] or ends == [1, 2, 2, 4, 4, 6, 6, 6]


def test_throttle_holds_all_who_share_the_file_to_one_rate():
    now, sleeps = [100.0], []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        now[0] += seconds

    shared = SharedTime()
    one = Throttler(1000, shared.fd, monotonic=lambda: now[0], sleep=sleep)
    other = Throttler(1000, shared.fd, monotonic=lambda: now[0], sleep=sleeps.append)
    one.maybe_throttle(500)
    assert sleeps == [0.5]
    other.maybe_throttle(300)  # it does not sleep here, so the next one pays as well
    one.maybe_throttle(200)
    assert sleeps[1:] == pytest.approx([0.3, 0.5])
    now[0] += 60  # what was not used is not saved up
    one.maybe_throttle(1000)
    assert sleeps[-1] == 1.0


def test_reads_and_writes_are_paid_for(tmp_path):
    paid: list[int] = []

    class Paid(Throttler):
        def maybe_throttle(self, observed: int) -> None:
            paid.append(observed)

    data = encode_set([(b"%d" % (i % 50), b"v" * 50) for i in range(1000)])
    (tmp_path / f"{0:020d}.log").write_bytes(data)
    found = job(tmp_path, [SealedSegment(0, 1000, len(data), 0)])
    _, stats = clean(found, lambda _: None, lambda _: None, Paid(1, -1))
    assert sum(paid) == 2 * len(data) + stats.bytes_written
    assert max(paid) <= 4096
    assert (stats.messages_read, stats.messages_written) == (1000, 50)
    assert stats.map_bytes_read == stats.bytes_read == len(data)


def test_messages_of_the_model_are_what_is_meant():
    messages: list[Found] = [(0, b"a", b""), (1, None, b""), (2, b"a", b""), (3, b"a", b"")]
    assert survivors(messages, 3) == messages[1:]
    assert list(iter_messages(b"")) == []
