"""The beginning of what consumers tell their coordinator; tests of the broker have odd forms."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import ProtocolError
from kafka08.groups.consumer_protocol import assigned_partitions, subscribed_topics


def test_subscribed_topics() -> None:
    assert subscribed_topics(bytes.fromhex("0000 00000002 0001 74 0001 75 ffffffff")) == ["t", "u"]


def test_assigned_partitions() -> None:
    data = bytes.fromhex("0001 00000001 0001 74 00000002 00000001 00000003 ffffffff 00000000")
    assert assigned_partitions(data) == [TopicPartition("t", 1), TopicPartition("t", 3)]
    for size in range(20):
        with pytest.raises(ProtocolError):
            assigned_partitions(data[:size])
