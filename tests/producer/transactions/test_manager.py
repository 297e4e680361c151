"""The states and requests of a transactional producer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import (
    InvalidProducerEpochError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
)
from kafka08.message.batch import header_of
from kafka08.producer.errors import (
    DeliveryTimeoutError,
    FatalTransactionError,
    IllegalGenerationError,
    IllegalStateError,
    InvalidProducerIdMappingError,
    InvalidTransactionTimeoutError,
    ProducerFencedError,
    TopicAuthorizationError,
    TransactionAbortedError,
    TransactionFailedError,
    WaitTimeoutError,
)
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.transactions.manager import ConsumerGroupMetadata, OffsetAndMetadata
from kafka08.protocol import schemas as s
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest
from tests.producer.transactions.support import ONE, TransactionalDriver

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
CALLS: dict[str, Callable[[KafkaProducer], object]] = {
    "init": lambda p: p.init_transactions(),
    "begin": lambda p: p.begin_transaction(),
    "offsets": lambda p: p.send_offsets_to_transaction({ONE: 1}, "g"),
    "commit": lambda p: p.commit_transaction(),
    "abort": lambda p: p.abort_transaction(),
    "send": lambda p: p.send("one", b"x"),
}


def headers(driver: TransactionalDriver) -> list[tuple[int, int, int, int]]:
    """(epoch, first sequence, count, attributes) of each batch that was sent."""
    found = [
        header_of(part.message_set)
        for request in driver.produced
        for topic in request.topics
        for part in topic.partitions
    ]
    return [(b.producer_epoch, b.base_sequence, b.count, b.attributes) for b in found]


# --- transactions that go well


def test_a_commit() -> None:
    driver = TransactionalDriver().begun()
    producer = driver.producer
    futures = [producer.send("t", b"x", partition=n % 2) for n in range(4)]
    producer.send_offsets_to_transaction({ONE: 5, T1: OffsetAndMetadata(6, "m", 2)}, "g")
    producer.commit_transaction()
    assert all(future.done() for future in futures)
    assert driver.coordinator.ends == [(True, {T0, T1}, {ONE: 5, T1: 6})]
    assert {each.transactional_id for each in driver.produced} == {"orders"}
    assert [each[3] for each in headers(driver)] == [0x10, 0x10]
    assert driver.kinds[0] == "InitProducerId"
    assert driver.kinds.index("AddPartitionsToTxn") < driver.kinds.index("Produce")
    assert driver.kinds[-1] == "EndTxn"
    (found,) = driver.cluster.sent(InitProducerIdRequest)
    assert (found.transactional_id, found.transaction_timeout_ms) == ("orders", 60000)
    (commit,) = driver.cluster.sent(t.TxnOffsetCommitRequest)
    assert commit.topics[1].partitions == [t.TxnOffsetCommitPartition(1, 6, "m", 2)]
    assert driver.coordinator.groups == ["g"]


def test_sequences_go_on_and_partitions_are_added_to_each_transaction() -> None:
    driver = TransactionalDriver()
    driver.producer.init_transactions()
    for _ in range(2):
        driver.producer.begin_transaction()
        for _ in range(2):
            driver.producer.send("one", b"x")
            driver.producer.flush()
        driver.producer.commit_transaction()
    assert headers(driver) == [(0, number, 1, 0x10) for number in range(4)]
    assert driver.kinds.count("AddPartitionsToTxn") == 2


def test_an_abort_sends_nothing_that_waits() -> None:
    driver = TransactionalDriver(linger_ms=1000).begun()
    sent = driver.producer.send("one", b"sent")
    driver.producer.flush()
    waiting = driver.producer.send("one", b"waiting")
    driver.producer.abort_transaction()
    assert sent.result(0).offset == 0
    assert isinstance(waiting.exception(0), TransactionAbortedError)
    assert driver.coordinator.ends == [(False, {ONE}, {})]
    assert len(driver.cluster.sent(InitProducerIdRequest)) == 1  # no error: the epoch stays
    driver.producer.begin_transaction()
    driver.producer.send("one", b"next")
    driver.producer.commit_transaction()
    assert headers(driver)[-1] == (0, 1, 1, 0x10)


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_transaction_without_anything_is_not_ended(end: str) -> None:
    driver = TransactionalDriver().begun()
    driver.producer.send_offsets_to_transaction({}, "g")
    CALLS[end](driver.producer)
    assert driver.kinds == ["InitProducerId"]
    driver.producer.begin_transaction()


def test_a_member_of_a_group_is_named() -> None:
    driver = TransactionalDriver().begun()
    driver.producer.send_offsets_to_transaction({ONE: 1}, ConsumerGroupMetadata("g", 3, "m", "i"))
    (commit,) = driver.cluster.sent(t.TxnOffsetCommitRequest)
    assert (commit.group, commit.generation, commit.member_id) == ("g", 3, "m")
    assert commit.group_instance_id == "i"


def test_what_passes_is_tried_again() -> None:
    driver = TransactionalDriver()
    codes = driver.coordinator.codes
    codes[s.ConsumerMetadataRequest] = [15, 15]
    codes[InitProducerIdRequest] = [51, 14, 16]
    codes[t.AddPartitionsToTxnRequest] = [51, 51, 15, 3]
    codes[t.AddOffsetsToTxnRequest] = [51]
    codes[t.TxnOffsetCommitRequest] = [16, 14, 7]
    codes[t.EndTxnRequest] = [51, 16]
    driver.begun()
    driver.producer.send("one", b"x")
    driver.producer.send_offsets_to_transaction({ONE: 1}, "g")
    driver.producer.commit_transaction()
    assert driver.coordinator.ends == [(True, {ONE}, {ONE: 1})]
    assert not any(left for left in codes.values())


# --- calls that the state does not allow


@pytest.mark.parametrize(
    ("state", "before", "allowed"),
    [
        ("UNINITIALIZED", [], {"init"}),
        ("READY", ["init"], {"begin"}),
        ("IN_TRANSACTION", ["init", "begin"], {"offsets", "commit", "abort", "send"}),
        ("READY", ["init", "begin", "commit"], {"begin"}),
        ("READY", ["init", "begin", "abort"], {"begin"}),
    ],
)
@pytest.mark.parametrize("call", CALLS)
def test_calls(state: str, before: list[str], allowed: set[str], call: str) -> None:
    driver = TransactionalDriver()
    for each in before:
        CALLS[each](driver.producer)
    if call in allowed:
        CALLS[call](driver.producer)
        return
    with pytest.raises(IllegalStateError, match=f"in state {state} of transactional.id orders"):
        CALLS[call](driver.producer)


def test_wrong_offsets_change_nothing() -> None:
    driver = TransactionalDriver().begun()
    with pytest.raises(ValueError, match="negative offset -1"):
        driver.producer.send_offsets_to_transaction({ONE: -1}, "g")
    with pytest.raises(ValueError, match="Generation 3 without a member"):
        driver.producer.send_offsets_to_transaction({ONE: 1}, ConsumerGroupMetadata("g", 3))
    driver.producer.commit_transaction()
    assert driver.kinds == ["InitProducerId"]


# --- errors after which the transaction is aborted


def after_error(driver: TransactionalDriver) -> None:
    """Nothing but an abort goes; then the next transaction has another epoch."""
    producer = driver.producer
    for call in ("send", "begin", "offsets", "commit"):
        with pytest.raises(TransactionFailedError, match="must be aborted"):
            CALLS[call](producer)
    producer.abort_transaction()
    assert not driver.coordinator.is_open
    assert all(not committed for committed, _, _ in driver.coordinator.ends)
    known = driver.cluster.sent(InitProducerIdRequest)[-1]
    assert (known.producer_id, known.producer_epoch) == (7, 0)
    producer.begin_transaction()
    producer.send("one", b"next")
    producer.commit_transaction()
    assert driver.coordinator.ends[-1][:2] == (True, {ONE})
    assert headers(driver)[-1] == (1, 0, 1, 0x10)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (10, MessageSizeTooLargeError),
        (29, TopicAuthorizationError),
        (47, InvalidProducerEpochError),
    ],
)
def test_a_record_that_is_refused(code: int, kind: type[Exception]) -> None:
    driver = TransactionalDriver().begun()
    driver.coordinator.codes[s.ProduceRequest] = [code]
    future = driver.producer.send("one", b"x")
    with pytest.raises(TransactionFailedError) as caught:
        driver.producer.commit_transaction()
    assert isinstance(caught.value.__cause__, kind)
    assert not isinstance(caught.value, FatalTransactionError)
    assert isinstance(future.exception(0), kind)
    assert driver.coordinator.ends == []
    after_error(driver)


def test_records_that_wait_fail_with_the_one_that_was_refused() -> None:
    driver = TransactionalDriver(batch_size=0, max_request_size=40).begun()
    driver.coordinator.codes[s.ProduceRequest] = [10]
    futures = [driver.producer.send("one", b"x") for _ in range(4)]
    driver.run()
    assert isinstance(futures[0].exception(0), MessageSizeTooLargeError)
    for future in futures[1:]:
        assert "must be aborted: [one,0]" in str(future.exception(0))
    assert len(driver.produced) == 1
    after_error(driver)


def test_records_that_linger_fail_at_once() -> None:
    driver = TransactionalDriver(linger_ms=1000, batch_size=100).begun()
    driver.coordinator.codes[s.ProduceRequest] = [10]
    driver.producer.send("t", b"x" * 90, partition=0)
    waiting = driver.producer.send("t", b"x", partition=1)
    driver.run()
    assert "must be aborted: [t,0]" in str(waiting.exception(0))
    after_error(driver)


@pytest.mark.parametrize("partition", [None, 0])
def test_a_record_that_was_never_queued(partition: int | None) -> None:
    driver = TransactionalDriver(max_request_size=1000).begun()
    future = driver.producer.send("one", b"x" * 2000, partition=partition)
    assert isinstance(future.exception(0), MessageSizeTooLargeError)
    after_error(driver)


def test_a_record_that_is_refused_after_the_end() -> None:
    """It was sent by another task, and waited for the metadata of its topic meanwhile."""
    driver = TransactionalDriver(max_block_ms=1000).begun()
    driver.cluster.topic_errors["later"] = 17

    def end() -> None:
        driver.producer.commit_transaction()
        driver.metadata.refresh()

    driver.runtime.while_waiting = [end]
    future = driver.producer.send("later", b"x")
    assert future.exception(0) is not None
    driver.producer.begin_transaction()
    driver.producer.send("one", b"x")
    driver.producer.commit_transaction()


def test_a_record_that_is_not_acknowledged_in_time() -> None:
    driver = TransactionalDriver(delivery_timeout_ms=1000).begun()
    future = driver.producer.send("one", b"x")
    driver.write()
    driver.connections[-1].broken = ConnectionResetError("gone")
    driver.read()
    driver.pass_time(2000)
    driver.sender.sweep()
    assert isinstance(future.exception(0), DeliveryTimeoutError)
    after_error(driver)


@pytest.mark.parametrize(
    ("code", "kind"), [(29, TopicAuthorizationError), (49, InvalidProducerIdMappingError)]
)
def test_a_partition_that_is_not_added(code: int, kind: type[Exception]) -> None:
    driver = TransactionalDriver().begun()
    driver.coordinator.codes[t.AddPartitionsToTxnRequest] = [code]
    future = driver.producer.send("one", b"x")
    driver.run()
    assert isinstance(future.exception(0), kind)
    assert driver.produced == []
    after_error(driver)


def test_a_partition_that_is_not_added_after_a_commit() -> None:
    """The coordinator has nothing to abort, and says so."""
    driver = TransactionalDriver().begun()
    driver.producer.send("one", b"x")
    driver.producer.commit_transaction()
    driver.producer.begin_transaction()
    driver.coordinator.codes[t.AddPartitionsToTxnRequest] = [29]
    driver.producer.send("one", b"x")
    driver.run()
    driver.producer.abort_transaction()
    assert [committed for committed, _, _ in driver.coordinator.ends] == [True]
    with driver.producer.transaction():
        driver.producer.send("one", b"x")


def test_offsets_that_take_too_long() -> None:
    """It is not known whether the transaction has them."""
    driver = TransactionalDriver(max_block_ms=1000).begun()
    driver.coordinator.codes[t.TxnOffsetCommitRequest] = [14] * 60
    with pytest.raises(TransactionFailedError) as caught:
        driver.producer.send_offsets_to_transaction({ONE: 1}, "g")
    assert isinstance(caught.value.__cause__, WaitTimeoutError)
    driver.coordinator.codes.clear()
    after_error(driver)


def test_a_member_that_was_replaced() -> None:
    driver = TransactionalDriver().begun()
    driver.coordinator.codes[t.TxnOffsetCommitRequest] = [22]
    with pytest.raises(TransactionFailedError) as caught:
        driver.producer.send_offsets_to_transaction({ONE: 1}, ConsumerGroupMetadata("g", 3, "m"))
    assert isinstance(caught.value.__cause__, IllegalGenerationError)
    after_error(driver)


def test_an_id_that_has_expired_has_nothing_to_abort() -> None:
    driver = TransactionalDriver().begun()
    driver.producer.send("one", b"x")
    driver.coordinator.codes[t.EndTxnRequest] = [49, 49]  # the commit, and then the abort
    with pytest.raises(TransactionFailedError, match="must be aborted"):
        driver.producer.commit_transaction()
    driver.coordinator.is_open = False
    driver.producer.abort_transaction()
    driver.producer.begin_transaction()


def test_a_batch_that_may_be_stored_ends_before_the_abort() -> None:
    """It is sent again, and is of the aborted transaction; what was never sent is not."""
    driver = TransactionalDriver(linger_ms=1000).begun()
    first = driver.producer.send("one", b"first")
    driver.pass_time(1000)
    driver.write()
    driver.cluster.answer(9090, driver.produced[0])
    driver.connections[-1].broken = ConnectionResetError("the answer is lost")
    driver.read()
    second = driver.producer.send("one", b"second")
    driver.producer.abort_transaction()
    assert first.result(0).offset == 0
    assert isinstance(second.exception(0), TransactionAbortedError)
    assert headers(driver) == [(0, 0, 1, 0x10)] * 2
    assert driver.kinds[-1] == "EndTxn"


def test_a_new_leader() -> None:
    driver = TransactionalDriver().begun()
    driver.coordinator.codes[s.ProduceRequest] = [NotLeaderForPartitionError.code]
    driver.producer.send("one", b"x")
    driver.producer.commit_transaction()
    assert headers(driver) == [(0, 0, 1, 0x10)] * 2
    assert driver.coordinator.ends == [(True, {ONE}, {})]


# --- errors after which the producer is closed


def is_over(driver: TransactionalDriver, kind: type[Exception]) -> None:
    for name, call in CALLS.items():
        with pytest.raises(kind):
            call(driver.producer)
        assert name
    asked = len(driver.kinds)
    driver.producer.close()
    assert len(driver.kinds) == asked


@pytest.mark.parametrize("code", [47, 90])
@pytest.mark.parametrize("request_", [t.AddPartitionsToTxnRequest, t.EndTxnRequest])
def test_a_fenced_producer(request_: type[Any], code: int) -> None:
    driver = TransactionalDriver().begun()
    driver.coordinator.codes[request_] = [code]
    driver.producer.send("one", b"x")
    with pytest.raises(ProducerFencedError, match="orders: A newer producer"):
        driver.producer.commit_transaction()
    is_over(driver, ProducerFencedError)


@pytest.mark.parametrize("call", ["begin", "commit", "abort"])
def test_a_second_producer_with_the_id(call: str) -> None:
    driver = TransactionalDriver().begun()
    driver.producer.send("one", b"x")
    driver.producer.flush()
    driver.coordinator.producer = (7, 5)
    if call == "begin":
        driver.producer.send("t", b"x", partition=0)
        call = "commit"
    with pytest.raises(ProducerFencedError):
        CALLS[call](driver.producer)
    assert driver.coordinator.ends == []
    is_over(driver, ProducerFencedError)


@pytest.mark.parametrize(
    ("request_", "code", "call"),
    [
        (t.EndTxnRequest, 48, "commit"),
        (t.EndTxnRequest, 53, "abort"),
        (t.EndTxnRequest, -1, "commit"),
        (t.AddOffsetsToTxnRequest, 53, "offsets"),
        (t.TxnOffsetCommitRequest, 43, "offsets"),
    ],
)
def test_answers_after_which_nothing_is_known(request_: type[Any], code: int, call: str) -> None:
    driver = TransactionalDriver().begun()
    driver.producer.send("one", b"x")
    driver.producer.flush()
    driver.coordinator.codes[request_] = [code]
    with pytest.raises(FatalTransactionError, match="must be closed"):
        CALLS[call](driver.producer)
    is_over(driver, FatalTransactionError)


@pytest.mark.parametrize(
    ("code", "kind"), [(50, InvalidTransactionTimeoutError), (29, TopicAuthorizationError)]
)
def test_a_start_that_is_refused(code: int, kind: type[Exception]) -> None:
    driver = TransactionalDriver(transaction_timeout_ms=900_001)
    driver.coordinator.codes[InitProducerIdRequest] = [code]
    with pytest.raises(FatalTransactionError) as caught:
        driver.producer.init_transactions()
    assert isinstance(caught.value.__cause__, kind)
    is_over(driver, FatalTransactionError)


# --- calls that take too long are made again


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_an_end_that_takes_too_long(end: str) -> None:
    driver = TransactionalDriver(max_block_ms=1000).begun()
    driver.producer.send("one", b"x")
    driver.producer.flush()
    driver.coordinator.codes[t.EndTxnRequest] = [51] * 60
    with pytest.raises(WaitTimeoutError, match="within 1 s"):
        CALLS[end](driver.producer)
    others = {"send", "begin", "offsets", "commit", "abort"} - {end}
    for call in others:
        with pytest.raises(IllegalStateError, match=f"call {end}_transaction until it succeeds"):
            CALLS[call](driver.producer)
    driver.coordinator.codes.clear()
    CALLS[end](driver.producer)
    assert driver.coordinator.ends == [(end == "commit", {ONE}, {})]
    driver.producer.begin_transaction()


def test_a_start_that_takes_too_long() -> None:
    driver = TransactionalDriver(max_block_ms=1000)
    driver.cluster.down = {9090}
    with pytest.raises(WaitTimeoutError, match="port 9090"):
        driver.producer.init_transactions()
    with pytest.raises(IllegalStateError, match="call init_transactions until it succeeds"):
        driver.producer.begin_transaction()
    driver.cluster.down = set()
    driver.begun()


def test_an_abort_that_takes_too_long_after_an_error() -> None:
    """Its second part is made again alone: the first has ended the transaction."""
    driver = TransactionalDriver(max_block_ms=1000, max_request_size=1000).begun()
    driver.producer.send("one", b"x")
    driver.producer.flush()
    driver.producer.send("one", b"x" * 2000)
    driver.coordinator.codes[InitProducerIdRequest] = [51] * 60
    with pytest.raises(WaitTimeoutError):
        driver.producer.abort_transaction()
    driver.coordinator.codes.clear()
    driver.producer.abort_transaction()
    assert driver.kinds.count("EndTxn") == 1
    driver.producer.begin_transaction()


def test_a_coordinator_that_is_away_for_longer_than_records_may_wait() -> None:
    driver = TransactionalDriver(delivery_timeout_ms=1000).begun()
    driver.coordinator.codes[t.AddPartitionsToTxnRequest] = [15] * 1000
    future = driver.producer.send("one", b"x")
    driver.run()
    assert isinstance(future.exception(0), WaitTimeoutError)
    driver.coordinator.codes.clear()
    after_error(driver)
