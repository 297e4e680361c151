"""The segments of a directory, and the names that their files have on the way out and in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka08.errors import KafkaError
from kafka08.log.segments.segment_files import SegmentFiles
from tests.log.support import fill, open_log


@pytest.fixture
def files(tmp_path: Path) -> SegmentFiles:
    """Segments at 0, 2, 4 and 6."""
    log = open_log(tmp_path, segment_bytes=170)
    fill(log, 7)
    assert log.files.bases == [0, 2, 4, 6]
    return log.files


def names(files: SegmentFiles) -> list[str]:
    directory = os.path.dirname(files.active.path)
    return sorted(os.listdir(directory))


def put_cleaned(files: SegmentFiles, base: int) -> None:
    """An empty cleaned segment for a group, as the cleaner leaves it."""
    stem = os.path.join(os.path.dirname(files.active.path), f"{base:020d}")
    for suffix in (".log", ".index"):
        Path(f"{stem}{suffix}.cleaned").touch()


def test_which_segment_may_hold_an_offset(files: SegmentFiles) -> None:
    found = [files.index_of(offset) for offset in (-1, 0, 1, 2, 5, 6, 99)]
    assert found == [-1, 0, 0, 1, 2, 3, 3]
    assert files.active is files.list[3]


def test_removed_files_stay_for_a_while(files: SegmentFiles) -> None:
    before = files.changes
    with files.lock:
        files.drop(files.list[:2], 1000)
    assert files.bases == [4, 6]
    assert files.changes == before + 1
    assert sum(name.endswith(".deleted") for name in names(files)) == 4
    files.keep_until(2000, [os.path.join(os.path.dirname(files.active.path), "never there")])
    assert files.remove_due(999) == 0
    assert files.remove_due(1000) == 4
    assert sum(name.endswith(".deleted") for name in names(files)) == 0
    assert files.remove_due(2000) == 1


def test_a_directory_that_goes_owes_nothing(files: SegmentFiles) -> None:
    with files.lock:
        files.drop(files.list[:1], 1000)
        files.forget()
    assert files.remove_due(1000) == 0


def test_a_cleaned_segment_takes_the_place_of_its_group(files: SegmentFiles) -> None:
    put_cleaned(files, 0)
    files.prepare_swap([0, 2])
    assert {name for name in names(files) if name.endswith(".swap")} == {
        f"{0:020d}.log.swap",
        f"{0:020d}.index.swap",
    }
    assert files.bases == [0, 2, 4, 6]
    renamed = files.replace(5)
    assert files.bases == [0, 4, 6]
    assert files.list[0].size == 0
    assert len(renamed) == 4 and all(path.endswith(".deleted") for path in renamed)
    assert not any(name.endswith((".swap", ".cleaned")) for name in names(files))


def test_an_abandoned_swap_changes_nothing(files: SegmentFiles) -> None:
    before = names(files)
    put_cleaned(files, 2)
    files.prepare_swap([2, 4])
    files.abandon_swap()
    files.abandon_swap()
    assert names(files) == before
    with pytest.raises(KafkaError, match="no cleaned segments"):
        files.replace(5)


@pytest.mark.parametrize(
    ("bases", "text"),
    [
        ([0, 4], "no longer has the segments"),
        ([1], "no longer has the segments"),
        ([4, 6], "active segment .* cannot be replaced"),
    ],
)
def test_only_sealed_neighbours_are_replaced(
    files: SegmentFiles, bases: list[int], text: str
) -> None:
    before = names(files)
    with pytest.raises(KafkaError, match=text):
        files.prepare_swap(bases)
    assert names(files) == before


def test_stray_files_make_way_for_a_new_segment(
    files: SegmentFiles, caplog: pytest.LogCaptureFixture
) -> None:
    stray = Path(os.path.dirname(files.active.path), f"{9:020d}.log")
    stray.touch()
    files.make_way(9)
    assert not stray.exists()
    assert "already exists" in caplog.text
