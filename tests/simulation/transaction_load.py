"""Clients that write to several partitions in transactions, and read what is committed."""

from __future__ import annotations

from typing import Any, cast

from kafka08.client.committed import without_aborted
from kafka08.errors import NO_ERROR, LaterCode
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
from tests.simulation.consumers import WireConsumer
from tests.simulation.transfer_ledger import Fate, Transfer

TOPIC = "transfers"
PARTITIONS = 2
_ID_VERSION, _ADD_VERSION, _END_VERSION, _PRODUCE_VERSION = 4, 3, 3, 8
_FIND_VERSION = 1
_OF_TRANSACTIONS = 1
_TIMEOUT_MS = 10_000
_ACKS_TIMEOUT_MS = 1_000
_COMMITS = 0.7
_VERSIONS = (4, 5, 8, 11)
_PAUSE_SECONDS = 0.05
# The coordinator is another one, or not ready.
_ELSEWHERE = (14, 15, 16)
_FENCED = (LaterCode.PRODUCER_FENCED, LaterCode.INVALID_PRODUCER_EPOCH)


class Teller(WireClient):
    """One transaction at a time, each with a message in every partition that it chooses. It asks
    again until it has an answer, or another producer, or the coordinator, has ended it."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat._replace(topic=TOPIC))
        self._id = self.runtime.name
        self._coordinator = ""
        self._identity: tuple[int, int] | None = None
        self._sequences: dict[int, int] = {}
        self._transfer: Transfer | None = None

    @property
    def is_open(self) -> bool:
        return self._transfer is not None

    def work(self) -> None:
        if not self._coordinator:
            self._find_coordinator()
        elif self._identity is None:
            self._register()
        elif self._transfer is None:
            self._begin()
        elif not self._transfer.is_added:
            self._add(self._transfer)
        elif self._transfer.left:
            self._write(self._transfer)
        else:
            self._end(self._transfer)

    def _find_coordinator(self) -> None:
        request = ConsumerMetadataRequest(self._id, _OF_TRANSACTIONS)
        answer = self.call(self.any_host(), request, _FIND_VERSION)
        if answer.error == NO_ERROR:
            self._coordinator = answer.host
        else:
            self.failed("no coordinator", answer.error)

    def _ask(self, request: object, version: int) -> Any:
        """The answer of the coordinator. Raises as ``call``."""
        try:
            return self.call(self._coordinator, request, version)
        except BaseException:
            self._coordinator = ""
            raise

    def _register(self) -> None:
        """A transaction of a former producer is aborted then; so is one that this one has lost."""
        request = InitProducerIdRequest(self._id, _TIMEOUT_MS)
        answer = self._ask(request, _ID_VERSION)
        if answer.error == NO_ERROR:
            self._identity = answer.producer_id, answer.producer_epoch
            self._sequences = {}
        else:
            self._later("no producer id", answer.error)

    def _begin(self) -> None:
        if self.stopping:
            return
        chosen = [number for number in range(PARTITIONS) if self.rng.random() < 0.8]
        commits = self.rng.random() < _COMMITS
        self._transfer = self.seat.transfers.begin(chosen or [0], commits=commits)

    def _add(self, transfer: Transfer) -> None:
        assert self._identity is not None
        topics = [t.TxnTopic(self.topic, sorted(transfer.partitions))]
        request = t.AddPartitionsToTxnRequest(self._id, *self._identity, topics)
        answer = self._ask(request, _ADD_VERSION)
        codes = {each.error for topic in answer.topics for each in topic.partitions}
        if codes == {NO_ERROR}:
            transfer.is_added = True
        else:
            self._refused("partitions", max(codes))

    def _write(self, transfer: Transfer) -> None:
        assert self._identity is not None
        number = min(transfer.left)
        if number not in self.leaders:
            self.forget_leaders()
            return
        sequence = self._sequences.get(number, 0)
        sender = Sender(*self._identity, sequence, TRANSACTIONAL)
        now = self.runtime.clock.millis()
        data = encode_records([transfer.value], None, [now], None, sender=sender)
        sent = [ProducePartition(number, memoryview(bytearray(data)))]
        topics = [ProduceTopic(self.topic, sent)]
        request = ProduceRequest(-1, _ACKS_TIMEOUT_MS, topics, self._id)
        answer = self.call(self.leaders[number], request, _PRODUCE_VERSION)
        code = answer.topics[0].partitions[0].error
        if code == NO_ERROR:
            transfer.left.discard(number)
            self._sequences[number] = sequence + 1
            self.runtime.sleep(_PAUSE_SECONDS * self.rng.random())
        else:
            self._refused(f"partition {number}", code)

    def _end(self, transfer: Transfer) -> None:
        assert self._identity is not None
        if transfer.commits:
            transfer.fate = Fate.ASKED
        request = t.EndTxnRequest(self._id, *self._identity, committed=transfer.commits)
        code = self._ask(request, _END_VERSION).error
        if code == NO_ERROR:
            transfer.fate = Fate.COMMITTED if transfer.commits else Fate.ABORTED
            self._transfer = None
        else:
            self._refused("end", code)

    def _refused(self, what: str, code: int) -> None:
        """Ask again, or begin again with another epoch."""
        if code in _FENCED or code in (
            LaterCode.INVALID_TXN_STATE,
            LaterCode.INVALID_PRODUCER_ID_MAPPING,
            LaterCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ):
            self.note(f"{what}: error {code}, begins again")
            transfer, self._transfer, self._identity = self._transfer, None, None
            if transfer is not None and transfer.fate is Fate.OPEN:
                transfer.fate = Fate.ABORTED  # nobody asked to commit it
        else:
            self._later(what, code)

    def _later(self, what: str, code: int) -> None:
        if code in _ELSEWHERE:
            self._coordinator = ""
        if code != LaterCode.CONCURRENT_TRANSACTIONS:
            self.failed(what, code)
        self.runtime.sleep(_PAUSE_SECONDS)


class CommittedReader(WireConsumer):
    """Reads committed transactions only."""

    versions = _VERSIONS

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat._replace(topic=TOPIC))
        self._stable: dict[int, int] = {}

    def fetch(self, partition: int, position: int) -> FetchPartitionResponse:
        part = FetchPartition(partition, position, 4_000, self._epoch(partition))
        request = FetchRequest(
            CONSUMER_REPLICA_ID,
            100,
            1,
            [FetchTopic(self.topic, [part])],
            isolation_level=READ_COMMITTED,
        )
        response = self.call(self.leaders[partition], request, self.version)
        answer: FetchPartitionResponse = response.topics[0].partitions[0]
        return answer

    def _read(self, partition: int, position: int, answer: FetchPartitionResponse) -> int:
        stable = answer.last_stable_offset
        assert stable <= answer.high_watermark, f"{stable} is above {answer.high_watermark}"
        data = cast(memoryview, answer.message_set)
        for entry in iter_entries(data):
            assert entry.offset < stable, f"{entry.offset} is not stable, below {stable}"
        shown = without_aborted(data, answer.aborted_transactions or ())
        for message in iter_messages(shown):
            if message.offset >= position:
                self.seat.transfers.see(partition, message.offset, message.value or b"")
        ends = [entry.offset + 1 for entry in iter_entries(data)]
        return max([position, *ends])

    def check(self) -> None:
        self.seat.transfers.check()
