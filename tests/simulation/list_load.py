"""Clients that append to lists in transactions, and read what is committed."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from types import MappingProxyType

from kafka08.errors import ProtocolError
from kafka08.protocol.schemas import FetchPartitionResponse
from tests.simulation.clients import Seat
from tests.simulation.consumers import WireConsumer
from tests.simulation.ledger import MessagePlace
from tests.simulation.list_ledger import COPIES, LISTS, Fate, Transaction
from tests.simulation.transactional import (
    READ_VERSIONS,
    TOPIC,
    TransactionalClient,
    committed_in,
    read_request,
)

PARTITIONS = COPIES + 1
_MOST_ELEMENTS = 6
_COMMITS = 0.7
_GIVES_UP = 0.5
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "600",
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": "5000",
}


def settings(seed: int, *, compacts: bool | None = None) -> Mapping[str, str]:
    """Of the topic: in half of the runs it is compacted, unless ``compacts`` says so, and nothing
    that is committed goes, as each element has a key of its own."""
    is_compacted = Random(f"{seed}/lists").random() < 0.5 if compacts is None else compacts
    return _COMPACTED if is_compacted else MappingProxyType({})


class ListWriter(TransactionalClient):
    """Appends to some lists in each transaction, and may give one up when a write gets no answer:
    the write may come later."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat, seat.runtime.name)
        self._transaction: Transaction | None = None
        self._gives_up = False

    @property
    def is_open(self) -> bool:
        return self._transaction is not None

    def lost(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None and transaction.fate is Fate.OPEN:
            transaction.fate = Fate.ABORTED  # nobody asked to commit it

    def go_on(self) -> None:
        transaction = self._transaction
        if transaction is None:
            self._begin()
        elif transaction.left and not self._gives_up:
            self._append(transaction)
        else:
            self._end(transaction, commit=transaction.commits and not self._gives_up)

    def _begin(self) -> None:
        if self.stopping:
            return
        count = self.rng.randint(1, _MOST_ELEMENTS)
        lists = [self.rng.randrange(LISTS) for _ in range(count)]
        commits = self.rng.random() < _COMMITS
        self._transaction = self.seat.lists.begin(self.runtime.name, lists, commits=commits)
        self._gives_up = False

    def _append(self, transaction: Transaction) -> None:
        batch = transaction.next_batch
        number = batch[0].partition
        if number not in self.leaders:
            self.forget_leaders()
        elif self.include(number):
            try:
                is_written = self.write(number, [(each.key, each.value) for each in batch])
            except (OSError, ProtocolError):
                self._gives_up = self.rng.random() < _GIVES_UP
                raise
            if is_written:
                del transaction.left[: len(batch)]

    def _end(self, transaction: Transaction, *, commit: bool) -> None:
        if commit:
            transaction.fate = Fate.ASKED
        if self.end(commit=commit):
            transaction.fate = Fate.COMMITTED if commit else Fate.ABORTED
            self._transaction = None


class ListReader(WireConsumer):
    """Reads committed transactions only; in the end all of it once more."""

    versions = READ_VERSIONS

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat._replace(topic=TOPIC))
        self._begins_again = False
        self._found: dict[bytes, MessagePlace] = {}
        self._copies: dict[bytes, MessagePlace] = {}

    @property
    def is_open(self) -> bool:
        return not self._begins_again or super().is_open

    def work(self) -> None:
        if self.stopping and not self._begins_again:
            self._begins_again = True
            self.positions = dict.fromkeys(range(PARTITIONS), 0)
            self._found.clear()
            self._copies.clear()
            self._read_all.clear()
        super().work()

    def fetch(self, partition: int, position: int) -> FetchPartitionResponse:
        request = read_request(self.topic, partition, position, self._epoch(partition))
        response = self.call(self.leaders[partition], request, self.version)
        answer: FetchPartitionResponse = response.topics[0].partitions[0]
        return answer

    def _read(self, partition: int, position: int, answer: FetchPartitionResponse) -> int:
        read = committed_in(answer, position)
        for offset, value in read.messages:
            self._take(MessagePlace(partition, offset), value)
        return read.following

    def _take(self, place: MessagePlace, value: bytes) -> None:
        if place.partition == COPIES:
            other = self._copies.setdefault(value, place)
            assert other == place, f"{value!r} is copied to {other} and to {place}"
        else:
            self.seat.lists.see(place, value)
            self._found[value] = place

    def check(self) -> None:
        self.seat.lists.check(self._found)
        self.seat.lists.check_copies(self._found, self._copies)
