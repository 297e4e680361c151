"""Transactions in a cluster that an original 0.8.2.2 broker joins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.harness import Broker, Process, ZooKeeper, isr, zookeeper_text
from integration.later.transactional import (
    WAIT_S,
    add,
    ask,
    batch,
    begun,
    coordinator_code,
    end,
    produce,
    state,
)
from integration.test_transactions import consumer, producer
from integration.wire import Wire, entries, entry, fetch_frame, wait_until
from kafka08.protocol import schemas as s
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest

OURS, SHARED, THEIRS = "of-ours", "shared", "of-theirs"
REFUSED, NOT_INCLUDED, NOT_TRIED = 43, 48, 55
GROUP = "group"
PROPS = {"offsets.topic.num.partitions": 1, "replica.lag.time.max.ms": 5000}


class Pair:
    """Ours runs; the original is to join. Each of its topics has one partition."""

    def __init__(self, directory: Path, chroot: str, launch: Callable[[Process], None]) -> None:
        self.chroot = chroot
        props = {**PROPS, "api.versions.enable": "true"}
        self.ours = Broker("ours", directory / "ours", chroot, broker_id=0, props=props)
        self.original = Broker("original", directory / "original", chroot, broker_id=1, props=PROPS)
        for each in (self.ours, self.original):
            launch(each)
        self.ours.start()

    def join(self) -> None:
        """The original, with a topic that it leads."""
        self.original.start()
        self.original.create_topic(THEIRS, replicas=[1, 0])
        wait_until("its isr", WAIT_S, lambda: isr(self.chroot, THEIRS) == [0, 1])


@pytest.fixture
def pair(zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]) -> Pair:
    return Pair(tmp_path, f"{zookeeper.connect}/{tmp_path.name}", launch)


def latest(wire: Wire, topic: str, *, committed: bool) -> int:
    asked = [s.OffsetsTopic(topic, [s.OffsetsPartition(0, -1)])]
    request = s.OffsetsRequest(-1, asked, isolation_level=int(committed))
    return int(ask(wire, request, 5).topics[0].partitions[0].offset)


@pytest.mark.scenario("transactions-50")
@pytest.mark.original
def test_none_begins(pair: Pair) -> None:
    """Nor is the topic of their states made, of which the original would have replicas."""
    with pair.ours.wire() as wire:
        pair.join()
        for _ in range(3):
            assert coordinator_code(wire, "id") == REFUSED
        assert ask(wire, InitProducerIdRequest("id", 1000), 4).error == REFUSED
    assert zookeeper_text(pair.chroot, "/brokers/topics/__transaction_state") is None
    assert " ERROR " not in pair.ours.log


@pytest.mark.scenario("transactions-50")
@pytest.mark.original
def test_an_open_one_ends(pair: Pair) -> None:
    """Its partitions are ours. It includes none that the original stores or leads."""
    pair.ours.create_topic(OURS)
    with pair.ours.wire() as wire:
        made, other = begun(wire, "id"), begun(wire, "other", 20_000)
        for id_, ids in (("id", made), ("other", other)):
            assert add(wire, id_, ids, OURS) == {OURS: 0}
            assert produce(wire, OURS, batch(ids, 0), id_) == 0
        pair.join()
        pair.ours.create_topic(SHARED, replicas=[0, 1])
        wait_until("the original in the isr", WAIT_S, lambda: isr(pair.chroot, SHARED) == [0, 1])

        assert ask(wire, InitProducerIdRequest("id", 1000), 4).error == REFUSED
        for topic in (SHARED, THEIRS):
            assert add(wire, "id", made, OURS, topic) == {OURS: NOT_TRIED, topic: REFUSED}
            assert add(wire, "id", made, topic) == {topic: REFUSED}
        assert produce(wire, SHARED, batch(made, 0), "id") == NOT_INCLUDED
        assert wire.produce(SHARED, 0, entry(None, b"old"), -1) == 0
        assert produce(wire, OURS, batch(made, 1), "id") == 0
        assert end(wire, "id", made, commit=True) == 0
        wait_until("the end", WAIT_S, lambda: state(wire, "id") == "CompleteCommit")
        wait_until("the timeout", WAIT_S, lambda: state(wire, "other") == "CompleteAbort")
        assert latest(wire, OURS, committed=True) == latest(wire, OURS, committed=False) == 5
        # 0.8's reader: no markers.
        found = wire.call(fetch_frame(OURS, 0, 0))
        messages = list(entries(found[4 + 2 + len(OURS) + 4 + 18 :]))
        assert [each.value for each in messages] == [b"x"] * 3
    for topic in (SHARED, THEIRS):
        assert isr(pair.chroot, topic) == [0, 1]
    assert json.loads(zookeeper_text(pair.chroot, f"/brokers/topics/{OURS}") or "")["partitions"]
    with pair.original.wire() as wire:
        wait_until("the follower", WAIT_S, lambda: wire.leader(SHARED, 0) == 0)
    assert pair.ours.stop() == 143
    pair.original.wait_for_leader(SHARED)
    with pair.original.wire() as wire:
        assert [each.value for each in wire.read_all(SHARED, 0)] == [b"old"]
    assert " ERROR " not in pair.ours.log


@pytest.mark.scenario("transactions-50")
@pytest.mark.original
def test_a_client_goes_on(pair: Pair) -> None:
    """librdkafka, with the connections that it has: no new one is served."""
    from confluent_kafka import TopicPartition

    pair.ours.create_topic(OURS)
    made = producer(pair.ours.address, "id")
    reader = consumer(pair.ours.address)
    reader.assign([TopicPartition(OURS, 0, 0)])
    made.begin_transaction()
    made.produce(OURS, "1", partition=0)
    assert made.flush(WAIT_S) == 0
    wait_until("a connection", WAIT_S, lambda: reader.get_watermark_offsets(reader.assignment()[0]))
    pair.join()
    made.produce(OURS, "2", partition=0)
    made.commit_transaction(WAIT_S)
    found: list[str] = []

    def is_read() -> bool:
        message = reader.poll(1)
        if message is not None and not message.error():
            found.append(message.value().decode())
        return found == ["1", "2"]

    wait_until("both", WAIT_S, is_read)
    reader.close()


@pytest.mark.scenario("transactions-50")
@pytest.mark.original
def test_offsets_that_an_original_stores(pair: Pair) -> None:
    """A transaction that would commit them is refused them, and ends."""
    pair.ours.create_topic(OURS)
    pair.ours.create_topic("__consumer_offsets", replicas=[0, 1])
    with pair.ours.wire() as wire:
        made = begun(wire, "id")
        assert add(wire, "id", made, OURS) == {OURS: 0}
        assert produce(wire, OURS, batch(made, 0), "id") == 0
        pair.join()
        for version in (0, 3):
            request = t.AddOffsetsToTxnRequest("id", *made, GROUP)
            assert ask(wire, request, version).error == REFUSED
        assert end(wire, "id", made, commit=True) == 0
        wait_until("the end", WAIT_S, lambda: state(wire, "id") == "CompleteCommit")
        assert latest(wire, OURS, committed=True) == 2
