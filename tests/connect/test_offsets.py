from __future__ import annotations

import json
import os
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


class TestAnywhereEverybodyMayWrite:
    """As in /tmp, where later originals keep their offsets."""

    @pytest.fixture
    def shared(self, tmp_path: Path) -> Path:
        tmp_path.chmod(0o1777)
        return tmp_path / "connect.offsets"

    def test_own_files_are_fine(self, shared: Path) -> None:
        for position in (1, 2):
            file = opened(shared)
            file.write("one", {json.dumps(SOURCE): {"position": position}})
            file.close()

    @pytest.mark.parametrize("name", ["connect.offsets", "connect.offsets.lock"])
    def test_files_of_others_are_refused(
        self, shared: Path, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shared.with_name(name).write_bytes(b"{}")
        monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
        with pytest.raises(ConfigError, match="belongs to another user"):
            opened(shared)

    @pytest.mark.parametrize("name", ["connect.offsets", "connect.offsets.lock"])
    def test_links_are_refused(self, shared: Path, name: str) -> None:
        shared.with_name(name).symlink_to(shared.with_name("elsewhere"))
        with pytest.raises(ConfigError, match="is a link"):
            opened(shared)
        assert not shared.with_name("elsewhere").exists()

    def test_nothing_is_written_through_a_link(self, shared: Path) -> None:
        precious = shared.with_name("precious")
        precious.write_bytes(b"mine")
        shared.with_name("connect.offsets.tmp").symlink_to(precious)
        file = opened(shared)
        file.write("one", {json.dumps(SOURCE): {"position": 5}})
        file.close()
        assert precious.read_bytes() == b"mine"
        assert not shared.is_symlink()
