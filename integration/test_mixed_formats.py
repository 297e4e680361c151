"""Clients of later releases in a cluster that an original 0.8.2.2 broker joins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Process, ZooKeeper, isr, zookeeper_text
from integration.later import programs
from integration.later.member import Member, await_members
from integration.later.sender import Sender
from integration.wire import wait_until

SHARED, LATER = "shared", "later"
OFFSETS = "__consumer_offsets"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
JAVA = f"java-{programs.JAVA[-1]}"
WAIT_S = 60


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


@pytest.mark.scenario("modern-53", "modern-54")
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

    wait_until("the original in the isr", 60, lambda: isr(chroot, SHARED) == [0, 1])
    for codec, producer in producers.items():  # connected before it came
        assert send(producer, SHARED, codec.encode()) == "", codec
        assert send(producer, SHARED, b"x", headers=[("h", b"1")]) == (
            "UNSUPPORTED_FOR_MESSAGE_FORMAT"
        )
    assert isr(chroot, SHARED) == [0, 1]

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
    assert isr(chroot, SHARED) == [1]


@pytest.mark.scenario("modern-41", "modern-53")
@pytest.mark.original
def test_java_beside_an_original(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Its producer and its group go on while one joins, which then takes over the offsets."""
    if reason := programs.missing(JAVA):
        pytest.skip(reason)
    chroot = f"{zookeeper.connect}/beside"
    props = {"offsets.topic.num.partitions": 1, "replica.lag.time.max.ms": 5000}
    serves = {"api.versions.enable": "true"}
    ours = Broker("ours", tmp_path / "ours", chroot, broker_id=0, props=props | serves)
    original = Broker("original", tmp_path / "original", chroot, broker_id=1, props=props)
    launch(ours)
    launch(original)
    ours.start()
    for topic in (SHARED, OFFSETS):
        ours.create_topic(topic, replicas=[0, 1])
    sender = Sender(JAVA, ours.address, SHARED)
    group, gone = (Member(JAVA, ours.address, name, SHARED) for name in ("group", "gone"))
    members = (sender, group, gone)
    try:
        sender.send(b"alone")
        assert sender.await_ends(1) == [(0, 0, "")]
        await_members("alone", WAIT_S, lambda: group.messages == gone.messages != [], *members)
        gone.close()
        original.start()
        for topic in (SHARED, OFFSETS):
            wait_until(f"isr of {topic}", WAIT_S, lambda t=topic: isr(chroot, t) == [0, 1])
        # A new connection is closed at its first request: these are from before.
        sender.send(b"beside")
        assert sender.await_ends(2)[1:] == [(1, 1, "")]
        sender.send(b"lost", header=b"1")
        [(_, offset, error)] = sender.await_ends(3)[2:]
        assert offset == -1 and "UnsupportedForMessageFormatException" in error
        sender.send(b"after")
        assert sender.await_ends(4)[3:] == [(3, 2, "")]
        expected = [(0, 0), (0, 1), (0, 2)]
        await_members("all", WAIT_S, lambda: group.messages == expected, *members)
        with ours.wire() as wire:
            wait_until("its commit", 30, lambda: wire.committed("group", SHARED, 0) == (3, 0))
            assert wire.commit("old", SHARED, 0, 2) == 0  # by a client of 0.8
    finally:
        for member in members:
            member.kill()
    for topic in (SHARED, OFFSETS):
        assert isr(chroot, topic) == [0, 1]

    ours.kill()
    for topic in (SHARED, OFFSETS):
        original.wait_for_leader(topic)
    with original.wire() as wire:
        found = wire.read_all(SHARED, 0)
        assert [each.value for each in found] == [b"alone", b"beside", b"after"]
        versions = {
            (each.key or b"")[:2] + (each.value or b"\0\0")[:2]
            for each in wire.read_all(OFFSETS, 0)
        }
        assert versions == {bytes(4)}
        for name, offset in (("group", 3), ("gone", 1), ("old", 2)):
            wait_until(
                "loaded", 30, lambda n=name, o=offset: wire.committed(n, SHARED, 0) == (o, 0)
            )
        assert wire.commit("old", SHARED, 0, 3) == 0

    ours.start()
    for topic in (SHARED, OFFSETS):
        wait_until(f"isr of {topic}", WAIT_S, lambda t=topic: isr(chroot, t) == [0, 1])
    assert original.stop() == 143
    for topic in (SHARED, OFFSETS):
        ours.wait_for_leader(topic)
    later = Member(JAVA, ours.address, "gone", SHARED)
    try:
        await_members("the rest", WAIT_S, lambda: later.messages == expected[1:], later)
    finally:
        later.kill()
    with ours.wire() as wire:
        assert wire.committed("old", SHARED, 0) == (3, 0)
