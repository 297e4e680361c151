"""Files that no directory has."""

from __future__ import annotations

import os

import pytest

from kafka08.log.unnamed_file import open_unnamed


@pytest.mark.parametrize("in_memory", [True, False])
def test_it_is_empty_and_has_no_name(in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create")
    fd = open_unnamed("label")
    try:
        found = os.fstat(fd)
        assert (found.st_size, found.st_nlink) == (0, 0)
        assert os.pwrite(fd, b"data", 3) == 4
        assert os.pread(fd, 9, 0) == b"\0\0\0data"
    finally:
        os.close(fd)
