"""The zip for --py-files: complete, importable names, the same bytes each time."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from kafka08.spark import package


def test_equal_sources_make_equal_files(tmp_path: Path) -> None:
    first, second = tmp_path / "new" / "a.zip", tmp_path / "b.zip"
    count = package.write(first)
    assert package.write(second) == count
    assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def test_what_executors_import_is_inside(tmp_path: Path) -> None:
    package.write(tmp_path / "a.zip")
    names = zipfile.ZipFile(tmp_path / "a.zip").namelist()
    assert {"kafka08/spark/rdd.py", "zk/client.py", "kazoo/client.py"} <= set(names)
    assert [name for name in names if "tests" in name or "__pycache__" in name] == []


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "PACKAGES", ("no_such_package",))
    with pytest.raises(FileNotFoundError, match="no_such_package is not installed"):
        list(package.sources())


@pytest.mark.parametrize("argv", [[], ["-h"], ["a", "b"]])
def test_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert package.main(argv) == 1
    assert capsys.readouterr().err.startswith("Usage: ")
