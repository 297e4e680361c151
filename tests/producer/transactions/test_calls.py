"""The calls of users: blocks, closing, calls in callbacks."""

from __future__ import annotations

import pytest

from kafka08.errors import KafkaError
from kafka08.producer.errors import (
    IllegalStateError,
    ProducerClosedError,
    ProducerFencedError,
    TransactionAbortedError,
    TransactionFailedError,
    WaitTimeoutError,
)
from kafka08.protocol import schemas as s
from kafka08.protocol import transaction_schemas as t
from tests.producer.fake_producer import ProducerDriver
from tests.producer.transactions.support import ONE, TransactionalDriver


def test_a_block_commits() -> None:
    driver = TransactionalDriver()
    driver.producer.init_transactions()
    for number in range(2):
        with driver.producer.transaction():
            driver.producer.send("one", b"%d" % number)
    assert driver.coordinator.ends == [(True, {ONE}, {})] * 2


def test_a_block_that_raises_aborts() -> None:
    driver = TransactionalDriver()
    driver.producer.init_transactions()
    with pytest.raises(RuntimeError, match="mine"), driver.producer.transaction():
        driver.producer.send("one", b"x")
        driver.producer.flush()
        raise RuntimeError("mine")
    assert driver.coordinator.ends == [(False, {ONE}, {})]
    with driver.producer.transaction():
        driver.producer.send("one", b"x")
    assert driver.coordinator.ends[1][0]


def test_a_commit_that_fails_aborts_the_block() -> None:
    driver = TransactionalDriver()
    driver.producer.init_transactions()
    driver.coordinator.codes[s.ProduceRequest] = [10]
    with pytest.raises(TransactionFailedError), driver.producer.transaction():
        driver.producer.send("one", b"x")
    assert driver.coordinator.ends == [(False, {ONE}, {})]
    with driver.producer.transaction():
        driver.producer.send("one", b"x")


def test_a_commit_of_which_nothing_is_known_is_not_aborted() -> None:
    driver = TransactionalDriver(max_block_ms=1000)
    driver.producer.init_transactions()
    driver.coordinator.codes[t.EndTxnRequest] = [51] * 60
    with pytest.raises(WaitTimeoutError), driver.producer.transaction():
        driver.producer.send("one", b"x")
    assert {each.committed for each in driver.cluster.sent(t.EndTxnRequest)} == {True}
    driver.coordinator.codes.clear()
    driver.producer.commit_transaction()
    assert driver.coordinator.ends == [(True, {ONE}, {})]


def test_a_fenced_block_aborts_nothing() -> None:
    driver = TransactionalDriver()
    driver.producer.init_transactions()
    driver.coordinator.producer = (7, 5)
    with pytest.raises(ProducerFencedError), driver.producer.transaction():
        driver.producer.send("one", b"x")
    assert driver.cluster.sent(t.EndTxnRequest) == []


def test_a_producer_that_is_closed_aborts_what_is_open() -> None:
    driver = TransactionalDriver(linger_ms=1000).begun()
    driver.producer.send("one", b"sent")
    driver.producer.flush()
    waiting = driver.producer.send("one", b"waiting")
    driver.producer.close()
    assert driver.coordinator.ends == [(False, {ONE}, {})]
    assert isinstance(waiting.exception(0), TransactionAbortedError)
    for call in (driver.producer.begin_transaction, driver.producer.abort_transaction):
        with pytest.raises(ProducerClosedError):
            call()
    with pytest.raises(ProducerClosedError):
        driver.producer.send("one", b"x")


def test_a_close_that_may_not_wait_leaves_it_to_the_coordinator() -> None:
    driver = TransactionalDriver().begun()
    driver.producer.send("one", b"x")
    driver.producer.flush()
    driver.producer.close(0.0)
    assert driver.coordinator.is_open


def test_a_close_without_a_coordinator_ends_in_time(caplog: pytest.LogCaptureFixture) -> None:
    driver = TransactionalDriver().begun()
    driver.producer.send("one", b"x")
    driver.producer.flush()
    driver.coordinator.codes[t.EndTxnRequest] = [15] * 1000
    before = driver.runtime.clock.now
    driver.producer.close(3.0)
    assert 3.0 <= driver.runtime.clock.now - before < 4.0
    assert "was not aborted" in caplog.text


def test_a_callback_cannot_end_a_transaction() -> None:
    driver = TransactionalDriver().begun()
    errors: list[KafkaError] = []

    def callback(*_: object) -> None:
        try:
            driver.producer.commit_transaction()
        except KafkaError as error:
            errors.append(error)

    driver.producer.send("one", b"x", callback=callback)
    driver.producer.commit_transaction()
    assert "would wait for itself" in str(errors[0])
    assert driver.coordinator.ends == [(True, {ONE}, {})]


def test_other_producers_have_no_transactions() -> None:
    producer = ProducerDriver().producer
    for call in (producer.init_transactions, producer.commit_transaction, producer.transaction):
        with pytest.raises(IllegalStateError, match=r"needs a producer with a transactional\.id"):
            call()
