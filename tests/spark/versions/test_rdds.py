"""Where PipelinedRDD comes from."""

from __future__ import annotations

import runpy
import sys
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from kafka08.spark.versions import rdds


def loaded() -> dict[str, Any]:
    """The names of the module, imported again."""
    return runpy.run_path(rdds.__file__)


def test_on_this_spark() -> None:
    from pyspark.core.rdd import PipelinedRDD

    assert loaded()["PipelinedRDD"] is PipelinedRDD


def test_before_spark_4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.core.rdd", None)
    older: Any = SimpleNamespace(PipelinedRDD=object())
    monkeypatch.setitem(sys.modules, "pyspark.rdd", older)
    assert loaded()["PipelinedRDD"] is older.PipelinedRDD
