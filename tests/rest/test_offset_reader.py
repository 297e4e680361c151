from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.rest.errors import RestError
from kafka08.rest.offset_reader import OffsetReader
from tests.rest.world import RestWorld

TP = TopicPartition("t", 0)


def offsets(world: RestWorld, max_bytes: int, offset: int, count: int) -> list[int]:
    reader = OffsetReader(world.cluster, max_bytes)
    return [message.offset for message in reader.read(TP, offset, count)]


def test_bytes_are_limited_and_one_message_comes_at_least() -> None:
    world = RestWorld()
    world.topic("t")
    world.brokers.append("t", 0, b"x" * 100, b"y" * 100, b"z" * 150)
    assert offsets(world, 250, 0, 10) == [0, 1]
    assert offsets(world, 250, 2, 10) == [2]
    assert offsets(world, 1000, 0, 10) == [0, 1, 2]
    with pytest.raises(RestError, match="offset 2 of topic t partition 0 is larger than the 120"):
        offsets(world, 120, 2, 1)
