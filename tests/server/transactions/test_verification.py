"""A partition asks the coordinator before a transaction begins there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TRANSACTIONS_TOPIC
from kafka08.errors import LaterCode
from kafka08.protocol import transaction_schemas as t
from kafka08.server.transactions.coordinator import Producer
from kafka08.server.transactions.peers import Peers
from tests.server.support import PEER, partition_state
from tests.server.transactions.support import TransactionRig

MAPPING = LaterCode.INVALID_PRODUCER_ID_MAPPING
STATE = LaterCode.INVALID_TXN_STATE


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TransactionRig]:
    rig = TransactionRig(tmp_path)
    yield rig
    rig.close()


@pytest.mark.scenario("transactions-13", "transactions-14")
def test_a_write_without_its_partition_is_refused(rig: TransactionRig) -> None:
    producer = rig.begin()
    assert rig.write(producer, 0, "a") == STATE
    rig.add(producer, 1)
    assert rig.write(producer, 0, "a") == STATE
    assert rig.write(producer, 1, "a", id_=None) == 53
    assert rig.write(producer, 1, "a", id_="another") == MAPPING
    assert rig.write(Producer(producer.id, 5), 1, "a") == LaterCode.INVALID_PRODUCER_EPOCH
    assert rig.write(producer, 1, "a") == 0
    rig.end(producer, commit=False)
    rig.run_tasks()
    assert rig.write(producer, 1, "late", sequence=1) == STATE
    assert rig.end_offset(1) == rig.end_offset(1, committed=False)


def test_without_verification_a_write_begins_its_transaction(tmp_path: Path) -> None:
    rig = TransactionRig(tmp_path, transaction_partition_verification_enable=False)
    producer = rig.begin()
    assert rig.write(producer, 0, "a") == 0
    rig.close()


def test_a_coordinator_that_has_vanished_is_not_waited_for(rig: TransactionRig) -> None:
    """Its answer would come at once. Another may coordinate when the producer asks again."""
    producer = rig.begin()
    rig.know(partition_state(TRANSACTIONS_TOPIC, 0, leader=PEER), partition_state("t", 0))
    timeouts = []

    def channel(*_: Any, timeout_ms: int, **__: Any) -> Any:
        timeouts.append(timeout_ms)
        raise TimeoutError("no answer")

    rig.transactions._coordinators._channel = channel
    assert rig.write(producer, 0, "a") == 19
    assert timeouts == [1_500]


def test_what_was_sent_behind_a_write_without_an_answer_does_not_overtake_it(
    rig: TransactionRig,
) -> None:
    """Java and librdkafka have five requests under way, and send such a write again and again."""
    producer = rig.begin()
    rig.add(producer, 0)
    nobody = partition_state(TRANSACTIONS_TOPIC, 0, leader=-1)
    rig.know(nobody, partition_state("t", 0))
    assert rig.write(producer, 0, "a") == 19
    rig.know(partition_state(TRANSACTIONS_TOPIC, 0), partition_state("t", 0))
    assert rig.write(producer, 0, "b", sequence=1) == LaterCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert rig.write(producer, 0, "a") == 0
    assert rig.write(producer, 0, "b", sequence=1) == 0


@pytest.mark.parametrize(
    ("code", "answered"),
    [
        (STATE, STATE),
        (LaterCode.PRODUCER_FENCED, LaterCode.INVALID_PRODUCER_EPOCH),
        (LaterCode.CONCURRENT_TRANSACTIONS, 19),
        (14, 19),
        (16, 19),
        (53, 53),
    ],
)
def test_what_another_broker_answers_as_coordinator(
    rig: TransactionRig, monkeypatch: pytest.MonkeyPatch, code: int, answered: int
) -> None:
    """Where it cannot say, the producer sends the batch again."""
    producer = rig.begin()
    rig.know(partition_state(TRANSACTIONS_TOPIC, 0, leader=PEER), partition_state("t", 0))
    asked = []

    def call(broker: Any, request: t.AddPartitionsToTxnRequest, version: int) -> Any:
        (one,) = request.transactions
        asked.append((broker.id, one.transactional_id, one.verify_only, version))
        if len(asked) == 1:
            raise ConnectionResetError("cut")
        topics = [t.TxnTopicErrors("t", [t.TxnPartitionError(0, code)])]
        return t.AddPartitionsToTxnResponse(0, transactions=[t.AddedToTxn("id", topics)])

    monkeypatch.setattr(Peers, "call", lambda _, *args: call(*args))
    assert rig.write(producer, 0, "a") == 19
    assert rig.write(producer, 0, "a") == answered
    assert asked == [(PEER, "id", True, 4)] * 2
    assert rig.log(0).log_end_offset == 0
