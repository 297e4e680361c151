"""Clients that read a topic from its start, each with one version of Fetch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, cast

from kafka08.common import TopicPartition
from kafka08.errors import NO_ERROR, OffsetOutOfRangeError
from kafka08.message.entry import AnyMessage
from kafka08.message.sets import iter_messages
from kafka08.protocol.schemas import (
    CONSUMER_REPLICA_ID,
    NO_EPOCH,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchTopic,
    ListOffsetsRequest,
    OffsetsPartition,
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsTopic,
)
from tests.simulation.clients import Seat, WireClient
from tests.simulation.ledger import HEADER, MessagePlace, key_of, time_of

_FETCH_BYTES = 4_000
_WAIT_MS = 100
LATEST, _EARLIEST = -1, -2
_EPOCHS_OF_OFFSETS = 4
_END_ASKED = 0.1
_VERSIONS = (0, 0, 1, 2, 3, 4, 5, 8, 11)
_LEGACY_VERSIONS = (0,)
_TIMED, _BATCHES, _EPOCHS = 2, 4, 9
"""The first versions that carry format 1, format 2 and the leader epoch."""


class InEpoch(NamedTuple):
    """A partition in a leader epoch."""

    partition: int
    epoch: int


class Bounds(NamedTuple):
    """Of a partition, as a leader tells them over a connection."""

    connection: int
    start: int
    high_watermark: int


class WireConsumer(WireClient):
    """Reads all partitions from their start, each from its leader. ``positions``: what it reads
    next."""

    versions: Sequence[int] = _VERSIONS

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self.version = self.rng.choice(_LEGACY_VERSIONS if seat.is_legacy else self.versions)
        self.positions: dict[int, int] = {}
        self._told: dict[InEpoch, Bounds] = {}
        self._ends: Counter[InEpoch] = Counter()
        self._read_all: set[int] = set()

    @property
    def is_open(self) -> bool:
        """Whether there may be messages that it has not read since it was told to stop."""
        return not self._read_all >= set(self.positions)

    def work(self) -> None:
        partition = self.any_partition()
        position = self.positions.setdefault(partition, 0)
        epoch = self._epoch(partition)
        answer = self.fetch(partition, position)
        if answer.error == OffsetOutOfRangeError.code:
            self._pass_deleted(partition, position)
        elif answer.error != NO_ERROR:
            self.failed(f"partition {partition}", answer.error)
        else:
            if epoch != NO_EPOCH:
                self._check_bounds(partition, epoch, answer)
                if self.rng.random() < _END_ASKED:
                    self._check_end(partition, epoch)
            self.positions[partition] = self._read(partition, position, answer)
            if self.stopping and self.is_at_end(partition, answer):
                self._read_all.add(partition)

    def is_at_end(self, partition: int, answer: FetchPartitionResponse) -> bool:
        """Whether it has read all that was committed. A new leader may not know yet how far the one
        before it had."""
        committed = self.seat.committed.get(TopicPartition(self.topic, partition), 0)
        return self.positions[partition] >= max(answer.high_watermark, committed)

    def _epoch(self, partition: int) -> int:
        """The leader epoch to name in a Fetch of this version."""
        return self.epochs[partition] if self.version >= _EPOCHS else NO_EPOCH

    def fetch(self, partition: int, position: int) -> FetchPartitionResponse:
        """The answer of the leader. Raises as ``call``."""
        part = FetchPartition(partition, position, _FETCH_BYTES, self._epoch(partition))
        request = FetchRequest(CONSUMER_REPLICA_ID, _WAIT_MS, 1, [FetchTopic(self.topic, [part])])
        response = self.call(self.leaders[partition], request, self.version)
        answer: FetchPartitionResponse = response.topics[0].partitions[0]
        return answer

    def _read(self, partition: int, position: int, answer: FetchPartitionResponse) -> int:
        """The position after the messages of an answer."""
        formats = set()
        for message in iter_messages(cast(memoryview, answer.message_set)):
            formats.add(message.magic)
            if message.offset < position:
                continue
            assert message.offset == position, f"a gap from {position} to {message.offset}"
            assert position < answer.high_watermark, f"{position} is above the high watermark"
            check_content(message)
            self.took(partition, message)
            self.ledger.see(MessagePlace(partition, position), message.value or b"")
            position += 1
        self._check_formats(formats)
        return position

    def took(self, partition: int, message: AnyMessage) -> None:
        """It has read this message."""

    def _check_formats(self, formats: set[int]) -> None:
        """Those of one answer."""
        if self.version < _BATCHES:
            most = 1 if self.version >= _TIMED else 0
            assert max(formats, default=0) <= most, f"version {self.version} has {formats}"
        else:
            assert not formats >= {2} or formats == {2}, f"an answer has the formats {formats}"

    def _check_bounds(self, partition: int, epoch: int, answer: FetchPartitionResponse) -> None:
        """In one leader epoch neither the high watermark nor the start goes back, unless the leader
        was started again: until followers fetch it knows an older one."""
        connection = self.connections[self.leaders[partition]]
        now = Bounds(connection, answer.log_start_offset, answer.high_watermark)
        key = InEpoch(partition, epoch)
        before = self._told.get(key, now)
        if before.connection != connection:
            before = now
        assert now.start >= before.start and now.high_watermark >= before.high_watermark, (
            f"partition {partition} of epoch {epoch} had {before} and has {now}"
        )
        self._told[key] = now
        ends = self._ends
        ends[key] = max(ends[key], now.high_watermark)

    def _check_end(self, partition: int, epoch: int) -> None:
        """Leaders of later epochs name no end below a high watermark of those before: until they
        know theirs, they name none."""
        asked = OffsetsPartition(partition, LATEST, current_leader_epoch=epoch)
        answer = self._offset(asked, _EPOCHS_OF_OFFSETS)
        before = [
            end
            for key, end in self._ends.items()
            if key.partition == partition and key.epoch <= epoch
        ]
        assert answer.error != NO_ERROR or answer.offset >= max(before), (
            f"partition {partition} ends at {answer.offset} in epoch {epoch}, before at {before}"
        )

    def earliest(self, partition: int) -> int | None:
        """The start of the log as its leader has it, None if there is none. Raises as ``call``."""
        asked = OffsetsPartition(partition, _EARLIEST)
        answer = self._offset(asked, 0 if self.seat.is_legacy else 1)
        if answer.error != NO_ERROR:
            self.failed(f"the start of partition {partition}", answer.error)
            return None
        return answer.offsets[0] if self.seat.is_legacy else answer.offset

    def _offset(self, asked: OffsetsPartition, version: int) -> OffsetsPartitionResponse:
        kind = OffsetsRequest if version == 0 else ListOffsetsRequest
        request = kind(CONSUMER_REPLICA_ID, [OffsetsTopic(self.topic, [asked])])
        response = self.call(self.leaders[asked.partition], request, version)
        answer: OffsetsPartitionResponse = response.topics[0].partitions[0]
        return answer

    def _pass_deleted(self, partition: int, position: int) -> None:
        """Go on at the start of the log, if somebody asked to delete up to there."""
        start = self.earliest(partition)
        if start is None or start <= position:
            # A broker that does not know that it does not lead any more may have less.
            self.note(f"{position} of partition {partition} is out of range")
            self.forget_leaders()
            return
        asked_for = self.ledger.deleted_until[partition]
        assert start <= asked_for, f"deleted up to {start}, asked for {asked_for}"
        self.positions[partition] = start


def check_content(message: AnyMessage) -> None:
    """A message as a consumer got it, perhaps converted: what is there is as it was sent."""
    value = message.value or b""
    assert message.key == key_of(value), f"{value!r} has the key {message.key!r}"
    assert message.timestamp in (-1, time_of(value)), f"{value!r} is of {message.timestamp}"
    assert message.headers in ((), ((HEADER, value),)), f"{value!r} has {message.headers}"
