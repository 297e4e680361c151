"""Requirements of Spark's Python processes: pyarrow, and the files of --py-files in the path."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from kafka08.errors import ConfigError
from kafka08.spark.datasource import check_python, show_py_files


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.scenario("spark-input-8")
def test_without_pyarrow(tmp_path: Path) -> None:
    python = script(tmp_path, "echo No module named pyarrow >&2; exit 1")
    with pytest.raises(
        ConfigError, match=rf"{re.escape(python)}, .* pyarrow: No module named pyarrow"
    ):
        check_python(python)


def test_with_it(tmp_path: Path) -> None:
    check_python(script(tmp_path, "exit 0"))
    check_python(sys.executable)


def test_one_that_is_only_on_executors() -> None:
    check_python("./environment/bin/python")


def test_py_files_are_where_the_planner_of_streams_looks(tmp_path: Path) -> None:
    (tmp_path / "kafka08-spark.zip").write_bytes(b"zip")
    for _ in range(2):  # a session may register again
        show_py_files(tmp_path)
    assert (tmp_path / "streaming_job" / "kafka08-spark.zip").read_bytes() == b"zip"


def test_a_directory_that_spark_made_itself_stays(tmp_path: Path) -> None:
    (tmp_path / "streaming_job").mkdir()
    show_py_files(tmp_path)
    assert not (tmp_path / "streaming_job").is_symlink()
