"""The admin commands against a ZooKeeper in memory."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.zookeeper import FakeZooKeeper, Session
from tools import admin_command
from zk import znodes


def fake_zookeeper(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command's --zookeeper connects to this ZooKeeper."""
    zk = Session(FakeZooKeeper())
    monkeypatch.setattr(admin_command, "connect", lambda urls, security: zk)
    return zk


def put_topic(zk: Any, topic: str, *replicas: list[int]) -> None:
    data = znodes.encode_topic(dict(enumerate(replicas)))
    zk.create(znodes.topic_path(topic), data, makepath=True)


def failure_of(lines: list[str], first: str) -> list[str]:
    """The lines of a failure told on stdout after ``first``, without frames."""
    start = lines.index(first) + 1
    assert lines[-1] == ""
    return [line for line in lines[start:-1] if not line.startswith("\tat ")]
