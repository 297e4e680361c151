"""The sequences of an idempotent producer: which batch of a partition is the next one.

A broker stores a batch only if its first sequence follows that of the last one, and answers a batch
that comes again as it did the first time. A sequence is used up when its batch is stored. So a
partition has one request in flight, and what was sent once is sent again as the same batch. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka08.common import TopicPartition
from kafka08.message.record_sets import Sender
from kafka08.settings.settings import INT_MAX, SHORT_MAX


class ProducerId(NamedTuple):
    """An id that a broker has given, and its epoch."""

    id: int
    epoch: int


NO_ID = ProducerId(-1, -1)


class _Line:
    """The ``next`` sequence of a partition in the life of one ``producer``."""

    __slots__ = ("next", "producer")

    def __init__(self, producer: ProducerId) -> None:
        self.producer = producer
        self.next = 0


class Sequences:
    """``producer``: the id with which new batches are sent; NO_ID while there is none.
    ``attributes`` are those of the batches besides the codec."""

    def __init__(self, attributes: int = 0) -> None:
        self.producer = NO_ID
        self._attributes = attributes
        self._lines: dict[TopicPartition, _Line] = {}

    def sender(self, tp: TopicPartition, *, is_sent: bool) -> Sender:
        """That of the next batch of a partition. One that ``is_sent`` already keeps the id that it
        was sent with; others take the current one, and count from 0 after a change."""
        line = self._lines.get(tp)
        if line is None or (line.producer != self.producer and not is_sent):
            line = self._lines[tp] = _Line(self.producer)
        return Sender(*line.producer, line.next, self._attributes)

    def stored(self, tp: TopicPartition, count: int) -> None:
        """A batch of ``count`` records is stored. After the largest number comes 0."""
        line = self._lines[tp]
        line.next = (line.next + count) & INT_MAX

    def begin_again(self) -> None:
        """Go on with the next epoch, after a batch of which it is not known whether it is stored:
        the old epoch cannot write any more where the new one has. After the last epoch another id
        is needed."""
        id_, epoch = self.producer
        is_last = self.producer == NO_ID or epoch == SHORT_MAX
        self.producer = NO_ID if is_last else ProducerId(id_, epoch + 1)
