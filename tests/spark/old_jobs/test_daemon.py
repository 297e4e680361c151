from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec

import pytest

from kafka08.spark.old_jobs import daemon
from kafka08.spark.old_jobs.old_name import OLD_NAME


def test_workers_are_forked_with_the_old_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark reads the port from stdout, so that there must be nothing else."""
    seen: list[ModuleSpec | None] = []
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(
        "pyspark.daemon.manager", lambda: seen.append(importlib.util.find_spec(OLD_NAME))
    )
    daemon.main()
    assert [spec and spec.origin for spec in seen] == ["kafka08.spark.dstream"]
    assert capsys.readouterr().out == ""
