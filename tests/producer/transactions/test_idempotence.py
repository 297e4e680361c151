"""KafkaProducer with enable.idempotence: nothing is stored twice, and order is kept."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.errors import MessageSizeTooLargeError, OutOfOrderSequenceError
from kafka08.message.batch import header_of
from kafka08.message.scan import iter_entries
from kafka08.producer.errors import (
    ClusterAuthorizationError,
    DeliveryTimeoutError,
    IllegalStateError,
    UnsupportedVersionError,
)
from kafka08.protocol import schemas as s
from kafka08.protocol.later_schemas import InitProducerIdRequest
from kafka08.protocol.negotiation import NotServedError
from tests.producer.transactions.support import ONE, TransactionalDriver

LOST = ConnectionResetError("the answer is lost")


def idempotent(**settings: Any) -> TransactionalDriver:
    return TransactionalDriver(transactional_id=None, enable_idempotence=True, **settings)


def values(driver: TransactionalDriver) -> list[bytes | None]:
    return driver.cluster.values(*ONE)


def headers(driver: TransactionalDriver) -> list[tuple[int, int, int, int]]:
    """(id, epoch, first sequence, count) of each batch that was sent."""
    found = [
        header_of(part.message_set)
        for request in driver.produced
        for topic in request.topics
        for part in topic.partitions
    ]
    return [(b.producer_id, b.producer_epoch, b.base_sequence, b.count) for b in found]


def test_batches_have_an_id_and_follow_each_other() -> None:
    driver = idempotent()
    for number in range(3):
        driver.producer.send_many("one", [b"%d" % number, b"x"])
        driver.run()
    assert headers(driver) == [(8, 0, 0, 2), (8, 0, 2, 2), (8, 0, 4, 2)]
    assert len(driver.cluster.sent(InitProducerIdRequest)) == 1
    assert driver.produced[0].transactional_id is None
    assert driver.produced[0].acks == -1


def test_no_request_is_made_before_the_first_record() -> None:
    driver = idempotent()
    driver.run()
    assert driver.cluster.sent(InitProducerIdRequest) == []


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_lost_answer_sends_the_same_batch_again(is_stored: bool) -> None:
    driver = idempotent(batch_size=100)
    futures = [driver.producer.send("one", b"x" * 40 + b"%d" % n) for n in range(3)]
    driver.write()
    if is_stored:
        driver.cluster.answer(9090, driver.produced[0])
    driver.connections[-1].broken = LOST
    driver.read()
    later = driver.producer.send("one", b"later")  # must not enter the batch that was sent
    for _ in range(3):
        driver.pass_time(200)
        driver.run()
    assert headers(driver) == [(8, 0, 0, 3), (8, 0, 0, 3), (8, 0, 3, 1)]
    assert [f.result(0).offset for f in [*futures, later]] == [0, 1, 2, 3]
    assert values(driver) == [b"x" * 40 + b"%d" % n for n in range(3)] + [b"later"]


def test_a_batch_that_was_refused_leaves_no_gap() -> None:
    driver = idempotent()
    driver.coordinator.codes[s.ProduceRequest] = [10]
    first = driver.producer.send("one", b"a")
    driver.run()
    assert isinstance(first.exception(0), MessageSizeTooLargeError)
    driver.producer.send("one", b"b")
    driver.run()
    assert headers(driver) == [(8, 0, 0, 1), (8, 0, 0, 1)]
    assert values(driver) == [b"b"]


def test_a_set_that_is_too_large_is_sent_in_parts_with_sequences_of_their_own() -> None:
    driver = idempotent(batch_size=100)
    driver.coordinator.codes[s.ProduceRequest] = [10]
    for number in range(3):
        driver.producer.send("one", b"x" * 70 + b"%d" % number)
    for _ in range(4):
        driver.run()
    assert headers(driver) == [(8, 0, 0, 3), (8, 0, 0, 1), (8, 0, 1, 1), (8, 0, 2, 1)]
    assert [each[-1:] for each in values(driver) if each] == [b"0", b"1", b"2"]


def test_what_comes_after_a_batch_that_may_be_stored_has_another_epoch() -> None:
    driver = idempotent(delivery_timeout_ms=1000, batch_size=100)
    lost = [driver.producer.send("one", b"x" * 70) for _ in range(2)]
    driver.write()
    driver.connections[-1].broken = LOST
    driver.read()
    driver.pass_time(1500)
    late = driver.producer.send("one", b"late")
    driver.sender.sweep()
    assert [type(f.exception(0)) for f in lost] == [DeliveryTimeoutError] * 2
    assert not late.done()
    driver.run()
    assert late.result(0).offset == 0
    assert headers(driver) == [(8, 0, 0, 2), (8, 1, 0, 1)]


def test_batches_that_were_sent_as_one_expire_as_one() -> None:
    driver = idempotent(delivery_timeout_ms=1000, batch_size=100, linger_ms=500)
    old = driver.producer.send("one", b"x" * 70)
    driver.pass_time(400)
    young = driver.producer.send("one", b"x" * 70)
    driver.write()
    driver.connections[-1].broken = LOST
    driver.read()
    driver.pass_time(700)
    driver.sender.sweep()
    assert old.done()
    assert young.done()
    assert [header[3] for header in headers(driver)] == [2]


def test_what_was_sent_keeps_its_epoch_when_another_partition_gets_a_new_one() -> None:
    """With the new one the broker would not see that it has it already."""
    driver = idempotent()
    driver.producer.send("t", b"a", partition=0)
    driver.write()
    driver.cluster.answer(9090, driver.produced[0])
    driver.connections[-1].broken = LOST
    driver.read()
    driver.coordinator.codes[s.ProduceRequest] = [45]
    driver.producer.send("t", b"b", partition=1)
    driver.pass_time(50)  # there may be a connection again, but partition 0 waits longer
    driver.run()
    driver.pass_time(200)
    driver.producer.send("t", b"c", partition=0)
    for _ in range(3):
        driver.run()
    assert headers(driver) == [(8, 0, 0, 1), (8, 0, 0, 1), (8, 0, 0, 1), (8, 1, 0, 1)]
    assert driver.cluster.values("t", 0) == [b"a", b"c"]


def test_a_broker_that_has_lost_count() -> None:
    driver = idempotent()
    driver.coordinator.codes[s.ProduceRequest] = [45]
    first = driver.producer.send("one", b"a")
    driver.run()
    assert isinstance(first.exception(0), OutOfOrderSequenceError)
    driver.producer.send("one", b"b")
    driver.run()
    assert headers(driver)[1] == (8, 1, 0, 1)


def test_a_duplicate_that_the_broker_remembers_without_its_offset() -> None:
    driver = idempotent()
    driver.coordinator.codes[s.ProduceRequest] = [46]
    future = driver.producer.send("one", b"a")
    driver.run()
    assert future.result(0).offset == -1
    driver.producer.send("one", b"b")
    driver.run()
    assert headers(driver)[1] == (8, 0, 1, 1)


def test_one_request_of_a_partition_is_in_flight() -> None:
    driver = idempotent(batch_size=0)
    driver.silent = True
    driver.producer.send("one", b"a")
    driver.write()
    driver.producer.send("one", b"b")
    driver.write()
    assert len(driver.produced) == 1
    driver.silent = False
    driver.run()
    driver.run()
    assert values(driver) == [b"a", b"b"]


def test_a_lost_batch_and_others_fill_a_request_no_further_than_it_may() -> None:
    """A set that must go as one waits for a request with room for all of it."""
    driver = idempotent(
        batch_size=100, max_request_size=250, max_in_flight_requests_per_connection=1
    )
    for number in range(2):
        for _ in range(2):
            driver.producer.send("t", b"x" * 70, partition=number)
    driver.write()
    driver.connections[-1].broken = LOST
    driver.read()
    for _ in range(8):
        driver.pass_time(200)
        driver.run()
    assert all(
        sum(len(part.message_set) for topic in r.topics for part in topic.partitions) < 400
        for r in driver.produced
    )
    for number in range(2):
        data = b"".join(entry for _, entry in driver.cluster.logs[("t", number)])  # type: ignore[index]
        assert sum(header_of(data, e.position).count for e in iter_entries(data)) == 2


def test_an_id_that_is_refused_fails_the_records() -> None:
    driver = idempotent()
    driver.coordinator.codes[InitProducerIdRequest] = [31]
    first = driver.producer.send("one", b"a")
    driver.run()
    assert isinstance(first.exception(0), ClusterAuthorizationError)
    driver.producer.send("one", b"b")
    driver.run()
    assert values(driver) == [b"b"]


def test_the_id_is_asked_for_again_while_brokers_are_away() -> None:
    driver = idempotent()
    driver.coordinator.codes[InitProducerIdRequest] = [14, 15]
    driver.cluster.failures = [ConnectionResetError("gone")]
    driver.producer.send("one", b"a")
    driver.run()
    assert values(driver) == [b"a"]


def test_brokers_without_idempotence() -> None:
    driver = idempotent()
    driver.cluster.failures = [NotServedError("the broker does not serve InitProducerId")]
    future = driver.producer.send("one", b"a")
    driver.run()
    assert isinstance(future.exception(0), UnsupportedVersionError)


def test_it_has_no_transactions() -> None:
    driver = idempotent()
    with pytest.raises(IllegalStateError, match=r"needs a producer with a transactional\.id"):
        driver.producer.begin_transaction()
