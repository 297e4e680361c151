"""Moves as values; tests/tools has what the command prints of them."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.admin import AdminCommandFailedError
from kafka08.common import TopicPartition
from kafka08.topics.moves import check_moves, parse_moves, parse_topics, proposal
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes
from zk.locations import Location

T0 = TopicPartition("t", 0)
ENTRY = b'{"topic":"t","partition":0,"replicas":[%s]}'


def test_repeated_entries_are_kept_and_refused() -> None:
    text = b'{"partitions":[%s,%s]}' % (ENTRY % b"1,2", ENTRY % b"2,1")
    moves = parse_moves("form", text)
    assert moves == [(T0, (1, 2)), (T0, (2, 1))]
    with pytest.raises(AdminCommandFailedError, match=r"duplicate topic partitions: \[t,0\]$"):
        check_moves(moves)


def test_a_proposal_keeps_replicas_of_a_unit_apart() -> None:
    zk: Any = Session(FakeZooKeeper())
    for broker_id in (1, 2):
        registration = znodes.BrokerRegistration("h", 9092, location=Location(unit="u"))
        path = znodes.broker_path(broker_id)
        zk.create(path, znodes.encode_broker(registration), makepath=True)
    spread = znodes.encode_topic(dict.fromkeys(range(12), (1, 2)))
    zk.create(znodes.topic_path("t"), spread, makepath=True)
    proposed = proposal(zk, ["t"], [1, 2, 3])  # broker 3 is not live
    assert len(proposed) == 12
    assert all(3 in replicas for replicas in proposed.values())
    assert {tuple(sorted(each)) for each in proposed.values()} == {(1, 3), (2, 3)}


@pytest.mark.parametrize("text", [b"", b"no json", b"{}"])
def test_texts_without_entries(text: bytes) -> None:
    assert parse_moves("form", text) == [] == parse_topics("form", text)
