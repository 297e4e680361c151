"""Spark's workers are looked at before a stream could hang for want of pyarrow."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from kafka08.errors import ConfigError
from kafka08.spark.datasource import check_python


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_without_pyarrow(tmp_path: Path) -> None:
    python = script(tmp_path, "echo No module named pyarrow >&2; exit 1")
    with pytest.raises(ConfigError, match=rf"{python}, .* pyarrow: No module named pyarrow"):
        check_python(python)


def test_with_it(tmp_path: Path) -> None:
    check_python(script(tmp_path, "exit 0"))
    check_python(sys.executable)


def test_one_that_is_only_on_executors() -> None:
    check_python("./environment/bin/python")
