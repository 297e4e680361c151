"""Transactions through a broker's requests: what readers see, fencing, timeouts, takeovers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.common import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kafka08.errors import LaterCode
from kafka08.protocol import transaction_schemas as t
from kafka08.server.transactions.coordinator import Producer
from tests.server.support import PEER, partition_state
from tests.server.transactions.support import TransactionRig

CONCURRENT = LaterCode.CONCURRENT_TRANSACTIONS
FENCED = LaterCode.PRODUCER_FENCED
MAPPING = LaterCode.INVALID_PRODUCER_ID_MAPPING
STATE = LaterCode.INVALID_TXN_STATE


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TransactionRig]:
    rig = TransactionRig(tmp_path)
    yield rig
    rig.close()


@pytest.mark.scenario("transactions-31")
def test_a_commit_of_three_partitions_is_read_as_a_whole(rig: TransactionRig) -> None:
    producer = rig.begin()
    assert rig.add(producer, 0, 1, 2) == 0
    for number in range(3):
        assert rig.write(producer, number, "a", "b") == 0
        assert rig.read(number) == [] and rig.read(number, committed=False) == ["a", "b"]
        assert rig.end_offset(number) == 0 and rig.end_offset(number, committed=False) == 2
    assert rig.end(producer, commit=True) == 0
    rig.run_tasks()
    assert rig.state() == "CompleteCommit"
    for number in range(3):
        assert rig.read(number) == ["a", "b"]
        assert rig.end_offset(number) == 3


def test_what_is_aborted_is_read_by_nobody_who_asks_for_committed(rig: TransactionRig) -> None:
    producer = rig.begin()
    rig.add(producer, 0)
    rig.write(producer, 0, "a")
    assert rig.end(producer, commit=False) == 0
    rig.add(producer, 0)
    rig.write(producer, 0, "b", sequence=1)
    assert rig.end(producer, commit=True) == 0
    rig.run_tasks()
    assert rig.read(0) == ["b"] and rig.read(0, committed=False) == ["a", "b"]
    assert rig.read(0, 1) == ["b"]


@pytest.mark.scenario("transactions-7", "transactions-8")
def test_a_second_producer_fences_the_first_and_aborts_its_transaction(
    rig: TransactionRig,
) -> None:
    first = rig.begin()
    rig.add(first, 0)
    rig.write(first, 0, "a")
    second = rig.begin()
    assert second.id == first.id and second.epoch > first.epoch + 1
    assert rig.state() == "Empty"
    assert rig.add(first, 0) == rig.end(first, commit=True) == FENCED
    assert rig.add(first, 0, version=0) == LaterCode.INVALID_PRODUCER_EPOCH
    assert rig.end(first, commit=True, version=1) == LaterCode.INVALID_PRODUCER_EPOCH
    assert rig.write(first, 0, "late", sequence=1) == LaterCode.INVALID_PRODUCER_EPOCH
    rig.add(second, 0)
    assert rig.write(second, 0, "b") == 0
    assert rig.end(second, commit=True) == 0
    rig.run_tasks()
    assert rig.read(0) == ["b"]


def test_the_same_producer_goes_on_with_a_new_epoch(rig: TransactionRig) -> None:
    first = rig.begin()
    rig.add(first, 0)
    rig.write(first, 0, "a")
    code, second = rig.init(expected=first)
    assert code == 0 and second.id == first.id and second.epoch > first.epoch
    assert rig.init(expected=first)[0] == 0  # its first answer was lost
    assert rig.init(expected=(first.id, first.epoch - 1))[0] == LaterCode.INVALID_REQUEST
    assert rig.init(expected=(first.id + 1, 0))[0] == FENCED
    third = rig.begin()
    assert rig.init(expected=first)[0] == FENCED
    assert rig.init(expected=third)[0] == 0


def test_a_former_producer_does_not_abort_the_transaction_of_the_next(rig: TransactionRig) -> None:
    first, second = rig.begin(), rig.begin()
    rig.add(second, 0)
    assert rig.init(expected=first)[0] == FENCED
    assert rig.state() == "Ongoing"


@pytest.mark.scenario("transactions-9")
@pytest.mark.parametrize(
    ("timeout_ms", "code"), [(0, 50), (-1, 50), (900_001, 50), (900_000, 0), (1, 0)]
)
def test_the_timeout_is_limited(rig: TransactionRig, timeout_ms: int, code: int) -> None:
    assert rig.init(timeout_ms=timeout_ms)[0] == code
    assert rig.state() == ("Empty" if not code else "error 105")


@pytest.mark.scenario("transactions-10")
def test_a_silent_producer_is_aborted(rig: TransactionRig) -> None:
    producer = rig.begin()
    rig.add(producer, 0)
    rig.write(producer, 0, "a")
    rig.clock.advance(60)
    rig.coordinator.abort_late()
    rig.run_tasks()
    assert rig.state() == "Ongoing"
    rig.clock.advance(0.001)
    rig.coordinator.abort_late()
    rig.run_tasks()
    assert rig.state() == "CompleteAbort"
    assert rig.end_offset(0) == 2 and rig.read(0) == []
    assert rig.end(producer, commit=True) == FENCED
    assert rig.write(producer, 0, "late", sequence=1) == LaterCode.INVALID_PRODUCER_EPOCH
    assert rig.init(expected=producer)[0] == FENCED
    assert rig.begin().epoch == 2


@pytest.mark.scenario("transactions-11", "transactions-12")
def test_an_end_that_is_sent_twice(rig: TransactionRig) -> None:
    producer = rig.begin()
    assert rig.end(producer, commit=True) == STATE
    rig.add(producer, 0)
    rig.write(producer, 0, "a")
    assert rig.end(producer, commit=True) == rig.end(producer, commit=True) == 0
    rig.run_tasks()
    assert rig.end(producer, commit=True) == 0
    assert rig.end(producer, commit=False) == STATE
    assert rig.log(0).log_end_offset == 2  # one marker


@pytest.mark.scenario("transactions-15")
def test_one_partition_that_does_not_exist_refuses_all(rig: TransactionRig) -> None:
    producer = rig.begin()
    topics = [t.TxnTopic("t", [0, 9]), t.TxnTopic("none", [0]), t.TxnTopic(TRANSACTIONS_TOPIC, [0])]
    answer = rig.ask(t.AddPartitionsToTxnRequest("id", *producer, topics), 3)
    found = {
        (topic.topic, each.partition): each.error
        for topic in answer.topics
        for each in topic.partitions
    }
    assert found == {("t", 0): 55, ("t", 9): 3, ("none", 0): 3, (TRANSACTIONS_TOPIC, 0): 29}
    assert rig.state() == "Empty"


@pytest.mark.scenario("transactions-50")
def test_a_replica_on_an_original_refuses_all(rig: TransactionRig) -> None:
    """Such a partition would take neither batches nor the marker."""
    producer = rig.begin()
    rig.originals.add(PEER)
    rig.know(*(partition_state("t", number, replicas=[1, PEER]) for number in (1, 2)))
    topics = [t.TxnTopic("t", [0, 1])]
    answer = rig.ask(t.AddPartitionsToTxnRequest("id", *producer, topics), 3)
    assert [each.error for each in answer.topics[0].partitions] == [55, 43]
    assert rig.state() == "Empty"
    assert rig.add(producer, 0) == 0
    rig.know(partition_state(OFFSETS_TOPIC, 0, replicas=[1, PEER]))
    assert rig.ask(t.AddOffsetsToTxnRequest("id", *producer, "g"), 3).error == 43
    rig.end(producer, commit=True)
    rig.run_tasks()
    assert rig.state() == "CompleteCommit"


def test_ids_that_nobody_knows(rig: TransactionRig) -> None:
    assert rig.add(Producer(1, 0), 0) == rig.end(Producer(1, 0), commit=True) == MAPPING
    producer = rig.begin()
    assert rig.add(Producer(producer.id + 1, 0), 0) == MAPPING
    assert rig.init("")[0] == rig.add(producer, 0, id_="") == LaterCode.INVALID_REQUEST


@pytest.mark.scenario("transactions-47")
def test_an_epoch_that_is_used_up_brings_another_id(rig: TransactionRig) -> None:
    producer = rig.begin()
    led = rig.coordinator.store.led("id")
    assert not isinstance(led, int)
    entry = led.entries["id"]
    entry.current = entry.current._replace(epoch=0x7FFD)
    last = rig.begin()
    assert last == (producer.id, 0x7FFE)
    other = rig.begin()
    assert other.id != producer.id and other.epoch == 0
    assert rig.add(last, 0) == MAPPING
    assert rig.add(other, 0) == 0


def test_lists(rig: TransactionRig) -> None:
    one, two = rig.begin("one"), rig.begin("two")
    rig.add(two, 0, id_="two")
    rig.clock.advance(10)

    def listed(*states: str, ids: tuple[int, ...] = (), longer: int = -1) -> list[str]:
        answer = rig.ask(t.ListTransactionsRequest(list(states), list(ids), longer), 1)
        assert answer.unknown_states == [state for state in states if state == "Odd"]
        return [each.transactional_id for each in answer.transactions]

    assert listed() == ["one", "two"]
    assert listed("Ongoing") == listed(ids=(two.id,)) == listed(longer=9_999) == ["two"]
    assert listed("Empty", "Odd") == ["one"]
    assert listed("Odd") == listed("Ongoing", ids=(one.id,)) == listed(longer=10_000) == []
    found = rig.ask(t.DescribeTransactionsRequest(["two", "none"]), 0).transactions
    assert found[0].topics == [t.ProducersTopic("t", [0])]
    assert (found[0].timeout_ms, found[0].producer_id) == (60_000, two.id)
    assert found[0].start_ms == rig.clock.millis() - 10_000
    assert found[1].error == 105
