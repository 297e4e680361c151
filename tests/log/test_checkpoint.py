"""Checkpoint files: their bytes, and what happens to other files."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kafka08.common import TopicPartition
from kafka08.log.checkpoint import OffsetCheckpoint

ENTRIES = {TopicPartition("a-b", 0): 5, TopicPartition("t", 12): 1 << 40}


def test_golden(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    checkpoint = OffsetCheckpoint(str(path))
    assert checkpoint.read() == {}
    checkpoint.clear()
    assert not path.exists()  # a broker starts and stops on a full disk
    checkpoint.write(ENTRIES)
    assert path.read_bytes() == b"0\n2\na-b 0 5\nt 12 1099511627776\n"
    assert OffsetCheckpoint(str(path)).read() == ENTRIES
    checkpoint.write({})
    assert path.read_bytes() == b"0\n0\n"
    assert checkpoint.read() == {}


def test_leftover_temporary_file_goes(tmp_path: Path) -> None:
    (tmp_path / "x.tmp").write_text("half")
    OffsetCheckpoint(str(tmp_path / "x"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"0\n2\nt 0 5\n",
        b"0\n1\nt 0\n",
        b"0\n1\nt 0 5 6\n",
        b"0\n1\nt x 5\n",
        b"0\n1\nt 0 -5\n",
        b"0\nmany\n",
        b"0\nt 0 5\n",
        b"garbage",
        b"\xff\xfe\x00",
        bytes(100),
    ],
)
def test_garbage_counts_as_empty(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert OffsetCheckpoint(str(path)).read() == {}
    assert "Ignoring checkpoint file" in caplog.text


def test_version_only_is_empty(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"0\n")
    assert OffsetCheckpoint(str(tmp_path / "x")).read() == {}


def test_lines_may_end_as_on_windows_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"0\r\n1\r\nt 3 7")
    assert OffsetCheckpoint(str(tmp_path / "x")).read() == {TopicPartition("t", 3): 7}


def test_a_file_is_made_by_its_first_entries(tmp_path: Path) -> None:
    path = tmp_path / "log-start-offset-checkpoint"
    checkpoint = OffsetCheckpoint(str(path))
    checkpoint.update({})
    assert not path.exists()
    checkpoint.update(ENTRIES)
    assert checkpoint.read() == ENTRIES
    path.unlink()
    checkpoint.update(ENTRIES)
    assert not path.exists()  # the file is known to hold them
    checkpoint.update({})
    assert path.read_bytes() == b"0\n0\n"
    OffsetCheckpoint(str(path)).update(ENTRIES)
    assert checkpoint.read() == ENTRIES
