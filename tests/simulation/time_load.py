"""A consumer that also asks where the messages since a time begin."""

from __future__ import annotations

from collections import defaultdict

from kafka08.errors import NO_ERROR
from kafka08.message.entry import AnyMessage
from kafka08.protocol.schemas import OffsetsPartition
from tests.simulation.clients import Seat
from tests.simulation.consumers import LATEST, WireConsumer
from tests.simulation.runtime import EPOCH_MS

_ASKED = 0.1
_WITH_TIMES = 1
"""The first version of ListOffsets that answers with one offset."""
_NOTHING = -1
_VERSIONS = (4, 5, 8, 11)


class TimedConsumer(WireConsumer):
    """Compares the answers with the times of the messages that it has read."""

    versions = _VERSIONS

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._times: defaultdict[int, dict[int, int]] = defaultdict(dict)

    def took(self, partition: int, message: AnyMessage) -> None:
        self._times[partition][message.offset] = message.timestamp

    def work(self) -> None:
        super().work()
        if self.leaders and self.rng.random() < _ASKED:
            self._ask(self.any_partition())

    def _ask(self, partition: int) -> None:
        """The first message since some time, between the start of the log and its end. The end is
        asked for before, and the start after it, as both only rise in a process that leads."""
        since = EPOCH_MS + self.rng.randrange(1000)
        leader = self.leaders[partition]
        end = self._offset(OffsetsPartition(partition, LATEST), _WITH_TIMES)
        connection = self.connections[leader]
        found = self._offset(OffsetsPartition(partition, since), _WITH_TIMES)
        for answer in (end, found):
            if answer.error != NO_ERROR:
                self.failed(f"the time {since} of partition {partition}", answer.error)
                return
        start = self.earliest(partition)
        if start is None or self.connections[leader] != connection:
            return
        times = self._times[partition]
        until = end.offset if found.offset == _NOTHING else min(found.offset, end.offset)
        early = [at for at, time in times.items() if start <= at < until and time >= since]
        where = f"partition {partition}, messages since {since}: {found}, {start} to {end.offset}"
        assert not early, f"{where}; {early[0]} is of {times[early[0]]}"
        is_due = times.get(found.offset, since) >= since
        assert is_due, f"{where}; that is of {times[found.offset]}"
