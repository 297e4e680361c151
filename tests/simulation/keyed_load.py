"""Clients of a topic whose old messages are removed: by compaction, by age, by size."""

from __future__ import annotations

from typing import cast

from kafka08.common import TopicPartition
from kafka08.errors import NO_ERROR, OffsetOutOfRangeError
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.protocol.schemas import FetchPartitionResponse
from tests.simulation.clients import Seat
from tests.simulation.consumers import WireConsumer
from tests.simulation.keyed_ledger import Keyed
from tests.simulation.ledger import MessagePlace
from tests.simulation.producers import Sent, WireProducer, encoded

TOPIC = "keyed"
_KEYS = 8
_DELETED_KEYS = 2
"""The first of the keys are deleted now and then."""
_DELETE = 0.3
_MOST_MESSAGES = 6


class KeyedProducer(WireProducer):
    """Sends the next messages of a few keys, again and again."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat._replace(topic=TOPIC))

    def work(self) -> None:
        partition = self.any_partition()
        messages = [self._message() for _ in range(self.rng.randint(1, _MOST_MESSAGES))]
        sent = [Sent(*each, time=self._now()) for each in messages]
        answer = self.send(partition, encoded(sent, self.version, self.codec))
        if answer.error != NO_ERROR:
            self.failed(f"partition {partition}", answer.error)
            return
        for at, message in enumerate(messages):
            self.seat.keyed.acknowledge(MessagePlace(partition, answer.base_offset + at), message)
        self.pause()

    def _now(self) -> int:
        """Of the topics that retention empties: the age of messages counts."""
        return self.runtime.clock.millis()

    def _message(self) -> Keyed:
        key = self.rng.randrange(_KEYS)
        deletes = key < _DELETED_KEYS and self.rng.random() < _DELETE
        return self.seat.keyed.send(b"%d" % key, deletes=deletes)


class Pass:
    """One reading of a partition, from ``start``. ``due``: what it should find."""

    def __init__(self, start: int, due: dict[int, Keyed]) -> None:
        self.start = self.position = start
        self.due = due
        self.found: dict[int, Keyed] = {}

    def is_over(self, high_watermark: int, committed: int) -> bool:
        """A leader may not know yet how far it, or the one before it, had ``committed``: what it
        shows may lack keys that have a later message there."""
        return self.position >= max(high_watermark, committed)


class KeyedConsumer(WireConsumer):
    """Reads each partition from its start to its end, and then again."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat._replace(topic=TOPIC))
        self._passes: dict[int, Pass] = {}
        self._last: dict[int, Pass] = {}
        """Begun since it was told to stop."""
        self._finished: set[int] = set()

    @property
    def is_open(self) -> bool:
        return not self._finished

    def work(self) -> None:
        partition = self.any_partition()
        if partition not in self._passes:
            self._begin(partition)
            return
        current = self._passes[partition]
        answer = self.fetch(partition, current.position)
        if answer.error == OffsetOutOfRangeError.code:
            self._pass_removed(partition, current)
        elif answer.error != NO_ERROR:
            self.failed(f"partition {partition}", answer.error)
        else:
            self._take(partition, current, answer)
            key = TopicPartition(self.topic, partition)
            if current.is_over(answer.high_watermark, self.seat.committed.get(key, 0)):
                self._end(partition, current)

    def _begin(self, partition: int) -> None:
        due = self.seat.keyed.due(partition)
        start = self.earliest(partition)
        if start is not None:
            self._passes[partition] = Pass(start, due)
            if self.stopping:
                self._last[partition] = self._passes[partition]

    def _end(self, partition: int, current: Pass) -> None:
        start = self.earliest(partition)
        if start is None:
            return
        start = max(start, current.start)
        self.seat.keyed.check_pass(current.due, current.found, start, current.position)
        del self._passes[partition]
        if self._last.get(partition) is current:
            self._finished.add(partition)
        self.runtime.sleep(self.rng.random())

    def _pass_removed(self, partition: int, current: Pass) -> None:
        start = self.earliest(partition)
        if start is None or start <= current.position:
            # A broker that does not know that it does not lead any more may have less.
            self.forget_leaders()
        else:
            self.note(f"{current.position} of partition {partition} was removed")
            current.start = current.position = start

    def _take(self, partition: int, current: Pass, answer: FetchPartitionResponse) -> None:
        data = cast(memoryview, answer.message_set)
        for message in iter_messages(data):
            if message.offset >= current.position:
                found = Keyed(message.key or b"", message.value)
                self.seat.keyed.see(MessagePlace(partition, message.offset), found)
                current.found[message.offset] = found
        # An entry may have lost its last messages.
        for entry in iter_entries(data):
            current.position = max(current.position, entry.offset + 1)
