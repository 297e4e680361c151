"""Spark's API for data sources: the parts that older releases lack."""

from __future__ import annotations

import importlib
import inspect
import runpy
import sys
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyspark
from pyspark.sql import datasource

from kafka08.spark.versions import sources

WITHOUT_LIMITS = "pyspark.sql.streaming.datasource"


def loaded() -> dict[str, Any]:
    """The names of the module, imported again."""
    return runpy.run_path(sources.__file__)


def test_on_this_spark() -> None:
    found = loaded()
    assert found["READ_LIMITS"]
    assert found["ReadMaxRows"] is sys.modules[WITHOUT_LIMITS].ReadMaxRows
    assert found["DataSourceStreamArrowWriter"] is datasource.DataSourceStreamArrowWriter
    assert sorted(sources.__all__) == sorted(name for name in sources.__all__ if name in found)


def test_before_read_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark 4.0 and 4.1."""
    monkeypatch.setitem(sys.modules, WITHOUT_LIMITS, None)
    found = loaded()
    assert not found["READ_LIMITS"]
    assert found["ReadMaxRows"](5).max_rows == 5
    assert found["ReadMinRows"](5).min_rows == 5
    for name in ("ReadAllAvailable", "ReadMaxRows", "ReadMinRows"):
        assert issubclass(found[name], found["ReadLimit"])


def test_before_arrow_writers_of_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark 4.0, whose workers ask whether a writer is a DataSourceArrowWriter."""
    monkeypatch.delattr(datasource, "DataSourceStreamArrowWriter")
    writer = loaded()["DataSourceStreamArrowWriter"]
    assert issubclass(writer, datasource.DataSourceStreamWriter)
    assert issubclass(writer, datasource.DataSourceArrowWriter)
    assert inspect.isabstract(writer)


def test_before_data_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark 3.5. The sentence comes first, whatever else is missing there."""
    monkeypatch.setitem(sys.modules, "pyspark.sql.datasource", None)
    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in [name for name in sys.modules if name.startswith("kafka08.spark.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(
        ImportError, match=r"needs Spark 4\.0 or later, and this is 3\.5\.9: .*bulk"
    ):
        importlib.import_module("kafka08.spark.datasource")
