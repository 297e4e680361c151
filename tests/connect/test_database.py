"""Which class connects to a URL."""

from __future__ import annotations

import sys

import pytest

from kafka08.connect.database import database_class
from kafka08.connect.sqlite import SqliteDatabase
from kafka08.errors import ConfigError


@pytest.mark.parametrize("url", ["sqlite:/a/b.db", "jdbc:sqlite:/a/b.db"])
def test_sqlite_needs_no_spark(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka08.connect.spark_database", None)
    assert database_class(url) is SqliteDatabase


def test_other_databases_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka08.connect.spark_database", None)
    with pytest.raises(ConfigError, match=r"connection\.url: a JDBC database needs PySpark"):
        database_class("jdbc:derby:/a/b")
