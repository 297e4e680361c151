"""Rebuilding: stretch after stretch, what needs none, and what ends it early."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.errors import KafkaError
from kafka08.log.segments.names import rebuilt_paths
from kafka08.log.segments.segment import LogSegment
from kafka08.message.compression import GZIP, decompress
from kafka08.message.scan import iter_entries
from kafka08.server.rebuild import process as rebuilding
from kafka08.server.rebuild.files import open_rebuilt, stored_until
from kafka08.server.rebuild.process import RebuildOutcome, Stretch, parse_event
from tests.log.support import writable
from tests.message.batches import batch, simple, timed, timed_wrapper
from tests.message.sets import has_absolute_offsets
from tests.server.rebuild.support import CODECS, old_log, produce, stretch_of


@pytest.fixture
def segment(tmp_path: Path) -> LogSegment:
    log = old_log(tmp_path, segment_bytes=1 << 20)
    produce(log, 50)
    return log.segments[0]


def rebuild(segment: LogSegment, start: int, stop: int) -> RebuildOutcome:
    with stretch_of(segment, start, stop) as stretch:
        outcome = rebuilding.rebuild(stretch)
    segment.rebuilt = open_rebuilt(segment)
    return outcome


def content(segment: LogSegment) -> list[bytes]:
    return [Path(path).read_bytes() for path in rebuilt_paths(segment.path)]


@pytest.mark.parametrize("codec", CODECS)
def test_entries_have_true_offsets_inside(tmp_path: Path, codec: int) -> None:
    log = old_log(tmp_path, segment_bytes=1 << 20)
    produce(log, 10, codec)
    produce(log, 5, codec=0)
    produce(log, 3, codec)
    segment = log.segments[0]
    assert rebuild(segment, 0, segment.size) == (segment.size, True)
    data = content(segment)[0]
    stored = Path(segment.path).read_bytes()
    made = list(iter_entries(data))
    assert [each.offset for each in made] == [each.offset for each in iter_entries(stored)]
    assert [each.codec for each in made] == [each.codec for each in iter_entries(stored)]
    wrappers = [data[each.position : each.stop] for each in made if each.codec]
    assert len(wrappers) == 13 and all(map(has_absolute_offsets, wrappers))
    assert stored_until(segment, segment.rebuilt) == segment.size


def test_stretches_make_the_same_files_as_one(segment: LogSegment) -> None:
    assert rebuild(segment, 0, segment.size) == (segment.size, True)
    expected = content(segment)[0]
    segment.drop_rebuilt()
    position = 0
    for stop in (1, 700, 701, 2000, 2001, segment.size):
        position, _ = rebuild(segment, position, max(stop, position))
        assert stored_until(segment, segment.rebuilt) == position
    assert content(segment)[0] == expected


@pytest.mark.parametrize("piece", [1, 100, 1000])
def test_read_in_pieces(segment: LogSegment, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rebuild(segment, 0, segment.size)
    expected = content(segment)
    monkeypatch.setattr(rebuilding, "PIECE_BYTES", piece)
    segment.drop_rebuilt()
    assert rebuild(segment, 0, segment.size) == (segment.size, True)
    assert content(segment) == expected


def test_entries_that_are_right_need_none(tmp_path: Path) -> None:
    log = old_log(tmp_path, segment_bytes=1 << 20, compressed_sets="normalised")
    produce(log, 10)
    segment = log.segments[0]
    assert rebuild(segment, 0, segment.size) == (0, False)
    assert not any(map(os.path.exists, rebuilt_paths(segment.path)))


def test_a_crash_leaves_what_was_complete_before(
    segment: LogSegment, monkeypatch: pytest.MonkeyPatch
) -> None:
    middle = segment.position_of(100)
    assert middle is not None
    rebuild(segment, 0, middle)
    before = content(segment)
    write = rebuilding.write_all
    steps = 0

    def dies(fd: int, data: bytes, position: int) -> None:
        nonlocal steps
        steps += 1
        if steps == 2:
            write(fd, data[: len(data) // 2 + 3], position)  # half of an index entry
            raise KeyboardInterrupt
        write(fd, data, position)

    monkeypatch.setattr(rebuilding, "write_all", dies)
    with pytest.raises(KeyboardInterrupt):
        rebuild(segment, middle, segment.size)
    monkeypatch.setattr(rebuilding, "write_all", write)
    assert len(content(segment)[0]) > len(before[0])
    # the broker of that process knows where it was
    position, _ = rebuild(segment, middle, segment.size)
    assert position == segment.size
    # another one takes a whole number of index entries only
    with open(rebuilt_paths(segment.path)[1], "ab") as file:
        file.write(b"123")
    assert open_rebuilt(segment) is None


def test_a_crash_before_the_index_is_written(
    segment: LogSegment, monkeypatch: pytest.MonkeyPatch
) -> None:
    middle = segment.position_of(100)
    assert middle is not None
    rebuild(segment, 0, middle)

    def dies(fd: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fdatasync", dies)
    with pytest.raises(KeyboardInterrupt), stretch_of(segment, middle, segment.size) as stretch:
        rebuilding.rebuild(stretch)
    monkeypatch.undo()
    segment.rebuilt = open_rebuilt(segment)
    assert stored_until(segment, segment.rebuilt) == middle
    rebuild(segment, middle, segment.size)
    assert stored_until(segment, segment.rebuilt) == segment.size


def test_damage_ends_it(segment: LogSegment) -> None:
    position = segment.position_of(100)
    assert position is not None
    os.pwrite(segment.file.fd, bytes(12), position)  # a size no entry has
    assert rebuild(segment, 0, segment.size) == (position, True)


def test_a_wrapper_that_cannot_be_read_stays_as_it_is(segment: LogSegment) -> None:
    position = segment.position_of(100)
    assert position is not None
    os.pwrite(segment.file.fd, b"\xff" * 4, position + 12)  # its crc
    assert rebuild(segment, 0, segment.size) == (segment.size, True)
    log = next(each for each in iter_entries(content(segment)[0]) if each.offset == 103)
    assert log.crc == 0xFFFFFFFF


def test_an_index_holds_no_greater_offset(segment: LogSegment) -> None:
    with stretch_of(segment, 0, segment.size) as stretch:
        far = stretch._replace(base_offset=-(1 << 31))
        assert rebuilding.rebuild(far) == (0, True)


def test_not_more_than_an_index_can_point_at(
    segment: LogSegment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "PIECE_BYTES", 500)
    monkeypatch.setattr(rebuilding, "MAX_FILE_BYTES", 2000)
    position, differs = rebuild(segment, 0, segment.size)
    assert differs and 0 < position < segment.size
    assert len(content(segment)[0]) <= 2000
    assert stored_until(segment, segment.rebuilt) == position


def test_gzip_is_small(segment: LogSegment) -> None:
    rebuild(segment, 0, segment.size)
    entry = next(iter_entries(content(segment)[0]))
    data = content(segment)[0][entry.position + 26 : entry.stop]
    assert len(decompress(GZIP, data)) > 2 * len(data)


def test_the_child_process(segment: LogSegment) -> None:
    with stretch_of(segment, 0, segment.size) as stretch:
        bad = stretch._replace(stored_fd=9999)
        process = subprocess.Popen(
            [sys.executable, "-m", "kafka08.server.rebuild.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=stretch[:3],
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(rebuilding.encode_job([bad, stretch]))
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(2)]
        process.wait(60)
        process.stdin.close()
        process.stdout.close()
    failure = parse_event(lines[0])
    assert isinstance(failure, OSError) and failure.errno == 9
    assert parse_event(lines[1]) == RebuildOutcome(segment.size, True)
    segment.rebuilt = open_rebuilt(segment)
    assert stored_until(segment, segment.rebuilt) == segment.size


def test_the_child_ends_with_the_broker(segment: LogSegment) -> None:
    with stretch_of(segment, 0, segment.size) as stretch:
        process = subprocess.Popen(
            [sys.executable, "-m", "kafka08.server.rebuild.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        many = [stretch._replace(stored_fd=9999)] * 5
        process.stdin.write(rebuilding.encode_job(many))
        process.stdin.close()
        assert process.wait(60) in (0, 1)


def test_errors_that_are_not_the_disks() -> None:
    error = parse_event(json.dumps({"error": "odd", "errno": None}).encode())
    assert isinstance(error, KafkaError) and str(error) == "odd"


def test_a_job_has_every_field(segment: LogSegment) -> None:
    with stretch_of(segment, 0, 10) as stretch:
        line = rebuilding.encode_job([stretch])
    assert [Stretch(*each) for each in json.loads(line)] == [stretch]
    assert line.endswith(b"\n")


@pytest.mark.parametrize(
    "later",
    [
        batch(simple(b"a")),
        batch(simple(b"a"), codec=4),
        timed([(b"k", b"v")]),
        timed_wrapper(timed([(b"k", b"v")]), 1),
    ],
    ids=["batch", "zstd batch", "timed", "timed wrapper"],
)
def test_it_ends_before_the_first_entry_of_a_later_format(tmp_path: Path, later: bytes) -> None:
    log = old_log(tmp_path, segment_bytes=1 << 20)
    produce(log, 5)
    segment = log.segments[0]
    end = segment.size
    log.append(writable(later))
    produce(log, 5)
    assert rebuild(segment, 0, segment.size) == (end, True)
    assert segment.rebuilt is not None and stored_until(segment, segment.rebuilt) == end
    before = content(segment)
    assert rebuild(segment, end, segment.size).stored_until == end
    assert content(segment) == before
