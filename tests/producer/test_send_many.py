"""KafkaProducer.send_many: what many calls of send would do, without a call a record."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kafka08.errors import KafkaError
from kafka08.producer.errors import (
    BufferExhaustedError,
    MetadataTimeoutError,
    ProducerClosedError,
    RecordTooLargeError,
)
from kafka08.producer.partitioners import RoundRobin, StickyRandom, Unkeyed
from tests.producer.fake_producer import ProducerDriver

VALUES = [b"v%d" % number for number in range(50)]
MIXED = [None if number % 7 == 3 else b"x" * (number % 40) for number in range(200)]
KEYS = [None if number % 5 == 2 else b"k%d" % (number % 9) for number in range(200)]
PARTITIONS = [None if number % 3 else number % 2 for number in range(200)]


def stored(driver: ProducerDriver) -> list[list[bytes | None]]:
    return [driver.cluster.values("t", partition) for partition in (0, 1)]


@pytest.mark.parametrize(
    ("values", "keys", "partitions"),
    [
        (VALUES, None, None),
        (MIXED, None, None),
        (MIXED, KEYS, None),
        (MIXED, None, PARTITIONS),
        (MIXED, KEYS, PARTITIONS),
        ([], None, None),
    ],
)
@pytest.mark.parametrize("chooser", [RoundRobin, StickyRandom])
@pytest.mark.parametrize("batch_size", [0, 100, 16384])
def test_as_many_calls_of_send(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None,
    partitions: Sequence[int | None] | None,
    chooser: Callable[[random.Random], Unkeyed],
    batch_size: int,
) -> None:
    def driver() -> ProducerDriver:
        return ProducerDriver(unkeyed=lambda: chooser(random.Random(5)), batch_size=batch_size)

    one_by_one, together = driver(), driver()
    for row, value in enumerate(values):
        key = keys[row] if keys else None
        one_by_one.producer.send("t", value, key, partitions[row] if partitions else None)
    for start in (0, 30):  # as two batches, the second of which finds the first one's open
        part = slice(start, start + 30 if start == 0 else None)
        together.producer.send_many(
            "t", values[part], keys and keys[part], partitions and partitions[part]
        )
    one_by_one.run()
    together.run()
    assert stored(together) == stored(one_by_one)
    assert together.producer.metrics()["record-send-total"] == len(values)
    assert together.producer.metrics()["buffer-available-bytes"] == 32 << 20


def test_the_callback_hears_of_each_stretch() -> None:
    driver = ProducerDriver(batch_size=100)
    called: list[tuple[Any, Any]] = []
    driver.producer.send_many("one", VALUES[:10], callback=lambda *end: called.append(end))
    assert called == []
    driver.run()
    # 28 bytes each: three to a batch.
    assert [(metadata.offset, error) for metadata, error in called] == [
        (2, None),
        (5, None),
        (8, None),
        (9, None),
    ]


def test_what_fails_is_told() -> None:
    driver = ProducerDriver()
    called: list[Any] = []
    driver.producer.send_many("one", VALUES, callback=lambda _, error: called.append(error))
    driver.producer.close(0)
    assert len(called) == 1
    assert isinstance(called[0], KafkaError)
    with pytest.raises(ProducerClosedError):
        driver.producer.send_many("one", VALUES)


def test_what_cannot_be_queued() -> None:
    driver = ProducerDriver(max_request_size=100)
    with pytest.raises(RecordTooLargeError, match=r"126 bytes .* max\.request\.size"):
        driver.producer.send_many("one", [b"small", b"x" * 100])
    with pytest.raises(ValueError, match="2 is not in the range"):
        driver.producer.send_many("t", [b"v"], None, [2])
    with pytest.raises(MetadataTimeoutError):
        driver.producer.send_many("unknown", [b"v"])


def test_more_than_the_buffer_takes_waits_for_room() -> None:
    driver = ProducerDriver(buffer_memory=100, linger_ms=10**6, max_block_ms=1000)
    driver.producer.partitions_for("one")
    driver.runtime.on_sleep = lambda seconds: driver.run()
    driver.producer.send_many("one", VALUES)
    assert driver.cluster.values("one", 0) == VALUES[:48]  # the last ones have room
    driver.silent = True
    with pytest.raises(BufferExhaustedError, match="within 1000 ms"):
        driver.producer.send_many("one", VALUES[:3])
