"""Ranges by batch, on disk before the batch runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.errors import KafkaError
from kafka08.spark.files.offset_log import LocalFiles, OffsetLog
from kafka08.spark.planner import Range

RANGES = [Range("t", 0, 3, 9), Range("t", 1, 0, 0)]


def test_round_trip(tmp_path: Path) -> None:
    OffsetLog(LocalFiles(tmp_path / "log")).write(1000, RANGES)
    log = OffsetLog(LocalFiles(tmp_path / "log"))
    assert log.read(1000) == RANGES
    assert log.read(2000) is None
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["1000"]


def test_old_batches_go_those_of_an_earlier_run_too(tmp_path: Path) -> None:
    OffsetLog(LocalFiles(tmp_path)).write(1000, RANGES)
    log = OffsetLog(LocalFiles(tmp_path), kept=2)
    log.write(2000, RANGES)
    log.write(2000, RANGES)
    log.write(3000, RANGES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2000", "3000"]


@pytest.mark.parametrize("text", ["", "{}", '{"version": 2, "ranges": []}', '{"version": 1}'])
def test_a_file_that_makes_no_sense(tmp_path: Path, text: str) -> None:
    (tmp_path / "1000").write_text(text)
    with pytest.raises(KafkaError, match="batch 1000"):
        OffsetLog(LocalFiles(tmp_path)).read(1000)


def test_a_half_written_file_is_not_seen(tmp_path: Path) -> None:
    (tmp_path / ".1000.tmp").write_text("{")
    log = OffsetLog(LocalFiles(tmp_path))
    assert log.read(1000) is None
    log.write(1000, RANGES)
    assert log.read(1000) == RANGES


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        OffsetLog(LocalFiles(tmp_path / "file" / "log")).write(1000, RANGES)
