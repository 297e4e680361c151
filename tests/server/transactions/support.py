"""A broker that coordinates all transactions and groups, and leads the partitions of topic t."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka08.common import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from kafka08.errors import NO_ERROR
from kafka08.message.batch import RECORDS_AT, TRANSACTIONAL, header_of
from kafka08.message.markers import ABORT, marker_of
from kafka08.message.record_sets import Sender, encode_records
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.protocol import schemas as s
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest
from kafka08.protocol.registry import APIS, api_of
from kafka08.protocol.requests import decode_response, encode_request
from kafka08.protocol.types import Struct
from kafka08.server.transactions.coordinator import Producer
from tests.fakes.runtime import WouldBlock
from tests.server.support import Rig, partition_state

PARTITIONS = 3
TIMEOUT_MS = 60_000


class TransactionRig(Rig):
    """While something waits, the tasks that were spawned run, and then time passes."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        super().__init__(
            directory,
            later=True,
            transaction_state_log_num_partitions=1,
            offsets_topic_num_partitions=1,
            **settings,
        )
        self.runtime.world = self._world
        led = [("t", number) for number in range(PARTITIONS)]
        led += [(TRANSACTIONS_TOPIC, 0), (OFFSETS_TOPIC, 0)]
        for key in led:
            self.lead(*key)
        self.know(*(partition_state(*key) for key in led))
        self.run_tasks()
        self.coordinator = self.transactions.coordinator

    def run_tasks(self, done: Callable[[], bool] = lambda: False) -> None:
        """Those that are not under way, and those that they spawn."""
        for task in self.runtime.tasks:  # which grows meanwhile
            if not task.ended and not task._running:
                task.run()
                if done():
                    return

    def _world(self, done: Callable[[], bool], seconds: float | None) -> None:
        self.run_tasks(done)
        if not done():
            if seconds is None:
                raise WouldBlock("nobody ends this wait")
            self.clock.advance(seconds)

    def ask(self, request: Any, version: int) -> Any:
        """The answer in that version."""
        key = api_of(request)[0]
        reply = self.send(b"".join(encode_request(request, 7, "me", version))[4:])
        assert reply is not None
        return decode_response(Struct(APIS[key].response, version), reply[4:])[1]

    # The requests of a producer

    def init(
        self, id_: str = "id", *, timeout_ms: int = TIMEOUT_MS, expected: Any = (-1, -1)
    ) -> tuple[int, Producer]:
        answer = self.ask(InitProducerIdRequest(id_, timeout_ms, *expected), 4)
        return answer.error, Producer(answer.producer_id, answer.producer_epoch)

    def begin(self, id_: str = "id") -> Producer:
        code, producer = self.init(id_)
        assert code == NO_ERROR
        return producer

    def add(self, producer: Producer, *numbers: int, id_: str = "id", version: int = 2) -> int:
        topics = [t.TxnTopic("t", list(numbers))]
        request = t.AddPartitionsToTxnRequest(id_, *producer, topics)
        codes = {p.error for topic in self.ask(request, version).topics for p in topic.partitions}
        assert len(codes) == 1
        return codes.pop()

    def write(
        self,
        producer: Producer,
        number: int,
        *texts: str,
        sequence: int = 0,
        id_: str | None = "id",
    ) -> int:
        """The wire code of a batch in the transaction."""
        values = [text.encode() for text in texts]
        times = [self.clock.millis()] * len(values)
        sender = Sender(*producer, sequence, TRANSACTIONAL)
        data = memoryview(bytearray(encode_records(values, None, times, None, sender=sender)))
        topics = [s.ProduceTopic("t", [s.ProducePartition(number, data)])]
        answer = self.ask(s.ProduceRequest(-1, 1000, topics, id_), 8)
        return int(answer.topics[0].partitions[0].error)

    def end(self, producer: Producer, *, commit: bool, id_: str = "id", version: int = 2) -> int:
        request = t.EndTxnRequest(id_, *producer, committed=commit)
        return int(self.ask(request, version).error)

    def state(self, id_: str = "id") -> str:
        found = self.ask(t.DescribeTransactionsRequest([id_]), 0).transactions[0]
        return str(found.state) if not found.error else f"error {found.error}"

    def add_offsets(self, producer: Producer, group: str = "g") -> int:
        return int(self.ask(t.AddOffsetsToTxnRequest("id", *producer, group), 3).error)

    def commit_offset(self, producer: Producer, offset: int, **fields: Any) -> int:
        """In the transaction."""
        number = fields.pop("number", 0)
        topics = [t.TxnOffsetCommitTopic("t", [t.TxnOffsetCommitPartition(number, offset, "m")])]
        request = t.TxnOffsetCommitRequest("id", "g", *producer, topics, **fields)
        return int(self.ask(request, 3).topics[0].partitions[0].error)

    def commit_outside(self, offset: int) -> None:
        topics = [s.OffsetCommitTopic("t", [s.OffsetCommitPartition(0, offset, "")])]
        answer = self.ask(s.OffsetCommitRequest("g", topics), 7)
        assert answer.topics[0].partitions[0].error == NO_ERROR

    def offset(self, *, stable: bool = False) -> tuple[int, int]:
        """The offset that the group has committed, and the error code."""
        asked = [s.OffsetFetchTopic("t", [0])]
        request = s.OffsetFetchRequest("g", asked, require_stable=stable)
        found = self.ask(request, 7).topics[0].partitions[0]
        return found.offset, found.error

    # Those of readers

    def read(self, number: int, offset: int = 0, *, committed: bool = True) -> list[str]:
        """The messages that a consumer of today shows, which leaves out what is aborted."""
        asked = [s.FetchTopic("t", [s.FetchPartition(number, offset, 1 << 20)])]
        request = s.FetchRequest(-1, 0, 1, asked, isolation_level=int(committed))
        found = self.ask(request, 11).topics[0].partitions[0]
        assert found.error == NO_ERROR
        return shown(bytes(found.message_set), found.aborted_transactions)

    def end_offset(self, number: int, *, committed: bool = True) -> int:
        asked = [s.OffsetsTopic("t", [s.OffsetsPartition(number, -1)])]
        answer = self.ask(s.OffsetsRequest(-1, asked, isolation_level=int(committed)), 5)
        return int(answer.topics[0].partitions[0].offset)

    def log(self, number: int, topic: str = "t") -> Any:
        return self.replicas.partitions[TopicPartition(topic, number)].leader_log()


def shown(data: bytes, aborted: list[s.AbortedTransaction] | None) -> list[str]:
    """As Kafka's consumer does it: a producer's batches are left out from the first offset of an
    aborted transaction on to its marker."""
    waiting = sorted(aborted or [], key=lambda each: each.first_offset, reverse=True)
    out: set[int] = set()
    texts = []
    for entry in iter_entries(data):
        batch = data[entry.position : entry.stop]
        header = header_of(batch)
        while waiting and waiting[-1].first_offset <= header.last_offset:
            out.add(waiting.pop().producer_id)
        if header.is_control:
            if marker_of(batch[RECORDS_AT:])[0] == ABORT:
                out.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in out:
            texts += [(message.value or b"").decode() for message in iter_messages(batch)]
    return texts
