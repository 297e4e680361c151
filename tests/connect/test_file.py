"""The file tasks without worker and broker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.connect.file import FileStreamSinkTask, FileStreamSourceTask
from kafka08.connect.interface import ConnectError, Context, SinkRecord
from kafka08.runtime import ThreadRuntime

T = TopicPartition("t", 0)


def source(path: Path, offset: dict[str, Any] | None = None, **more: str) -> FileStreamSourceTask:
    task = FileStreamSourceTask()
    task.context = Context("s-0", ThreadRuntime().event(), lambda place: offset)
    task.start({"file": str(path), "topic": "t", **more})
    return task


def polled(task: FileStreamSourceTask, times: int = 8) -> list[str]:
    return [record.value for _ in range(times) for record in task.poll()]


def test_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "in"
    task = source(path)
    assert polled(task) == []
    path.write_bytes(b"a\r\n\nb")
    assert polled(task) == ["a", ""]
    with path.open("ab") as file:
        file.write(b"c\nd\n")
    records = task.poll()
    assert [record.value for record in records] == ["bc", "d"]
    inode = path.stat().st_ino
    assert [record.offset for record in records] == [
        {"position": 7, "inode": inode},
        {"position": 9, "inode": inode},
    ]
    task.stop()


def test_goes_on_at_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"a\nb\n")
    task = source(path, {"position": 2, "inode": path.stat().st_ino})
    assert polled(task) == ["b"]
    task.stop()


def test_polls_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"x\n" * 7)
    task = source(path, **{"batch.size": "3"})
    assert [len(task.poll()) for _ in range(4)] == [3, 3, 1, 0]
    task.stop()


def test_a_file_cut_short_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"abc\nabc\nrest")
    task = source(path)
    assert polled(task) == ["abc", "abc"]
    os.truncate(path, 0)
    assert polled(task) == []
    with path.open("ab") as file:
        file.write(b"new\n")
    assert polled(task) == ["new"]
    task.stop()
    task = source(path, {"position": 100, "inode": path.stat().st_ino})
    assert polled(task) == ["new"]
    task.stop()


def test_a_rotated_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"a\n")
    task = source(path)
    assert polled(task) == ["a"]
    with path.open("ab") as old:
        path.rename(tmp_path / "in.1")
        path.write_bytes(b"c\n")
        assert polled(task, 2) == []
        old.write(b"b\n")
    assert polled(task) == ["b", "c"]
    task.stop()


def test_a_file_rotated_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"a\nb\n")
    place = {"position": 2, "inode": path.stat().st_ino}
    path.rename(tmp_path / "in.1")
    task = source(path, place)
    assert polled(task) == ["b"]
    path.write_bytes(b"c\n")
    assert polled(task) == ["c"]
    task.stop()
    (tmp_path / "in.1").unlink()
    task = source(path, {"position": 2, "inode": 1})
    assert polled(task) == ["c"]
    task.stop()


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    task = source(tmp_path)
    with pytest.raises(ConnectError, match="file has value"):
        polled(task)


def sink(path: Path) -> FileStreamSinkTask:
    task = FileStreamSinkTask()
    task.start({"file": str(path)})
    return task


def record(offset: int, value: Any) -> SinkRecord:
    return SinkRecord("t", 0, offset, None, value)


def test_what_was_not_flushed_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"before\n")
    task = sink(path)
    assert task.open([T]) == {}
    task.put([record(0, "a"), record(1, {"b": 1})])
    task.flush({T: 2})
    task.put([record(2, "lost" * 10000)])
    task.stop()
    assert path.stat().st_size > 40000
    task = sink(path)
    assert path.read_bytes() == b'before\na\n{"b": 1}\n'
    assert task.open([T, TopicPartition("t", 1)]) == {T: 2}
    task.put([record(2, b"\xff"), record(3, None)])
    task.flush({T: 4})
    task.stop()
    assert path.read_bytes() == b'before\na\n{"b": 1}\n\xff\nnull\n'


def test_nothing_flushed_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out"
    task = sink(path)
    task.put([record(0, "lost")])
    task.stop()
    sink(path).stop()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("notes", [b"{", b"[]", b'{"size": 1}'])
def test_notes_that_make_no_sense(tmp_path: Path, notes: bytes) -> None:
    (tmp_path / "out.offsets").write_bytes(notes)
    task = FileStreamSinkTask()
    with pytest.raises(ConnectError, match="file has value"):
        task.start({"file": str(tmp_path / "out")})
    task.stop()
