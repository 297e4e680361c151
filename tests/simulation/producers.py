"""Clients that produce: all formats and codecs, with acks of the isr or of the leader alone, and
idempotent ones."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

from kafka08.errors import NO_ERROR, LaterCode
from kafka08.message.batch import RECORDS_AT, encode_batch, header_of
from kafka08.message.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from kafka08.message.entry import encode_entry
from kafka08.message.record_sets import encode_records
from kafka08.message.sets import encode_set
from kafka08.producer.encoding import encode_headers
from kafka08.protocol.later_schemas import InitProducerIdRequest
from kafka08.protocol.schemas import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceTopic,
)
from tests.simulation.clients import Seat, WireClient
from tests.simulation.ledger import HEADER, MessagePlace, key_of, time_of
from zk import znodes

CODECS = (NONE, NONE, GZIP, SNAPPY, LZ4, ZSTD)
_ZSTD_SINCE = 7
"""The first version of Produce that may carry it."""
_ACKS_TIMEOUT_MS = 1_000
_PAUSES = (0.0, 0.05, 0.5)
_LATER_VERSIONS = (3, 5, 7, 8)
_VERSIONS = (0, 0, 1, 2, *_LATER_VERSIONS)
_LEGACY_VERSIONS = (0,)
_FENCED_SECONDS = 8.0
"""More than a session timeout."""
_LOST_SEQUENCE = (LaterCode.OUT_OF_ORDER_SEQUENCE_NUMBER, LaterCode.INVALID_PRODUCER_EPOCH, 59)


def _served(codec: int, version: int) -> int:
    """This codec, or gzip where the version or this machine does not have it."""
    if codec == ZSTD and (version < _ZSTD_SINCE or find_spec("zstandard") is None):
        return GZIP
    return codec


class Sent(NamedTuple):
    """A message to send."""

    key: bytes
    value: bytes | None
    time: int


def encoded(messages: Sequence[Sent], version: int, codec: int) -> bytes:
    """The set with these messages, in the format that a Produce request of this version carries.
    In format 2 each has its value as a header as well."""
    if version < 2:
        return encode_set([(each.key, each.value) for each in messages], codec)
    if version > 2:
        keys, values, times = map(list, zip(*messages, strict=True))
        headers = [encode_headers([(HEADER, value)]) for value in values]
        return encode_records(values, keys, times, headers, codec)
    inner = b"".join([
        encode_entry(each.key, each.value, at, timestamp=each.time)
        for at, each in enumerate(messages)
    ])  # fmt: skip
    if codec == NONE:
        return inner
    wrapped = compress(codec, inner, magic=1)
    newest = max(each.time for each in messages)
    return encode_entry(None, wrapped, len(messages) - 1, codec, timestamp=newest)


def numbered(values: Sequence[bytes]) -> list[Sent]:
    """Messages whose keys and times follow from their values."""
    return [Sent(key_of(value), value, time_of(value)) for value in values]


class WireProducer(WireClient):
    """Sends a few messages at a time, in one version and codec. With ``acks`` 1 they may be
    lost."""

    acks = -1
    versions: Sequence[int] = _VERSIONS

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self.version = self.rng.choice(_LEGACY_VERSIONS if seat.is_legacy else self.versions)
        self.codec = _served(self.rng.choice(CODECS), self.version)

    def send(self, partition: int, data: bytes) -> ProducePartitionResponse:
        """The answer of the leader. Raises as ``call``."""
        sent = ProducePartition(partition, memoryview(bytearray(data)))
        request = ProduceRequest(self.acks, _ACKS_TIMEOUT_MS, [ProduceTopic(self.topic, [sent])])
        response = self.call(self.leaders[partition], request, self.version)
        answer: ProducePartitionResponse = response.topics[0].partitions[0]
        return answer

    def pause(self) -> None:
        """Sends come in bursts."""
        self.runtime.sleep(self.rng.choice(_PAUSES) * self.rng.random())

    def work(self) -> None:
        partition = self.any_partition()
        values = self.ledger.new_values(self.rng.randint(1, 4))
        answer = self.send(partition, encoded(numbered(values), self.version, self.codec))
        if answer.error != NO_ERROR:
            self.failed(f"partition {partition}", answer.error)
            return
        learn = self.ledger.acknowledge if self.acks == -1 else self.ledger.hope
        for at, value in enumerate(values):
            learn(MessagePlace(partition, answer.base_offset + at), value)
        self.pause()


class LeaderAcksProducer(WireProducer):
    """With acks 1. A leader of followers that has long been without a session acknowledges nothing
    for it: another one may have been elected. It stays with a leader until that one fails."""

    acks = 1
    refresh = 0.0

    def send(self, partition: int, data: bytes) -> ProducePartitionResponse:
        leader = self.leaders[partition]
        away = self.seat.sessions.ensemble.seconds_without(leader)
        answer = super().send(partition, data)
        is_fenced = away > _FENCED_SECONDS and len(self.hosts) > 1
        assert answer.error != NO_ERROR or not is_fenced, (
            f"{leader} without a session for {away:.1f} s acknowledges for partition {partition}"
        )
        return answer


class IdempotentProducer(WireProducer):
    """Sends each batch until it is acknowledged. One is under way at a time, so a leader that has
    all that was acknowledged never misses one before it."""

    versions = _LATER_VERSIONS

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._identity: tuple[int, int] | None = None
        self._sent: dict[int, list[bytes]] = {}
        self._batch: tuple[int, list[bytes]] | None = None

    @property
    def is_open(self) -> bool:
        return self._batch is not None

    def work(self) -> None:
        if self._identity is None:
            self._identify()
            return
        if self._batch is None:
            partition = self.any_partition()
            self._batch = partition, self.ledger.new_values(self.rng.randint(1, 4))
        partition, values = self._batch
        if partition not in self.leaders:
            self.forget_leaders()
            return
        known = self._sent.setdefault(partition, [])
        answer = self.send(partition, self._encoded(values, self._identity, len(known)))
        if answer.error != NO_ERROR:
            what = f"{values[0]!r} of partition {partition}"
            lost = answer.error in _LOST_SEQUENCE and not self._has_another_leader(partition)
            assert not lost, f"{what}: error {answer.error}"
            self.failed(what, answer.error)
            return
        known += values
        self._batch = None
        if answer.base_offset >= 0:
            for at, value in enumerate(values):
                self.ledger.acknowledge(MessagePlace(partition, answer.base_offset + at), value)
        self.pause()

    def _has_another_leader(self, partition: int) -> bool:
        """The broker that was asked does not know yet that it leads no more. It lacks what the next
        leader has acknowledged, and says so, as in Kafka."""
        path = znodes.partition_state_path(self.topic, partition)
        data = self.seat.sessions.data(path)
        assert data is not None
        state = znodes.decode_partition_state(path, data)
        return self.leaders[partition] != f"broker{state.leader}"

    def _identify(self) -> None:
        answer = self.call(self.any_host(), InitProducerIdRequest(None, 1000), 0)
        if answer.error != NO_ERROR:
            self.failed("no producer id", answer.error)
            return
        self.ledger.name_producer(answer.producer_id)
        self._identity = answer.producer_id, answer.producer_epoch

    def _encoded(self, values: list[bytes], identity: tuple[int, int], sequence: int) -> bytes:
        data = encoded(numbered(values), self.version, self.codec)
        producer, epoch = identity
        header = header_of(data)._replace(
            producer_id=producer, producer_epoch=epoch, base_sequence=sequence
        )
        return encode_batch(header, data[RECORDS_AT:])

    def check(self) -> None:
        self.ledger.check_order(self._sent)
