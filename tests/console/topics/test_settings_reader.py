"""kafka08.console.topics.settings_reader."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08 import admin
from kafka08.console.topics.settings_reader import ALL_EVERY, SettingsReader
from tests.console.scene import ConsoleScene
from zk import znodes
from zk.errors import ZkConnectionError


class Scene(ConsoleScene):
    def __init__(self) -> None:
        super().__init__()
        self.zk: Any = self.session
        self.reader = SettingsReader(self.zk)
        for topic in ("t", "u"):
            self.topic(topic, [1])
        self.set("t", "1")

    def set(self, topic: str, value: str) -> None:
        """Without a notice."""
        data = znodes.encode_topic_config({"retention.ms": value})
        self.server.put(znodes.topic_config_path(topic), data)

    def read(self, *topics: str) -> dict[str, str | None]:
        found = self.reader.read(topics or ("t", "u"))
        return {topic: own.get("retention.ms") for topic, own in found.items()}


def test_they_are_read_again_when_a_notice_comes() -> None:
    scene = Scene()
    assert scene.read() == {"t": "1", "u": None}
    scene.set("t", "2")
    assert scene.read()["t"] == "1"
    admin.change_topic_config(scene.zk, "u", {"retention.ms": "5"})
    assert scene.read() == {"t": "1", "u": "5"}
    admin.change_topic_config(scene.zk, "t", {"retention.ms": "3"})
    assert scene.read()["t"] == "3"


def test_topics_come_and_go() -> None:
    scene = Scene()
    assert scene.read("u") == {"u": None}
    assert scene.read("u", "t") == {"u": None, "t": "1"}
    assert scene.read("u") == {"u": None}
    scene.set("t", "9")
    assert scene.read("t") == {"t": "9"}


def test_now_and_then_all_are_read() -> None:
    scene = Scene()
    scene.read()
    scene.set("t", "2")
    seen = [scene.read()["t"] for _ in range(ALL_EVERY)]
    assert seen == ["1"] * (ALL_EVERY - 1) + ["2"]


def test_after_a_failure_all_are_read() -> None:
    scene = Scene()
    scene.read()
    scene.set("t", "2")
    scene.session.down = True
    with pytest.raises(ZkConnectionError):
        scene.read()
    scene.session.down = False
    assert scene.read()["t"] == "2"


def test_nodes_that_cannot_be_read_are_told(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.server.put(znodes.topic_config_path("u"), b"\xff")
    assert scene.read() == {"t": "1", "u": None}
    scene.read()
    scene.server.put("/config/changes/config_change_0000000001", b"\xff\xff\xff\xff")
    scene.server.put("/config/changes/config_change_0000000002", b'"t"')
    scene.server.put(znodes.topic_config_path("t"), b"\xff")
    assert scene.read()["t"] == "1"
    assert "config_change_0000000001" in caplog.text
    assert "/config/topics/t" in caplog.text


def test_notices_of_other_things_and_of_other_topics_change_nothing() -> None:
    scene = Scene()
    scene.read()
    scene.server.put("/config/changes/config_change_0000000001", b'"gone"')
    broker = b'{"version":2,"entity_path":"brokers/1"}'
    scene.server.put("/config/changes/config_change_0000000002", broker)
    assert scene.read() == {"t": "1", "u": None}
