"""Slices: they outlive their files, and notice when those are cut."""

from __future__ import annotations

import gc
import os
import warnings
from pathlib import Path

import pytest

from kafka08.errors import KafkaError
from kafka08.log.segments.file_slice import FileSlice
from kafka08.message.sets import iter_messages
from tests.log.segments.test_segment import new_segment, put


def test_slice_outlives_its_file_and_closes_silently(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    data = put(segment, 0, "kept")
    found = segment.read(0, 1000, None)
    assert found is not None
    fd = found.fileno()
    for path in segment.rename_deleted():
        os.unlink(path)
    assert found.read() == data
    assert [m.value for m in iter_messages(found.read())] == [b"kept"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del found, segment
        gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_slice_of_a_truncated_segment_raises(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, "gone")
    found = segment.read(0, 1000, None)
    assert found is not None
    segment.cut(10)
    for read in (found.read, FileSlice(segment.file, 11, 5).read_to_page):
        with pytest.raises(KafkaError, match="truncated"):
            read()


def test_empty_slice_reads_nothing(tmp_path: Path) -> None:
    empty = FileSlice(new_segment(tmp_path).file, 0, 0)
    assert empty.read() == empty.read_to_page() == b""


@pytest.mark.parametrize(
    ("position", "size", "read"),
    [(0, 9000, 0), (1, 9000, 4095), (4095, 9000, 1), (4096, 9000, 0), (5000, 20, 20)],
)
def test_a_slice_is_read_to_the_next_page(
    position: int, size: int, read: int, tmp_path: Path
) -> None:
    segment = new_segment(tmp_path)
    data = bytes(range(256)) * 60
    os.pwrite(segment.file.fd, data, 0)
    found = FileSlice(segment.file, position, size)
    assert found.read_to_page() == data[position : position + read]
