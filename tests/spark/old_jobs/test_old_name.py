from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark.streaming
import pytest

from kafka08.spark import dstream, values
from kafka08.spark.old_jobs import old_name
from kafka08.spark.old_jobs.old_name import OLD_NAME, OldNameFinder


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield
    sys.modules.pop(OLD_NAME, None)
    vars(pyspark.streaming).pop("kafka", None)


def test_the_module_has_the_names_of_the_new_one() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(OLD_NAME)
    old_name.install()
    module = importlib.import_module(OLD_NAME)
    assert module.__all__ == dstream.__all__
    assert {name: getattr(module, name) for name in module.__all__} == {
        name: getattr(dstream, name) for name in dstream.__all__
    }
    assert module.OffsetRange.__module__ == "kafka08.spark.values"
    assert (module.__name__, dstream.__name__) == (OLD_NAME, "kafka08.spark.dstream")


def test_pickles_with_the_old_name_are_read() -> None:
    old_name.install()
    data = b"cpyspark.streaming.kafka\nTopicAndPartition\n(Vorders\nI3\ntR."
    assert pickle.loads(data) == values.TopicAndPartition("orders", 3)


def test_a_module_of_spark_has_priority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kafka.py").write_text("OWN = True\n")
    monkeypatch.setattr(pyspark.streaming, "__path__", [*pyspark.streaming.__path__, str(tmp_path)])
    old_name.install()
    assert importlib.import_module(OLD_NAME).OWN


def test_installed_once_and_last() -> None:
    old_name.install()
    old_name.install()
    assert [isinstance(each, OldNameFinder) for each in sys.meta_path][-2:] == [False, True]


def test_nothing_else_is_found() -> None:
    old_name.install()
    assert importlib.util.find_spec("pyspark.streaming.flume") is None
    assert importlib.util.find_spec("kafka08.spark.kafka") is None
