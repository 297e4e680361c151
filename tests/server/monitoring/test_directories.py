"""Data directories: their states and their space, in metrics and in health."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.metrics.registry import Registry
from kafka08.server.monitoring import broker_metrics
from kafka08.server.monitoring.health import Health
from tests.server.support import Rig


def values(rig: Rig) -> dict[tuple[str, str], Any]:
    """Of all series of logs, by name and directory."""
    registry = Registry(rig.runtime)
    broker_metrics.add_logs(registry, rig.logs)
    return {
        (each.metric.name, each.labels.get("logDirectory", "")): each.value
        for _, piece in registry.pieces()
        for each in piece
    }


def value(rig: Rig, name: str, directory: str = "") -> Any:
    return values(rig)[f"kafka_log_logmanager_{name}", directory]


def test_data_directories(rig: Rig) -> None:
    path = str(rig.directory)
    log = rig.lead("t").leader_log()
    rig.append("a")

    def shown() -> list[Any]:
        kinds = ("offline", "full", "size")
        return [value(rig, f"logdirectory{kind}", path) for kind in kinds]

    assert shown() == [0, 0, log.size]
    total, free = (value(rig, f"logdirectory{kind}bytes", path) for kind in ("total", "free"))
    assert total > free > 0
    rig.logs.full_dirs.add(path)
    assert shown() == [0, 1, log.size]
    health = Health()
    health.runs(bool)
    broker_metrics.add_checks(health, rig.replicas, rig.logs)
    assert health.reasons() == []
    details: dict[str, Any] = health.details()
    assert details["warnings"] == [f"data directories are full: {path}"]
    [directory] = details["directories"]
    assert {**directory, "free": 0, "total": 0} == {
        "path": path, "state": "full", "size": log.size, "total": 0, "free": 0,
    }  # fmt: skip
    rig.logs.take_offline(path)
    assert value(rig, "offlinelogdirectorycount") == 1
    assert value(rig, "logdirectoryoffline", path) == 1
    assert value(rig, "logdirectoryfull", path) == 0
    assert ("kafka_log_logmanager_logdirectoryfreebytes", path) not in values(rig)


def test_a_directory_whose_disk_does_not_answer(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> Any:
        raise OSError(5, "Input/output error", path)

    monkeypatch.setattr("os.statvfs", refused)
    names = {name for name, _ in values(rig)}
    assert "kafka_log_logmanager_logdirectorysize" in names
    assert "kafka_log_logmanager_logdirectoryfreebytes" not in names
