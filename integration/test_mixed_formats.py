"""Clients of later releases in a cluster that an original 0.8.2.2 broker joins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Process, ZooKeeper, zookeeper_text
from integration.wire import wait_until

SHARED, LATER = "shared", "later"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def send(producer: Any, topic: str, value: bytes, **options: Any) -> str:
    """The name of the error, or an empty text."""
    told: list[str] = []
    producer.produce(
        topic,
        value,
        b"k",
        0,
        on_delivery=lambda error, _: told.append(error.name() if error else ""),
        **options,
    )
    assert producer.flush(30) == 0
    return told[0]


@pytest.mark.original
def test_an_original_joins(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    from confluent_kafka import Producer

    chroot = f"{zookeeper.connect}/joined"
    props = {"api.versions.enable": "true", "log.compressed.sets": "normalised"}
    ours = Broker("ours", tmp_path / "ours", chroot, broker_id=0, props=props)
    original = Broker("original", tmp_path / "original", chroot, broker_id=1)
    launch(ours)
    launch(original)
    ours.start()
    ours.create_topic(LATER)
    ours.create_topic(SHARED, replicas=[0, 1])
    settings: dict[str, Any] = {"bootstrap.servers": ours.address, "log_level": 0}
    producers = {codec: Producer({**settings, "compression.type": codec}) for codec in CODECS}
    for producer in producers.values():
        assert send(producer, LATER, b"x", headers=[("h", b"1")]) == ""
    original.start()

    def isr() -> list[int]:
        text = zookeeper_text(chroot, f"/brokers/topics/{SHARED}/partitions/0/state")
        return sorted(json.loads(text or "{}").get("isr", []))

    wait_until("the original in the isr", 60, lambda: isr() == [0, 1])
    for codec, producer in producers.items():  # connected before it came
        assert send(producer, SHARED, codec.encode()) == "", codec
        assert send(producer, SHARED, b"x", headers=[("h", b"1")]) == (
            "UNSUPPORTED_FOR_MESSAGE_FORMAT"
        )
    assert isr() == [0, 1]

    client = zookeeper.client("/joined")
    moves = [{"topic": LATER, "partition": 0, "replicas": [1]}]
    payload = json.dumps({"version": 1, "partitions": moves}).encode()
    client.create("/admin/reassign_partitions", payload)
    wait_until("an answer", 30, lambda: client.exists("/admin/reassign_partitions") is None)
    client.stop()
    client.close()
    assignment = json.loads(zookeeper_text(chroot, f"/brokers/topics/{LATER}") or "")
    assert assignment["partitions"] == {"0": [0]}
    told = (ours.directory / "controller.log").read_text()
    assert "brokers 1 of 0.8.2.2 cannot read its log, which has messages of later formats" in told

    assert ours.stop() == 143
    original.wait_for_leader(SHARED)
    with original.wire() as wire:
        entries = wire.read_all(SHARED, 0)
    assert [entry.value for entry in entries] == [codec.encode() for codec in CODECS]
    assert isr() == [1]
