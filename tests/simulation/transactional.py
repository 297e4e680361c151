"""Clients of transactions: a producer with a transactional id, and what readers of committed
transactions get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from kafka08.client.committed import without_aborted
from kafka08.errors import NO_ERROR, LaterCode, ProtocolError
from kafka08.message.batch import TRANSACTIONAL
from kafka08.message.record_sets import Sender, encode_records
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest
from kafka08.protocol.schemas import (
    CONSUMER_REPLICA_ID,
    READ_COMMITTED,
    ConsumerMetadataRequest,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchTopic,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from tests.simulation.clients import Seat, WireClient

TOPIC = "lists"
READ_VERSIONS = (4, 5, 8, 11)
_ID_VERSION, _ADD_VERSION, _END_VERSION, _PRODUCE_VERSION = 4, 3, 3, 8
_FIND_VERSION = 1
_OF_TRANSACTIONS = 1
_TIMEOUT_MS = 5_000
_ACKS_TIMEOUT_MS = 1_000
_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 0.3
"""After a write."""
_DAWDLES = 0.01
_LONGEST_SECONDS = 9.0
_FETCH_BYTES, _WAIT_MS = 4_000, 100
# The coordinator is another one, or not ready.
ELSEWHERE = (14, 15, 16)
_OVER = (
    LaterCode.PRODUCER_FENCED,
    LaterCode.INVALID_PRODUCER_EPOCH,
    LaterCode.INVALID_TXN_STATE,
    LaterCode.INVALID_PRODUCER_ID_MAPPING,
    LaterCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
)


class TransactionalClient(WireClient):
    """Has the transactional id ``id_``, and one request under way at a time. It asks again until it
    has an answer, or another producer, or the coordinator, has ended its transaction. Now and then
    it does nothing for longer than a transaction may take."""

    def __init__(self, seat: Seat, id_: str) -> None:
        super().__init__(seat._replace(topic=TOPIC))
        self._id = id_
        self._coordinator = ""
        self._identity: tuple[int, int] | None = None
        self._sequences: dict[int, int] = {}
        self._included: set[int] = set()
        self._is_sure = True

    def go_on(self) -> None:
        """Some requests of its work, while it has an id and an epoch. Raises as ``call``."""
        raise NotImplementedError

    def lost(self) -> None:
        """It has no transaction any more, and an id no more."""

    def work(self) -> None:
        if not self._coordinator:
            self._find_coordinator()
        elif self._identity is None:
            self._register()
        else:
            if self._included and self.rng.random() < _DAWDLES:
                self.runtime.sleep(self.rng.random() * _LONGEST_SECONDS)
            self.go_on()

    # Requests. An answer that was not got makes the client unsure: what it has sent may arrive at
    # any later time. So its next transaction has another epoch.

    def ask(self, host: str, request: object, version: int) -> Any:
        """The answer to a request about the transaction. Raises as ``call``."""
        try:
            return self.call(host, request, version)
        except (OSError, ProtocolError):
            self._is_sure = False
            raise

    def _ask(self, request: object, version: int) -> Any:
        """That of the coordinator."""
        try:
            return self.ask(self._coordinator, request, version)
        except (OSError, ProtocolError):
            self._coordinator = ""
            raise

    def _find_coordinator(self) -> None:
        request = ConsumerMetadataRequest(self._id, _OF_TRANSACTIONS)
        answer = self.call(self.any_host(), request, _FIND_VERSION)
        if answer.error == NO_ERROR:
            self._coordinator = answer.host
        else:
            self.failed("no coordinator", answer.error)

    def _register(self) -> None:
        """A transaction of a former producer is aborted then; so is one that this one has lost."""
        request = InitProducerIdRequest(self._id, _TIMEOUT_MS)
        answer = self._ask(request, _ID_VERSION)
        if answer.error == NO_ERROR:
            self._identity = answer.producer_id, answer.producer_epoch
            self._sequences = {}
            self._is_sure = True
        else:
            self._later("no producer id", answer.error)

    def include(self, number: int) -> bool:
        """Whether the transaction includes this partition, after the coordinator was asked."""
        if number not in self._included:
            assert self._identity is not None
            topics = [t.TxnTopic(self.topic, [number])]
            request = t.AddPartitionsToTxnRequest(self._id, *self._identity, topics)
            answer = self._ask(request, _ADD_VERSION)
            code = answer.topics[0].partitions[0].error
            if code == NO_ERROR:
                self._included.add(number)
            else:
                self.refused(f"partition {number}", code)
        return number in self._included

    def write(self, number: int, messages: Sequence[tuple[bytes, bytes]]) -> bool:
        """Whether these keys and values are in a partition."""
        assert self._identity is not None
        sequence = self._sequences.get(number, 0)
        sender = Sender(*self._identity, sequence, TRANSACTIONAL)
        keys, values = map(list, zip(*messages, strict=True))
        times = [self.runtime.clock.millis()] * len(messages)
        data = encode_records(values, keys, times, None, sender=sender)
        sent = [ProducePartition(number, memoryview(bytearray(data)))]
        topics = [ProduceTopic(self.topic, sent)]
        request = ProduceRequest(-1, _ACKS_TIMEOUT_MS, topics, self._id)
        answer = self.ask(self.leaders[number], request, _PRODUCE_VERSION)
        code = answer.topics[0].partitions[0].error
        if code != NO_ERROR:
            self.refused(f"a write to {number}", code)
            return False
        self._sequences[number] = sequence + len(messages)
        self.runtime.sleep(_LONGEST_PAUSE_SECONDS * self.rng.random())
        return True

    def include_offsets(self, group: str) -> bool:
        """Whether the transaction includes offsets of a group."""
        assert self._identity is not None
        request = t.AddOffsetsToTxnRequest(self._id, *self._identity, group)
        code = self._ask(request, _ADD_VERSION).error
        if code != NO_ERROR:
            self.refused("offsets", code)
        return bool(code == NO_ERROR)

    def offsets_request(self, group: str, number: int, offset: int) -> t.TxnOffsetCommitRequest:
        """To commit the offset of one partition in the transaction."""
        assert self._identity is not None
        part = t.TxnOffsetCommitPartition(number, offset, metadata="")
        topics = [t.TxnOffsetCommitTopic(self.topic, [part])]
        return t.TxnOffsetCommitRequest(self._id, group, *self._identity, topics=topics)

    def end(self, *, commit: bool) -> bool:
        """Whether the transaction has ended so."""
        assert self._identity is not None
        request = t.EndTxnRequest(self._id, *self._identity, committed=commit)
        code = self._ask(request, _END_VERSION).error
        if code != NO_ERROR:
            self.refused("end", code)
            return False
        self._included.clear()
        if not self._is_sure:
            self._identity = None
        return True

    def refused(self, what: str, code: int) -> None:
        """Ask again, or begin again with another epoch."""
        if code in _OVER:
            self.note(f"{what}: error {code}, begins again")
            self._identity = None
            self._included.clear()
            self.lost()
        else:
            self._later(what, code)

    def _later(self, what: str, code: int) -> None:
        if code in ELSEWHERE:
            self._coordinator = ""
        if code != LaterCode.CONCURRENT_TRANSACTIONS:
            self.failed(what, code)
        self.runtime.sleep(_PAUSE_SECONDS)


class Committed(NamedTuple):
    """``messages``: offsets and values of committed transactions. ``following``: where to read
    on."""

    messages: list[tuple[int, bytes]]
    following: int


def read_request(topic: str, partition: int, position: int, epoch: int) -> FetchRequest:
    """Of committed transactions alone."""
    part = FetchPartition(partition, position, _FETCH_BYTES, epoch)
    topics = [FetchTopic(topic, [part])]
    head = CONSUMER_REPLICA_ID, _WAIT_MS, 1, topics
    return FetchRequest(*head, isolation_level=READ_COMMITTED)


def committed_in(answer: FetchPartitionResponse, position: int) -> Committed:
    """The messages in an answer for a reader of committed transactions, from ``position`` on."""
    stable = answer.last_stable_offset
    assert stable <= answer.high_watermark, f"{stable} is above {answer.high_watermark}"
    data = cast(memoryview, answer.message_set)
    following = position
    for entry in iter_entries(data):
        assert entry.offset < stable, f"{entry.offset} is not stable, below {stable}"
        following = max(following, entry.offset + 1)
    shown = without_aborted(data, answer.aborted_transactions or ())
    found = [
        (message.offset, message.value or b"")
        for message in iter_messages(shown)
        if message.offset >= position
    ]
    return Committed(found, following)
