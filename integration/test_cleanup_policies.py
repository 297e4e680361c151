"""Compaction and retention of one topic under kill -9, and tombstones among dates that lie ahead.

Real brokers and clients; tests/log/storage_model.py has power cuts at any call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from integration.harness import Broker, Process, ZooKeeper
from integration.test_compaction_soak import (
    GZIP,
    PROPS,
    SEED,
    TOPIC,
    Soak,
    Updates,
    cleaned_until,
    read_everything,
)
from integration.wire import wait_until

HOUR_MS = 3_600_000
SEGMENT_BYTES = 100_000
RETENTION_BYTES = 5 * SEGMENT_BYTES


def test_both_policies_under_kill_9(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    props = {**PROPS, "log.segment.bytes": SEGMENT_BYTES, "log.retention.check.interval.ms": 300}
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/both-policies", props=props)
    launch(broker)
    broker.start()
    limits = {"cleanup.policy": "compact,delete", "retention.bytes": str(RETENTION_BYTES)}
    broker.create_topic(TOPIC, 1, limits)
    # Compaction alone leaves more than retention does.
    updates = Updates(60_000, GZIP, SEED)
    soak = Soak(broker, updates, 3, 120_000)
    soak.run()
    assert soak.killed_while_cleaning, "no kill met a cleaning"
    directory = broker.log_dir / f"{TOPIC}-0"

    def is_small() -> bool:
        sizes = [path.stat().st_size for path in directory.glob("*.log")]
        return sum(sizes) < RETENTION_BYTES + SEGMENT_BYTES

    # the first check after a start comes 30 seconds later
    wait_until("the end of retention", 90, is_small)
    soak.wait_until_clean()
    with broker.wire() as wire:
        found = read_everything(wire)
        start = wire.offset(TOPIC, 0, -2)
    assert start > 0
    last = {message.key: (message.offset, message.value) for message in found}
    for key, (offset, value) in updates.last.items():
        if offset >= start and value is not None:
            assert last.get(key) == (offset, value), key
    clean_until = cleaned_until(broker)
    clean = [message.key for message in found if message.offset < clean_until]
    assert len(clean) == len(set(clean)), "superseded messages are left"
    assert broker.stop() == 143


def test_a_tombstone_outlives_a_date_that_lies_ahead(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Also after kill -9, and with files whose times are those of years ago."""
    from confluent_kafka import Producer

    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/tombstones", props=PROPS)
    launch(broker)
    broker.start()
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": "1000",
        "delete.retention.ms": str(HOUR_MS),
        "min.cleanable.dirty.ratio": "0",
    }
    broker.create_topic(TOPIC, 1, config)
    directory = broker.log_dir / f"{TOPIC}-0"

    def clean_again(filler: bytes, time_ms: int) -> None:
        """Messages that close their segments, and the cleaning of these."""
        producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 0})
        for _ in range(4):
            producer.produce(TOPIC, b"v" * 900, filler, timestamp=time_ms)
            assert producer.flush(30) == 0
        wait_until("a cleaning", 60, lambda: cleaned_until(broker) >= last_base())

    def last_base() -> int:
        return max(int(path.stem) for path in directory.glob("*.log"))

    producer = Producer({"bootstrap.servers": broker.address})
    now = int(time.time() * 1000)
    for value in (b"v", None):
        producer.produce(TOPIC, value, b"gone", timestamp=now)
        assert producer.flush(30) == 0
    for number in range(4):
        clean_again(b"filler", now + (2 * HOUR_MS if number else 0))
        if number == 1:
            broker.kill()
            for path in directory.iterdir():
                os.utime(path, (1, 1))
            broker.start()
            broker.wait_for_leader(TOPIC)
    with broker.wire() as wire:
        segments = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
        assert wire.offset(TOPIC, 0, -2) == 0
    assert b"gone" in segments
    assert segments.count(b"gone") == 1, "the deleted value is still there"
    assert broker.stop() == 143
