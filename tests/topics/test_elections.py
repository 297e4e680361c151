"""Elections as values; tests/tools has what the command prints of them."""

from __future__ import annotations

import pytest

from kafka08.admin import AdminCommandFailedError
from kafka08.common import TopicPartition
from kafka08.topics import elections
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes


def test_partitions_of_json() -> None:
    text = b'{"partitions":[{"topic":"u","partition":1},{"topic":"t","partition":0}]}'
    assert elections.parse_partitions("p", text) == [("u", 1), ("t", 0)]


def test_a_second_election_names_the_first() -> None:
    zk = Session(FakeZooKeeper())
    zk.create(znodes.topic_path("t"), znodes.encode_topic({0: [1]}), makepath=True)
    elections.start(zk, [TopicPartition("t", 0)])  # type: ignore[arg-type]
    with pytest.raises(AdminCommandFailedError) as caught:
        elections.start(zk, [TopicPartition("t", 0)])  # type: ignore[arg-type]
    assert "currently in progress for Set([t,0])" in str(caught.value.__cause__)
