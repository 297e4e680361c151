"""Rebuilt entries: which are used, what readers get of them, and what removes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka08.log.log import Log
from kafka08.log.segments.names import rebuilt_paths
from kafka08.server.rebuild import files as rebuilt
from kafka08.server.rebuild import process as rebuilding
from kafka08.server.rebuild.files import open_rebuilt
from tests.fakes.runtime import FakeClock
from tests.log.cleaning.support import clean_once, cleaner_of
from tests.log.support import open_log, segment_paths
from tests.server.rebuild.support import CODECS, fetched, is_rebuilt, old_log, produce, stretch_of


def rebuild_all(log: Log) -> None:
    """Every segment as a whole."""
    for segment in log.segments:
        with stretch_of(segment, 0, segment.size) as stretch:
            rebuilding.rebuild(stretch)
        segment.rebuilt = open_rebuilt(segment)


def files(log: Log) -> list[str]:
    return sorted(name for name in os.listdir(log.directory) if ".rebuilt" in name)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = old_log(tmp_path)
    produce(log, 60)
    rebuild_all(log)
    assert len(log.segments) > 2
    return log


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("max_bytes", [400, 1500, 1 << 20])
def test_consumers_get_all_messages_at_their_true_offsets(
    tmp_path: Path, codec: int, max_bytes: int
) -> None:
    log = old_log(tmp_path)
    produce(log, 40, codec)
    rebuild_all(log)
    expected = [(n, b"text %d " % n * 12) for n in range(log.log_end_offset)]
    assert fetched(log, max_bytes) == expected
    assert fetched(log, 1 << 20, until=log.log_end_offset - 1) == expected[:-4]


def test_replicas_get_the_stored_bytes(log: Log) -> None:
    for segment in log.segments:
        part = log.read(segment.base_offset, 1 << 20)
        assert part.read() == Path(segment.path).read_bytes()
        assert not is_rebuilt(part)


def test_each_offset_is_found(log: Log) -> None:
    for offset in range(log.log_end_offset):
        part = log.read(offset, 1 << 20, for_consumer=True)
        stored = log.read(offset, 1 << 20)
        assert is_rebuilt(part)
        assert part.read()[:8] == stored.read()[:8]


def test_what_was_appended_since_is_read_as_stored(log: Log) -> None:
    end = log.log_end_offset
    produce(log, 1)
    part = log.read(end, 1 << 20, for_consumer=True)
    assert part.file is log.segments[-1].file and part.size


def test_a_rebuilt_entry_larger_than_the_fetch_is_read_as_stored(log: Log) -> None:
    part = log.read(0, 100, for_consumer=True)
    assert part.file is log.segments[0].file and part.size == 100
    assert not log.read(0, 0, for_consumer=True).size


def test_found_again_after_a_clean_shutdown_only(log: Log, tmp_path: Path) -> None:
    found = files(log)
    expected = fetched(log)
    log.flush()
    log.close()
    again = old_log(tmp_path, clean_shutdown=True)
    assert files(again) == found
    assert not fetched(again)
    for segment in again.segments:
        segment.rebuilt = open_rebuilt(segment)
    assert fetched(again) == expected
    again.close()
    assert files(old_log(tmp_path)) == []


def test_those_without_a_segment_are_removed(log: Log, tmp_path: Path) -> None:
    log.close()
    for path in segment_paths(log.directory)[:1] + segment_paths(log.directory, ".index")[:1]:
        path.unlink()
    old_log(tmp_path, clean_shutdown=True)
    assert not any(name.startswith("0" * 20) for name in files(log))
    assert files(log)


def retention(log: Log) -> None:
    log.config = log.config.replace(retention_bytes=1)
    log.delete_old_segments()
    log.files.remove_due(1 << 60)


def truncation(log: Log) -> None:
    log.truncate_to(2)


def truncation_of_all(log: Log) -> None:
    log.truncate_fully_and_start_at(5)
    log.files.remove_due(1 << 60)


@pytest.mark.parametrize("change", [retention, truncation, truncation_of_all])
def test_they_go_with_their_segment(log: Log, change: Callable[[Log], None]) -> None:
    part = log.read(0, 1 << 20, for_consumer=True)
    expected = part.read()
    change(log)
    first = rebuilt_paths(os.path.join(log.directory, "0" * 20 + ".log"))
    assert not any(map(os.path.exists, first))
    log.files.remove_due(1 << 60)
    bases = [name[:20] for name in files(log)]
    assert {int(base) for base in bases} <= {segment.base_offset for segment in log.segments}
    assert part.read() == expected  # under way
    log.close()
    assert is_rebuilt(part)


def test_after_a_cut_only_what_was_not_cut_is_served(log: Log) -> None:
    bases = [segment.base_offset for segment in log.segments]
    log.truncate_to(bases[2] + 4)
    produce(log, 3, texts=9)
    for segment in log.segments:
        segment.rebuilt = segment.rebuilt or open_rebuilt(segment)
    assert log.segments[2].rebuilt is None
    assert [offset for offset, _ in fetched(log)] == list(range(bases[2]))


def test_a_compacted_segment_has_none_of_what_it_replaces(tmp_path: Path) -> None:
    clock = FakeClock()
    log = old_log(tmp_path, clock, cleanup_policy="compact", min_cleanable_dirty_ratio=0.0)
    produce(log, 60, keys=20)
    rebuild_all(log)
    before = log.segments[:-1]
    assert clean_once(cleaner_of(log, clock))
    assert not set(before) & set(log.segments)
    log.files.remove_due(1 << 60)
    active = log.segments[-1]
    assert files(log) == sorted(map(os.path.basename, rebuilt_paths(active.path)))


def test_deleted_with_the_log(log: Log) -> None:
    log.delete()
    assert not os.path.exists(log.directory)


def other_messages(log: Log) -> None:
    """As another broker may leave them, one that does not know of rebuilt entries."""
    segment = log.segments[0]
    data = bytearray(Path(segment.path).read_bytes())
    with open_other(log) as other:
        data[:] = other[: len(data)].ljust(len(data), b"\0")
    Path(segment.path).write_bytes(data)


class open_other:
    def __init__(self, log: Log) -> None:
        self._directory = Path(log.directory).parent / "other"

    def __enter__(self) -> bytes:
        log = old_log(self._directory, segment_bytes=1 << 20)
        produce(log, 60, texts=3)
        return Path(log.segments[0].path).read_bytes()

    def __exit__(self, *exc_info: object) -> None:
        pass


def index_of_zeros(log: Log) -> None:
    path = Path(rebuilt_paths(log.segments[0].path)[1])
    path.write_bytes(path.read_bytes() + bytes(8))


def index_past_the_end(log: Log) -> None:
    path = Path(rebuilt_paths(log.segments[0].path)[0])
    os.truncate(path, path.stat().st_size - 1)


def zeros_at_the_end(log: Log) -> None:
    path = Path(rebuilt_paths(log.segments[0].path)[0])
    size = path.stat().st_size
    os.truncate(path, size - 100)
    os.truncate(path, size)


def no_index(log: Log) -> None:
    Path(rebuilt_paths(log.segments[0].path)[1]).write_bytes(b"")


def shorter_log(log: Log) -> None:
    segment = log.segments[0]
    end = segment.position_of(log.segments[1].base_offset - 1)
    os.truncate(segment.path, end)
    segment.size = end


@pytest.mark.parametrize(
    "harm",
    [
        other_messages,
        index_of_zeros,
        index_past_the_end,
        zeros_at_the_end,
        no_index,
        shorter_log,
    ],
)
def test_files_that_do_not_belong_to_the_segment_are_removed(
    log: Log, harm: Callable[[Log], None]
) -> None:
    segment = log.segments[0]
    harm(log)
    segment.rebuilt = None
    assert open_rebuilt(segment) is None
    assert not any(map(os.path.exists, rebuilt_paths(segment.path)))


def test_what_follows_the_last_index_entry_is_not_served(log: Log) -> None:
    segment = log.segments[0]
    expected = fetched(log)
    with open(rebuilt_paths(segment.path)[0], "ab") as file:
        file.write(b"not whole")
    segment.rebuilt = open_rebuilt(segment)
    assert fetched(log) == expected


def test_which_segments_hold_wrappers(tmp_path: Path) -> None:
    log = old_log(tmp_path, segment_bytes=1 << 20)
    produce(log, 20, codec=0)
    assert not rebuilt.holds_wrappers(log.segments[0])
    produce(log, 20, codec=1)
    assert rebuilt.holds_wrappers(log.segments[0])
    empty = open_log(tmp_path / "empty")
    assert not rebuilt.holds_wrappers(empty.segments[0])
