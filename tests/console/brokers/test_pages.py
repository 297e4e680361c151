"""kafka08.console.brokers.pages."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.console.shown import moment
from kafka08.protocol.admin_schemas import (
    LogDir,
)
from tests.console.scene import ConsoleScene, answer_directories, directory, scene_with_bytes
from zk import znodes


@pytest.mark.scenario("ops-45")
def test_brokers_of_both_kinds() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.look()
    page = scene.page("/brokers")
    assert "b1:9091 up controller kafka08 2014-05-13 16:53:20 UTC 1 1" in page
    assert "b2:9092 up 0.8.2.2 no metrics" in page


def test_a_dead_broker_that_assignments_name_is_listed() -> None:
    scene = ConsoleScene()
    scene.topic("t", [7], leader=-1, isr=[])
    scene.look()
    assert "7 - down" in scene.page("/brokers")


def test_a_broker_that_dies_keeps_its_address_and_shows_since_when() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.look()
    address = scene.observer.state.brokers[1].addresses[0]  # type: ignore[union-attr]
    del scene.server.nodes["/brokers/ids/1"]
    scene.runtime.clock.advance(60)
    gone_ms = scene.runtime.clock.millis()
    for _ in range(2):
        scene.look()
        page = scene.page("/brokers")
        assert f"1 {address} down kafka08 {moment(gone_ms)}" in page
        scene.runtime.clock.advance(60)
    assert address in scene.page("/brokers/1")


def test_a_broker_without_replicas_that_has_gone_is_shown_for_an_hour() -> None:
    scene = ConsoleScene()
    scene.look()
    del scene.server.nodes["/brokers/ids/1"]
    scene.look()
    scene.runtime.clock.advance(3599)
    scene.look()
    assert scene.observer.state is not None and 1 in scene.observer.state.brokers
    scene.runtime.clock.advance(2)
    scene.look()
    assert 1 not in scene.observer.state.brokers


def test_one_broker_with_its_partitions() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.topic("u", [2])
    failed = znodes.encode_offline_replicas([TopicPartition("t", 0)])
    scene.server.put(znodes.offline_replicas_path(1), failed)
    scene.look()
    page = scene.page("/brokers/1")
    assert "t 0" in page
    assert "u 0" not in page
    assert "1 partitions are in a failed data directory" in page
    assert scene.get("/brokers/9").status_code == 404


def test_data_directories_of_a_broker_that_tells_them() -> None:
    scene = ConsoleScene()
    for topic in ("t", "u"):
        scene.topic(topic, [1])
    failed = LogDir(56, "/data/b", [])
    last = directory("/data/c", "u", 1024, 4 << 20, 512)
    answer_directories(scene, directory("/data/a", "t", 2048), failed, last)
    scene.look()
    page = scene.page("/brokers/1")
    assert "On disk 3.0 KiB" in page
    assert "/data/a good 1 2.0 KiB -" in page
    assert "/data/b" in page
    assert "/data/c good 1 1.0 KiB 512 B of 4.0 MiB" in page
    assert "Data directories" not in scene.page("/brokers/2")
    assert "disk full" not in scene.page("/brokers")
    full = znodes.encode_offline_replicas([], [TopicPartition("u", 0)])
    scene.server.put(znodes.offline_replicas_path(1), full)
    scene.look()
    page = scene.page("/brokers/1")
    assert "/data/a good" in page and "/data/c full 1" in page
    assert "up controller disk full" in scene.page("/brokers")


def test_a_broker_that_does_not_report_its_directories() -> None:
    scene = ConsoleScene()
    scene.look()
    assert "This broker does not report its directories." in scene.page("/brokers/1")


def test_bytes_in_and_out_of_brokers() -> None:
    scene = scene_with_bytes()
    exact = '<span title="2,048 bytes per second">2.0 KiB/s</span>'
    assert exact in scene.get("/brokers").text
    page = scene.page("/brokers")
    assert "2.0 KiB/s 512 B/s" in page and "not known not known" in page
    first = scene.page("/brokers/1")
    assert "Bytes in, from producers 2.0 KiB/s Bytes out, to consumers 512 B/s" in first
    assert "are not known:" not in first
    second = scene.page("/brokers/2")
    assert "Bytes in, from producers not known Bytes out, to consumers not known" in second
    assert (
        "Bytes in and out are not known: it serves nothing over HTTP if it is of 0.8.2.2;" in second
    )
