"""A bank: transfers between accounts in several partitions and topics, while brokers are killed.

Each transfer is a transaction of two messages. A reader of committed transactions sees both or
neither, a transfer whose commit was acknowledged once, and no transfer that was aborted.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Process, ZooKeeper
from integration.wire import wait_until
from kafka08.errors import KafkaError
from kafka08.producer.errors import FatalTransactionError, TransactionFailedError
from kafka08.producer.kafka_producer import KafkaProducer

PROPS = {
    "api.versions.enable": "true",
    "auto.create.topics.enable": "false",
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "unclean.leader.election.enable": "false",
    "transaction.state.log.num.partitions": 4,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
    "offsets.topic.num.partitions": 4,
    "log.segment.bytes": 100_000,
}
TOPICS, PARTITIONS, TELLERS = 2, 3, 4
WAIT_S = 120


class Teller(threading.Thread):
    """Sends transfers until it is told to stop. ``done``, ``undone``: ids of those whose end was
    acknowledged; of the others it is not known."""

    def __init__(self, address: str, bank: str, number: int) -> None:
        super().__init__(name=f"teller-{number}", daemon=True)
        self.done: list[str] = []
        self.undone: list[str] = []
        self.errors: list[str] = []
        self.stopping = threading.Event()
        self._address = address
        self._bank = bank
        self._number = number
        self._rng = random.Random(number)

    def _producer(self) -> Any:
        from confluent_kafka import Producer

        made = Producer(
            {
                "bootstrap.servers": self._address,
                "transactional.id": f"{self._bank}-{self._number}",
                "transaction.timeout.ms": 20_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 50,
                "log_level": 0,
            }
        )
        made.init_transactions(WAIT_S)
        return made

    def run(self) -> None:
        from confluent_kafka import KafkaException

        made: Any = None
        count = 0
        while not self.stopping.is_set():
            count += 1
            id_ = f"{self._number}.{count}"
            try:
                if made is None:
                    made = self._producer()
                made.begin_transaction()
                commits = self._transfer(made, id_)
                if commits:
                    made.commit_transaction(WAIT_S)
                    self.done.append(id_)
                else:
                    made.flush(WAIT_S)
                    made.abort_transaction(WAIT_S)
                    self.undone.append(id_)
            except KafkaException as error:
                found = error.args[0]
                self.errors.append(found.name())
                if found.txn_requires_abort():
                    try:
                        made.abort_transaction(WAIT_S)
                        self.undone.append(id_)
                        continue
                    except KafkaException as worse:
                        self.errors.append(worse.args[0].name())
                made = None  # another one with the same id goes on

    def _transfer(self, made: Any, id_: str) -> bool:
        """Whether to commit it."""
        amount = self._rng.randint(1, 100)
        places = [(t, p) for t in range(TOPICS) for p in range(PARTITIONS)]
        for sign, (topic, partition) in zip((-1, 1), self._rng.sample(places, 2), strict=True):
            self._put(made, f"{self._bank}-{topic}", f"{id_} {sign * amount}", partition)
        return self._rng.random() < 0.8

    def _put(self, made: Any, topic: str, text: str, partition: int) -> None:
        made.produce(topic, text, partition=partition)
        made.poll(0)


class OwnTeller(Teller):
    """The same with KafkaProducer of this project."""

    def _producer(self) -> KafkaProducer:
        made = KafkaProducer(
            bootstrap_servers=self._address,
            transactional_id=f"{self._bank}-{self._number}",
            transaction_timeout_ms=20_000,
            retry_backoff_ms=50,
            request_timeout_ms=5000,
            max_block_ms=WAIT_S * 1000,
        )
        try:
            made.init_transactions()
        except KafkaError:
            made.close(0)
            raise
        return made

    def run(self) -> None:
        made: KafkaProducer | None = None
        count = 0
        while not self.stopping.is_set():
            count += 1
            id_ = f"{self._number}.{count}"
            try:
                if made is None:
                    made = self._producer()
                made.begin_transaction()
                commits = self._transfer(made, id_)
                if commits:
                    made.commit_transaction()
                    self.done.append(id_)
                else:
                    made.flush(WAIT_S)
                    made.abort_transaction()
                    self.undone.append(id_)
            except KafkaError as error:
                self.errors.append(str(error))
                if made is not None and not self._has_aborted(made, error):
                    made.close(0)
                    made = None  # another one with the same id goes on
                elif made is not None:
                    self.undone.append(id_)
        if made is not None:
            made.close()

    def _has_aborted(self, made: KafkaProducer, error: KafkaError) -> bool:
        if isinstance(error, FatalTransactionError) or not isinstance(
            error, TransactionFailedError
        ):
            return False
        try:
            made.abort_transaction()
        except KafkaError as worse:
            self.errors.append(str(worse))
            return False
        return True

    def _put(self, made: KafkaProducer, topic: str, text: str, partition: int) -> None:
        made.send(topic, text.encode(), partition=partition)


def read_all(address: str, bank: str, *, committed: bool) -> list[tuple[str, int]]:
    """(transfer, amount) of all messages."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    reader = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"reader-{uuid.uuid4().hex}",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    reader.assign(
        [TopicPartition(f"{bank}-{t}", p, 0) for t in range(TOPICS) for p in range(PARTITIONS)]
    )
    found: list[tuple[str, int]] = []
    ended: set[tuple[str, int]] = set()
    while len(ended) < TOPICS * PARTITIONS:
        message = reader.poll(WAIT_S)
        assert message is not None, f"{ended} have ended"
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            ended.add((message.topic(), message.partition()))
        else:
            id_, amount = message.value().decode().split()
            found.append((id_, int(amount)))
    reader.close()
    return found


@pytest.mark.scenario("transactions-16", "transactions-17", "transactions-19", "transactions-20")
@pytest.mark.slow
@pytest.mark.parametrize("kind", [Teller, OwnTeller])
def test_no_transfer_is_half_done(
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
    kind: Callable[[str, str, int], Teller],
) -> None:
    bank = f"bank-{uuid.uuid4().hex[:8]}"
    chroot = f"{zookeeper.connect}/{bank}"
    brokers = {}
    for number in (1, 2, 3):
        broker = Broker("ours", tmp_path / str(number), chroot, broker_id=number, props=PROPS)
        launch(broker)
        brokers[number] = broker.start()
    for topic in range(TOPICS):
        brokers[1].create_topic(f"{bank}-{topic}", replicas=[1, 2, 3], partitions=PARTITIONS)
    address = ",".join(broker.address for broker in brokers.values())
    tellers = [kind(address, bank, number) for number in range(TELLERS)]
    for teller in tellers:
        teller.start()
    for round_ in range(6):
        time.sleep(4)
        broker = brokers[round_ % 3 + 1]
        broker.kill()
        time.sleep(3)
        broker.start()
        in_order(read_all(address, bank, committed=True))
    time.sleep(5)
    for teller in tellers:
        teller.stopping.set()
    for teller in tellers:
        teller.join(2 * WAIT_S)
        assert not teller.is_alive()
    done = {id_ for teller in tellers for id_ in teller.done}
    undone = {id_ for teller in tellers for id_ in teller.undone}
    assert len(done) > 100, [teller.errors for teller in tellers]

    def is_settled() -> bool:
        """No transaction is open: what is committed and what is stored end at the same offset."""
        return check(read_all(address, bank, committed=True), done, undone)

    wait_until("the end of all transactions", WAIT_S, is_settled)
    for broker in brokers.values():
        assert "Traceback" not in broker.log, broker.log[-5000:]


def in_order(found: list[tuple[str, int]]) -> None:
    """Nothing is there twice."""
    assert max(Counter(found).values(), default=1) == 1


def check(found: list[tuple[str, int]], done: set[str], undone: set[str]) -> bool:
    """Whether all that was acknowledged is there; raises if something is wrong."""
    halves: dict[str, list[int]] = {}
    for id_, amount in found:
        halves.setdefault(id_, []).append(amount)
    assert not undone & halves.keys()
    return (
        done <= halves.keys()
        and all(len(both) == 2 and sum(both) == 0 for both in halves.values())
        and sum(amount for _, amount in found) == 0
    )
