"""Markers go to the leaders that partitions have, until each has heard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.errors import LaterCode
from kafka08.protocol import transaction_schemas as t
from kafka08.server.transactions.markers import MarkerWriter
from kafka08.server.transactions.records import Transaction
from kafka08.server.transactions.states import PREPARE_COMMIT
from kafka08.server.transactions.store import Led
from tests.server.transactions.support import TransactionRig

ME, PEER = Broker(1, "host1", 9092), Broker(2, "host2", 9092)
KEYS = frozenset(TopicPartition("t", number) for number in range(3))
ENDED = Transaction("id", 7, 3, 60_000, PREPARE_COMMIT, KEYS)
Answer = Callable[[int, TopicPartition], int]


class Cluster:
    """Its brokers answer with the code of ``answer(broker, partition)``, and ``asked`` has what
    they got: (broker, partitions of each marker)."""

    def __init__(self, rig: TransactionRig, answer: Answer) -> None:
        self.rig = rig
        self.answer = answer
        self.leaders: dict[TopicPartition, Broker | None] = dict.fromkeys(KEYS, PEER)
        self.asked: list[tuple[int, list[list[int]]]] = []
        self.led = Led(0, 5)
        self.existing = set(KEYS)
        cache: Any = SimpleNamespace(leader_of=self.leaders.get)
        cache.has_partition = lambda *key: key in self.leaders
        peers: Any = SimpleNamespace(call=lambda broker, request, _: self._ask(broker.id, request))
        self.writer = MarkerWriter(
            *(rig.runtime, cache, peers, ME.id),
            lambda request: self._ask(ME.id, request),
            self.existing.__contains__,
        )

    def _ask(self, broker: int, request: t.WriteTxnMarkersRequest) -> t.WriteTxnMarkersResponse:
        numbers = [sorted(m.topics[0].partitions) for m in request.markers]
        self.asked.append((broker, numbers))
        written = []
        for marker in request.markers:
            assert marker[:3] == (7, 3, True) and marker.coordinator_epoch == 5
            codes = [
                t.MarkedPartition(each, self.answer(broker, TopicPartition("t", each)))
                for each in sorted(marker.topics[0].partitions)
            ]
            written.append(t.WrittenTxnMarker(7, [t.MarkedTopicResponse("t", codes)]))
        return t.WriteTxnMarkersResponse(written)

    def write(self) -> None:
        self.writer.write(ENDED, self.led)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TransactionRig]:
    rig = TransactionRig(tmp_path)
    yield rig
    rig.close()


def test_each_leader_gets_its_partitions(rig: TransactionRig) -> None:
    cluster = Cluster(rig, lambda *_: 0)
    cluster.leaders[TopicPartition("t", 1)] = ME
    cluster.write()
    assert sorted(cluster.asked) == [(1, [[1]]), (2, [[0, 2]])]


def test_what_is_refused_is_sent_to_the_next_leader(rig: TransactionRig) -> None:
    def answer(broker: int, key: TopicPartition) -> int:
        if broker == PEER.id and key.partition == 2:
            cluster.leaders[key] = ME
            return 6
        return 0

    cluster = Cluster(rig, answer)
    cluster.write()
    assert cluster.asked == [(2, [[0, 1, 2]]), (1, [[2]])]


def test_a_broker_that_does_not_answer_is_asked_again(rig: TransactionRig) -> None:
    def answer(broker: int, key: TopicPartition) -> int:
        if len(cluster.asked) < 3:
            raise ConnectionResetError("cut")
        return 0

    cluster = Cluster(rig, answer)
    cluster.write()
    assert cluster.asked == [(2, [[0, 1, 2]])] * 3


@pytest.mark.parametrize(
    "code",
    [
        LaterCode.INVALID_PRODUCER_EPOCH,
        LaterCode.TRANSACTION_COORDINATOR_FENCED,
        LaterCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ],
)
def test_partitions_that_take_no_marker_of_it_are_done(rig: TransactionRig, code: int) -> None:
    cluster = Cluster(rig, lambda _, key: code if key.partition == 1 else 0)
    cluster.write()
    assert len(cluster.asked) == 1


def test_a_coordinator_that_was_replaced_sends_no_more(rig: TransactionRig) -> None:
    def answer(broker: int, key: TopicPartition) -> int:
        cluster.led.is_over = True
        return 7

    cluster = Cluster(rig, answer)
    cluster.write()
    assert len(cluster.asked) == 1
    cluster.write()
    assert len(cluster.asked) == 1


def test_a_partition_that_is_not_known_yet_is_waited_for(rig: TransactionRig) -> None:
    """A broker that has just started leads the ids before the controller has named all topics."""
    cluster = Cluster(rig, lambda *_: 0)
    key = TopicPartition("t", 1)
    leader = cluster.leaders.pop(key)
    rig.runtime.on_sleep = lambda _: cluster.leaders.update({key: leader})
    cluster.write()
    assert cluster.asked == [(2, [[0, 2]]), (2, [[1]])]


def test_a_partition_that_is_gone_needs_no_marker(rig: TransactionRig) -> None:
    cluster = Cluster(rig, lambda *_: 0)
    key = TopicPartition("t", 1)
    del cluster.leaders[key]
    cluster.existing.remove(key)
    cluster.write()
    assert cluster.asked == [(2, [[0, 2]])]
