"""Side files of sealed segments: a crash makes use of them, the scrub finds rot with them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.harness import Broker, Process, ZooKeeper
from integration.wire import Entry, Wire, entry, gzip_set, wait_until
from kafka08.message.crc import crc32

TOPIC = "sealed"


@pytest.fixture
def broker(zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]) -> Broker:
    props = {"log.segment.bytes": 100_000, "log.scrub.interval.ms": 1000}
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/{tmp_path.name}", props=props)
    launch(broker)
    broker.start().create_topic(TOPIC)
    return broker


def produce(broker: Broker, sets: int = 60) -> None:
    """About ten segments, plain and compressed sets in turn."""
    with broker.wire() as wire:
        for number in range(sets):
            records = [(None, random.randbytes(500)) for _ in range(30)]
            plain = b"".join(entry(*record) for record in records)
            wire.produce(TOPIC, 0, gzip_set(records) if number % 2 else plain)


def read_all(broker: Broker) -> list[Entry]:
    with broker.wire() as wire:
        return wire.read_all(TOPIC, 0)


def sealed(broker: Broker) -> list[Path]:
    """All segments but the active one, once each has its side file."""
    segments = sorted((broker.log_dir / f"{TOPIC}-0").glob("*.log"))[:-1]
    wait_until("side files", 30, lambda: all(p.with_suffix(".crc32c").exists() for p in segments))
    return segments


def test_a_crash_makes_use_of_them(broker: Broker) -> None:
    produce(broker)
    stored = read_all(broker)
    segments = sealed(broker)
    assert len(segments) > 5
    broker.kill()
    with segments[1].open("r+b") as file:  # and one that is not as it was
        file.truncate(file.seek(0, os.SEEK_END) - 1)
    (broker.log_dir / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    broker.start()
    broker.wait_for_leader(TOPIC)
    assert f"({segments[0]}) is as sealed" in broker.log
    assert f"({segments[1]}) is as sealed" not in broker.log
    kept = read_all(broker)
    assert kept == stored[: len(kept)]
    assert int(segments[1].stem) < len(kept) < int(segments[2].stem)


def test_rot_is_found_and_no_reader_takes_it_for_data(broker: Broker) -> None:
    produce(broker)
    end = len(read_all(broker))
    segments = sealed(broker)
    with broker.wire() as wire:
        right = [first_message(wire, path) for path in segments]
    for path in segments:
        with path.open("r+b", buffering=0) as file:
            # inside a message, so that its crc shows the damage to readers
            at = random.randrange(200, 400)
            (byte,) = os.pread(file.fileno(), 1, at)
            os.pwrite(file.fileno(), bytes([byte ^ 1 << random.randrange(8)]), at)
    wait_until(
        "errors", 60, lambda: all(f"Segment {path} is damaged" in broker.log for path in segments)
    )
    assert "wrong crc" in broker.log
    with broker.wire() as wire:
        for path, before in zip(segments, right, strict=True):
            message = first_message(wire, path)
            if message != before:  # it may come out of a cache of rebuilt sets
                assert crc32(message[4:]) != int.from_bytes(message[:4], "big")
        produce(broker, 2)  # the broker goes on
        assert len(wire.read_all(TOPIC, 0, end)) == 60


def first_message(wire: Wire, segment: Path) -> bytes:
    """As a consumer gets it, from the crc on."""
    _, data = wire.fetch(TOPIC, 0, int(segment.stem))
    return data[12 : 12 + int.from_bytes(data[8:12], "big")]
