from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.connect.offsets import OffsetFile
from kafka08.errors import ConfigError
from kafka08.runtime import ThreadRuntime

SOURCE = {"filename": "a"}


def opened(path: Path) -> OffsetFile:
    return OffsetFile(str(path), ThreadRuntime().lock())


def test_offsets_outlive_the_worker(tmp_path: Path) -> None:
    path = tmp_path / "new" / "offsets"
    file = opened(path)
    assert file.read("one", SOURCE) is None
    file.write("one", {json.dumps(SOURCE): {"position": 5}})
    file.write("two", {json.dumps(SOURCE): {"position": 7}})
    file.close()
    file = opened(path)
    assert file.read("one", SOURCE) == {"position": 5}
    assert file.read("two", SOURCE) == {"position": 7}
    file.close()


def test_a_failed_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = opened(tmp_path / "offsets")
    file.write("one", {json.dumps(SOURCE): {"position": 5}})

    def full(*args: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("kafka08.connect.offsets.replace_file", full)
    with pytest.raises(OSError, match="No space"):
        file.write("one", {json.dumps(SOURCE): {"position": 6}})
    assert file.read("one", SOURCE) == {"position": 5}
    file.close()


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff"])
def test_a_file_of_something_else(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "offsets"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=r"offset\.storage\.file\.filename has value"):
        opened(path)


def test_one_worker_at_a_time(tmp_path: Path) -> None:
    file = opened(tmp_path / "offsets")
    with pytest.raises(ConfigError, match="another worker"):
        opened(tmp_path / "offsets")
    file.close()
    opened(tmp_path / "offsets").close()
