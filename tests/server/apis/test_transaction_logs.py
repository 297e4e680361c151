"""The producers of partitions, and the markers that coordinators send."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.protocol import transaction_schemas as t
from tests.server.transactions.support import TransactionRig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TransactionRig]:
    rig = TransactionRig(tmp_path)
    yield rig
    rig.close()


def test_the_producers_of_a_partition(rig: TransactionRig) -> None:
    producer = rig.begin()
    rig.add(producer, 0)
    rig.write(producer, 0, "a", "b")
    topics = [t.ProducersTopic("t", [0, 9])]
    found, missing = rig.ask(t.DescribeProducersRequest(topics), 0).topics[0].partitions
    assert found.error == 0 and missing.error == 3
    (active,) = found.producers
    assert active[:3] == (producer.id, producer.epoch, 1)
    assert (active.coordinator_epoch, active.transaction_start) == (-1, 0)
    rig.end(producer, commit=True)
    rig.run_tasks()
    (active,) = rig.ask(t.DescribeProducersRequest(topics), 0).topics[0].partitions[0].producers
    assert (active.coordinator_epoch, active.transaction_start) == (0, -1)
