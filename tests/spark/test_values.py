"""The values of the old API."""

from __future__ import annotations

import pickle

import pytest

from kafka08.spark.planner import Range
from kafka08.spark.values import (
    KafkaMessageAndMetadata,
    OffsetRange,
    TopicAndPartition,
    to_offset_range,
    to_range,
    utf8_decoder,
)


def test_topics_and_partitions() -> None:
    one = TopicAndPartition("t", 1)
    assert one == TopicAndPartition("t", 1)
    assert one != TopicAndPartition("t", 2)
    assert one != TopicAndPartition("u", 1)
    assert one != ("t", 1)
    assert {one: 1}[TopicAndPartition("t", 1)] == 1


def test_offset_ranges() -> None:
    one = OffsetRange("t", 1, 2, 3)
    assert one == OffsetRange("t", 1, 2, 3)
    assert one != OffsetRange("t", 1, 2, 4)
    assert str(one) == "OffsetRange(topic: t, partition: 1, range: [2 -> 3])"
    assert to_range(one) == Range("t", 1, 2, 3)
    assert to_offset_range(to_range(one)) == one
    with pytest.raises(TypeError):
        hash(one)


@pytest.mark.scenario("spark-5")
def test_messages_decode_at_each_access_and_forget_decoders_when_pickled() -> None:
    calls: list[bytes] = []
    message = KafkaMessageAndMetadata("t", 0, 7, None, b"\xc3\xa4")
    assert message.key is None
    assert message.message == "\u00e4"
    message._set_value_decoder(lambda raw: calls.append(raw) or len(raw))
    assert (message.message, message.message) == (2, 2)
    assert len(calls) == 2
    copy = pickle.loads(pickle.dumps(message))
    assert (copy.topic, copy.partition, copy.offset, copy.message) == ("t", 0, 7, "\u00e4")
    assert utf8_decoder(None) is None
