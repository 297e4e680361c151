"""Values wait in order for the task that takes them."""

from __future__ import annotations

import pytest

from kafka08.cluster.partition import Partition
from kafka08.common import TopicPartition
from kafka08.runtime import Empty
from kafka08.server.requests.effects import Effects
from tests.fakes.runtime import FakeRuntime


def test_a_partition_is_queued_once_until_it_is_taken() -> None:
    effects = Effects(FakeRuntime())
    first, second = (Partition(TopicPartition("t", number), 1) for number in range(2))
    for partition in (first, second, first):
        effects.isr_may_change(partition)
    assert effects.take_isr_change(1.0) is first
    effects.isr_may_change(first)
    assert effects.has_isr_changes
    assert [effects.take_isr_change(1.0) for _ in range(2)] == [second, first]
    assert not effects.has_isr_changes
    with pytest.raises(Empty):
        effects.take_isr_change(1.0)


def test_who_waits_can_be_stopped() -> None:
    effects = Effects(FakeRuntime())
    effects.stop_isr_changes()
    effects.stop_rolled()
    assert effects.take_isr_change(1.0) is None
    assert effects.take_rolled() is None
