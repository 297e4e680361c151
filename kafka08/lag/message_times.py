"""When messages were written, by the timestamps in their sets.

It is read for messages that are older than the first end of their log that was seen. One fetch of a
few bytes for each leader and round: the beginning of a set has its time.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

from kafka08.client.cluster import ClusterClient
from kafka08.client.reading import fetch
from kafka08.client.routing import by_leader
from kafka08.common import Broker, TopicPartition
from kafka08.errors import NO_ERROR, KafkaError
from kafka08.message.batch import RECORDS_AT, header_of
from kafka08.message.entry import BATCH, MIN_ENTRY, TIMED, magic_of, time_of
from kafka08.protocol.negotiation import NoApiVersionsError

logger = logging.getLogger("kafka.console.LagCollector")

_BYTES = 256
AT_ONCE = 200
"""Partitions that one request asks about."""

Place = tuple[TopicPartition, int]


class MessageTimes:
    """Asks brokers for their versions: without, they send sets of format 0, which have no time.
    Those of 0.8.2.2 are asked once."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._known: dict[Place, int | None] = {}
        self._wanted: set[Place] = set()
        self._originals: set[Broker] = set()

    def of(self, tp: TopicPartition, offset: int) -> int | None:
        """The time (ms) of the set that has this offset; None if it has none, or is not known yet.
        Then ``read`` asks for it."""
        self._wanted.add((tp, offset))
        return self._known.get((tp, offset))

    def read(self, leaders: Mapping[TopicPartition, Broker]) -> bool:
        """Ask for what was wanted since the last call, and forget what was not; whether a time was
        learnt."""
        wanted, self._wanted = self._wanted, set()
        self._known = {place: time for place, time in self._known.items() if place in wanted}
        positions: dict[TopicPartition, int] = {}
        for tp, offset in sorted(wanted - self._known.keys()):
            # A second group's offset of the same partition waits for the next round.
            positions.setdefault(tp, offset)
        found = {}
        for leader, led in by_leader(positions, leaders.get).items():
            if leader not in self._originals:
                found.update(self._fetched(leader, dict(islice(led.items(), AT_ONCE))))
        self._known.update(found)
        return any(time is not None for time in found.values())

    def _fetched(
        self, leader: Broker, positions: Mapping[TopicPartition, int]
    ) -> dict[Place, int | None]:
        try:
            entries = fetch(
                partial(self._cluster.call, leader, api_versions=True), positions, _BYTES
            )
        except NoApiVersionsError:
            self._originals.add(leader)
            return {}
        except (OSError, KafkaError) as error:
            logger.warning("Broker %d does not support offsets by time: %s", leader.id, error)
            return {}
        return {
            (tp, positions[tp]): _time(entry.message_set)
            for tp, entry in entries.items()
            if entry.error == NO_ERROR
        }


def _time(data: Any) -> int | None:
    """That of the first entry, which may be cut."""
    time = -1
    if data and len(data) >= MIN_ENTRY and magic_of(data) == TIMED:
        time = time_of(data, 0)
    elif data and len(data) >= RECORDS_AT and magic_of(data) == BATCH:
        time = header_of(data).time
    return time if time >= 0 else None
