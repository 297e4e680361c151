"""A search by time after DeleteRecords within a batch, beside Kafka 3.9.1."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration import modern
from integration.harness import Broker, Process
from integration.later import frames
from integration.later.frames import Record
from integration.modern import ModernBroker
from integration.wire import Wire

TOPIC = "times"
TIMES = (30, 10, 20)


def search(address: str, since: int) -> int:
    """The offset; -1 is the end of the log."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused"})
    [found] = consumer.offsets_for_times([TopicPartition(TOPIC, 0, frames.TIME + since)], 30)
    consumer.close()
    assert found.error is None
    return int(found.offset)


def searched(broker: Any) -> list[list[int]]:
    """The offsets since some times, with no record deleted, one and two."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    broker.create_topic(TOPIC)
    records = frames.encode_records([Record(None, b"x", (), each) for each in TIMES])
    data = frames.batch(
        gzip.compress(records), len(TIMES), codec=1, time=frames.TIME, newest=frames.TIME + 30
    )
    with Wire(broker.port) as wire:
        reply = wire.call(frames.produce_frame(TOPIC, data, version=7))
        assert frames.produced(reply, TOPIC) == (0, 0)
    admin = AdminClient({"bootstrap.servers": broker.address})
    found = []
    for start in range(len(TIMES)):
        where = TopicPartition(TOPIC, 0, start)
        assert admin.delete_records([where])[where].result(30).low_watermark == start
        found.append([search(broker.address, since) for since in (0, 15, 25)])
    return found


@pytest.mark.parametrize("kind", ["ours", "3.9.1"])
def test_the_first_record_that_is_not_deleted(
    kind: str, modern_broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    if kind == "ours":
        broker: Any = modern_broker
    else:
        if reason := modern.missing():
            pytest.skip(reason)
        broker = ModernBroker(tmp_path / "later").start()
        launch(broker)
    assert searched(broker) == [[0, 0, 0], [1, 2, -1], [2, 2, -1]]
